//! Workers that come and go while the cluster is in use: by file and by command, killed in between, dead and back again.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
    time::Duration,
};

use hatchery_sandbox::{fault::Fault, snapshot::Snapshot};
use serde_json::Value;

use crate::{
    bench::{self, Bench, Seed},
    planned::machines,
    polled::Polled,
    writer::Writer,
};

/// Within this time a run that adds or removes a worker is killed.
const TAKES: Duration = Duration::from_secs(12);
/// A run that changes nothing may need so much more memory in the last cycle than in the first, in KiB.
const MORE_MEMORY: u64 = 8 << 10;

/// One worker becomes three and one again, as often as it is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn workers_come_and_go() {
    let bench = Bench::new("t-workers", 4, str::to_owned).await;
    let before = bench.snapshots().await;
    let one = bench.with_machines(&[0], &[1]);
    bench.hatchery_with(0, "deploy", &one);
    let polled = Polled::begin(&bench, 1).await;
    let (master, own) = (
        bench.machine(0),
        format!("{}:6443", bench.machine(0).address),
    );
    let writer = Writer::begin(master, master, &own).await;

    let mut seed = bench::seed("killed joins and removals");
    let (mut states, mut memory) = (vec![bench.state()], Vec::new());
    for round in 0..bench::rounds(1) {
        cycle(&bench, &writer, &mut seed).await;
        bench.is_clean(3, &before).await;
        bench.is_clean(2, &before).await;
        for list in ["nodes", "leases -n kube-node-lease"] {
            let names = bench.kubectl(&format!("get {list} -o name")).await;
            let names: Vec<_> = names
                .lines()
                .filter_map(|name| name.split('/').nth(1))
                .collect();
            assert_eq!(names, [&bench.machine(1).name], "{list}");
        }
        let stay = [0, 1].map(|number| bench.machine(number).name.clone());
        assert_eq!(bench.claims(), stay);
        assert_eq!(bench.earlier_files(), "[]");
        states.push(bench.state());
        memory.push(bench.memory_of_a_deploy(&one));
        println!("round {round}: {} KiB", memory[round]);
    }
    // Host keys are known for good, and a signature may be a byte longer than another.
    let size = |state: &[(String, u64)]| -> u64 {
        let files = state.iter().filter(|(name, _)| name != "known_hosts");
        files.map(|(_, size)| size).sum()
    };
    let (before_any, last) = (size(&states[0]), size(&states[states.len() - 1]));
    assert!(last < before_any + 64, "{states:?}");
    let names = |state: &[(String, u64)]| -> Vec<_> {
        state.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&states[1]), names(&states[states.len() - 1]));
    assert!(
        memory[memory.len() - 1] < memory[0] + MORE_MEMORY,
        "{memory:?}"
    );

    writer.lost_nothing(master).await;
    polled.end(&bench).await;
    joined_and_deleted(&bench, &before).await;
    bench.hatchery_with(0, "cleanup --yes", &one);
    bench.assert_as_before(&before).await;
}

/// A worker more by the file, one more by command; the first goes by command, the other by the file.
async fn cycle(bench: &Bench, writer: &Writer, seed: &mut Seed) {
    let (two, one) = (
        bench.with_machines(&[0], &[1, 2]),
        bench.with_machines(&[0], &[1]),
    );
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (second, third) = (bench.machine(2), bench.machine(3));
    let address = third.address.to_string();
    let ready = async |count: usize| {
        let nodes = bench.kubectl("get nodes --no-headers").await;
        assert_eq!(nodes.matches(" Ready ").count(), count, "{nodes}");
        assert_eq!(nodes.lines().count(), count, "{nodes}");
        writer.goes_on(Duration::from_secs(10)).await;
    };
    bench
        .killed_and_again(seed, 2, &["deploy", "-f", &text(&two)])
        .await;
    ready(2).await;
    let join = [
        "join",
        "--id",
        &bench.id,
        "--name",
        &third.name,
        "--arch",
        "amd64",
        &address,
    ];
    bench.killed_and_again(seed, 3, &join).await;
    ready(3).await;
    bench
        .killed_and_again(seed, 2, &["delete", "--id", &bench.id, &second.name])
        .await;
    ready(2).await;
    bench
        .killed_and_again(seed, 3, &["deploy", "--yes", "-f", &text(&one)])
        .await;
    ready(1).await;
    bench
        .kubectl("rollout status deployment/web --timeout=120s")
        .await;
}

impl Bench {
    /// A command that is killed at a random moment, and run again to its end. Both together write to this machine alone.
    async fn killed_and_again(&self, seed: &mut Seed, machine: usize, words: &[&str]) {
        let words = [words, &["-o", "json"]].concat();
        let said = self.home().join("killed");
        let after = seed.below(TAKES);
        let mut child = self
            .alone(&words)
            .stdout(File::create(&said).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(after).await;
        let ended = child.try_wait().unwrap();
        if ended.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // The last line may not be whole.
        let mut said = fs::read_to_string(&said).unwrap() + "\n";
        match ended {
            Some(status) => assert!(status.success(), "{words:?}: {said}"),
            None => said += &self.again(&words),
        }
        let changed = machines(&self.changed(&said));
        // All of it may have been done, and only not been told.
        let is_alone = changed.iter().all(|one| *one == machine);
        assert!(is_alone, "{words:?} after {after:?}: {changed:?}: {said}");
        let how = ended.map_or("killed", |_| "ended before that");
        println!(
            "{} {machine}: after {after:.1?} {how}, {changed:?}",
            words[0]
        );
    }

    /// Runs it to its end. A machine may have left already, and the command only not have ended.
    fn again(&self, words: &[&str]) -> String {
        let output = self.alone(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_gone = words[0] == "delete" && errors.contains("has no machine");
        let code = output.status.code();
        assert!(code == Some(0) || is_gone, "{words:?}: {code:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// One machine is as it was.
    async fn is_clean(&self, number: usize, before: &[Snapshot]) {
        let now = Snapshot::take(self.machine(number)).await.unwrap();
        now.assert_same(&before[number], &format!("{number} after it left"));
    }

    /// The machines that are remembered as the cluster's.
    fn claims(&self) -> Vec<String> {
        let path = self
            .home()
            .join("clusters")
            .join(&self.id)
            .join("cluster.json");
        let record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let claims = record["machines"].as_array().unwrap().iter();
        claims
            .map(|claim| claim["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Deploy files that are kept only for machines that left, as they are kept.
    fn earlier_files(&self) -> String {
        let directory = self.home().join("clusters").join(&self.id);
        fs::read_to_string(directory.join("earlier-files.json")).unwrap()
    }

    /// How much memory a run needs that changes nothing, in KiB.
    fn memory_of_a_deploy(&self, file: &Path) -> u64 {
        let mut command = self.alone(&["deploy", "-f", file.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let number = line.and_then(|line| line.split_whitespace().next());
            most = number
                .and_then(|number| number.parse().ok())
                .unwrap_or(most);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
        assert!(most > 0);
        most
    }
}

/// The last machine, which is not the cluster's, joins it; a budget keeps it; its power fails, it is deleted, and cleaned when it
/// is back.
async fn joined_and_deleted(bench: &Bench, before: &[Snapshot]) {
    let (first, last) = (bench.machine(0), bench.machine(2));
    let name = last.name.as_str();
    let refused = [
        ("delete", vec!["nobody"], "has no machine nobody"),
        (
            "delete",
            vec![&first.name[..], name],
            "these cannot leave a cluster yet",
        ),
        (
            "join",
            vec!["--type", "master", "10.9.9.9"],
            "cannot join a cluster yet",
        ),
        ("join", vec!["10.9.9.9", "--name", &first.name], "error["),
    ];
    for (command, words, said) in refused {
        let told = bench.hatchery_by_id(2, command, &words);
        assert!(told.contains(said), "{told}");
    }
    let address = last.address.to_string();
    let hook = bench.scripts(&[(
        "joins.sh",
        "[ \"$EGGO_OPERATOR\" = join ] && hostname >/root/joined",
    )]);
    let hook = hook[0].clone();
    let words = [
        "--name",
        name,
        "--arch",
        "amd64",
        "--posthook",
        &hook,
        &address,
    ];
    let joined = bench.hatchery_by_id(0, "join", &words);
    assert!(joined.contains(", 2 workers, "), "{joined}");
    bench.inside(2, "rm /root/joined").await;
    let again = bench.hatchery_by_id(0, "join", &["--name", name, &address]);
    assert!(again.contains("nothing had to be changed"), "{again}");
    bench.inside(0, "[ ! -e /root/joined ]").await;

    // Every pod has to stay where it is.
    bench.kubectl("scale deployment web --replicas=6").await;
    bench
        .kubectl("rollout status deployment/web --timeout=120s")
        .await;
    bench.kubectl("delete pdb web").await;
    bench
        .kubectl("create pdb web --selector=app=web --min-available=6")
        .await;
    let held = bench.hatchery_by_id(3, "delete", &["--drain-timeout", "5s", name]);
    for word in [
        "waited 5 s for pods to leave node",
        "disruption budget web needs 6 healthy pods",
        "--force",
    ] {
        assert!(held.contains(word), "{word:?} is not in: {held}");
    }
    bench.inside(2, "systemctl is-active kubelet").await;

    // A budget cannot keep pods that are lost with their machine.
    bench.lab.fault(name, Fault::Stop).await.unwrap();
    let lost = bench.hatchery_by_id(3, "delete", &[name]);
    assert!(lost.contains(&format!("  not done: {name}\n")), "{lost}");
    let nodes = bench.kubectl("get nodes -o name").await;
    assert!(!nodes.contains(name), "{nodes}");
    bench
        .kubectl("rollout status deployment/web --timeout=120s")
        .await;
    let host = ["--host", name, "--yes"];
    let away = bench.hatchery_by_id(3, "cleanup", &host);
    assert!(away.contains(&format!("not clean: {name}\n")), "{away}");

    // It is back, and is as it was; the rest of the cluster is not touched.
    bench.lab.fault(name, Fault::Start).await.unwrap();
    let running = bench.started().await;
    let member = bench.hatchery_by_id(2, "cleanup", &["--host", &first.name, "--yes"]);
    for words in [
        format!("{} is part of cluster {}", first.name, bench.id),
        format!("delete --id {} {}", bench.id, first.name),
    ] {
        assert!(member.contains(&words), "{words:?} is not in: {member}");
    }
    let nobody = bench.hatchery_by_id(2, "cleanup", &["--host", "nobody", "--yes"]);
    let left = format!("still to be cleaned: {name}");
    assert!(nobody.contains(&left), "{nobody}");
    let clean = bench.hatchery_by_id(0, "cleanup", &host);
    assert!(
        clean.contains(&format!("{name} is as it was before cluster")),
        "{clean}"
    );
    bench.is_clean(2, before).await;
    let mut now = bench.started().await;
    now.retain(|unit| unit.starts_with(['0', '1']));
    assert!(now.iter().all(|unit| running.contains(unit)), "{now:?}");
    let stay = [0, 1].map(|number| bench.machine(number).name.clone());
    assert_eq!(bench.claims(), stay);
    let nodes = bench.kubectl("get nodes -o name").await;
    assert!(!nodes.contains(name), "{nodes}");
    for command in [&["delete", name][..], &[&["cleanup"], &host[..]].concat()] {
        let gone = bench.hatchery_by_id(2, command[0], &command[1..]);
        assert!(gone.contains(name), "{gone}");
    }
}
