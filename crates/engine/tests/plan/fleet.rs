//! Plans for many machines.

use std::{fmt::Write as _, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use crate::ground::{cluster, plan, real_machine, versions};

/// How long this thread takes to plan for one of so many workers, whatever else the computer does.
fn share_of(workers: usize) -> Duration {
    let mut text = String::from(
        "cluster-id: fleet\nruntime: containerd\nnetwork: {podcidr: 10.240.0.0/12}\n\
         masters: [{name: m0, ip: 172.20.255.1}]\nworkers:\n",
    );
    for number in 0..workers {
        let (high, low) = (number / 250, number % 250 + 1);
        writeln!(text, "  - {{name: w{number}, ip: 172.20.{high}.{low}}}").unwrap();
    }
    let (cluster, versions, facts) = (cluster(&text), versions("1.37.0"), real_machine());
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let begin = now();
    let plan = plan(&cluster, &versions, &facts);
    let took = now().saturating_sub(begin);
    assert!(plan.tasks.len() > 5 * workers);
    took / u32::try_from(workers).unwrap()
}

#[test]
fn planning_for_more_machines_takes_no_longer_for_each() {
    // The first one sets up what is made once.
    share_of(10);
    let (few, many) = (share_of(100), share_of(1600));
    assert!(many < 3 * few, "{many:?} instead of {few:?}");
}
