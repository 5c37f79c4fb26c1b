//! Members of a living etcd: one at a time, each behind the health of all.

use std::sync::Mutex as StdMutex;

use futures::{FutureExt as _, future::BoxFuture};
use hatchery_host::transport::{Connection, Connector, Error};
use tokio::sync::Barrier;

use super::*;
use crate::plan::Lane;

const THREE: &str = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2}, {name: m2, ip: 10.0.0.3}]\n\
    workers: []\n";

/// How often a restarted member says that it is not well.
const SLOW: usize = 3;

/// What is known of three members.
#[derive(Default)]
struct Members {
    /// How often each was asked.
    asked: [usize; 3],
    /// How often each was asked since its configuration changed.
    restarted: [usize; 3],
    /// One that does not come back.
    lost: Option<usize>,
    /// The most that were not well at the same time.
    most: usize,
}

type Shared = Arc<StdMutex<Members>>;

fn members() -> (Shared, Vec<Memory>) {
    let shared = Shared::default();
    let memories: Vec<_> = (0..3).map(|one| Memory::new(format!("m{one}"))).collect();
    let memories = (0..3)
        .map(|one| {
            let (shared, all) = (Arc::clone(&shared), memories.clone());
            let health = move || {
                let members = &mut *shared.lock().unwrap();
                members.asked[one] += 1;
                let is_restarted = |one: usize| all[one].file("/etc/etcd").is_some();
                if is_restarted(one) {
                    members.restarted[one] += 1;
                }
                let is_well = |members: &Members, one: usize| {
                    !is_restarted(one)
                        || (members.lost != Some(one) && members.restarted[one] > SLOW)
                };
                let unwell = (0..3).filter(|one| !is_well(members, *one)).count();
                members.most = members.most.max(unwell);
                let health = is_well(members, one);
                format!("HTTP/1.0 200 OK\r\n\r\n{{\"health\":\"{health}\"}}").into_bytes()
            };
            memories[one].clone().with_port(2381, health)
        })
        .collect();
    (shared, memories)
}

fn plan(concurrency: Concurrency) -> Plan {
    let tasks = (0..3).map(|one| {
        let mut task = task(one, "etcd", &[]);
        task.title = format!("m{one}: etcd");
        task.concurrency = concurrency;
        task
    });
    Plan {
        tasks: tasks.collect(),
        notes: Vec::new(),
    }
}

async fn execute(place: &Place, missing: &[usize]) -> Outcome {
    let run = Run::new(
        &place.cluster,
        &place.machines,
        &place.managed,
        &place.authorities,
        8,
        &|_| (),
    );
    let timeouts = Timeouts {
        restart: Duration::from_secs(2),
        ..Timeouts::default()
    };
    let plan = plan(Concurrency::OneByOne(Lane::Etcd));
    let run = run.with_timeouts(timeouts).without(missing);
    run.execute(&plan).await
}

#[tokio::test]
async fn members_of_a_living_etcd_are_changed_one_at_a_time() {
    let (shared, memories) = members();
    let place = Place::with(THREE, memories).await;
    let outcome = execute(&place, &[]).await;
    assert_eq!((outcome.changes, outcome.failed.len()), (3, 0));
    {
        let members = shared.lock().unwrap();
        assert_eq!(members.most, 1, "two were away at the same time");
        assert!(members.restarted.iter().all(|asked| *asked > SLOW));
    }
    // Nobody is asked where nothing has to be changed.
    let asked = shared.lock().unwrap().asked;
    let outcome = execute(&place, &[]).await;
    assert_eq!((outcome.changes, outcome.failed.len()), (0, 0));
    assert_eq!(shared.lock().unwrap().asked, asked);
}

#[tokio::test]
async fn a_member_that_does_not_come_back_keeps_the_others_as_they_are() {
    let (shared, memories) = members();
    shared.lock().unwrap().lost = Some(0);
    let place = Place::with(THREE, memories).await;
    let outcome = execute(&place, &[]).await;
    let failed: Vec<_> = outcome
        .failed
        .iter()
        .map(|failure| (failure.title.as_str(), failure.reason.as_str()))
        .collect();
    assert_eq!(
        failed,
        [
            (
                "m0: etcd",
                "restarted, and 2 s later etcd is not healthy on m0"
            ),
            ("m1: etcd", "not begun, since “m0: etcd” is not done"),
            ("m2: etcd", "not begun, since “m0: etcd” is not done"),
        ]
    );
    assert!(place.memories[1].is_untouched() && place.memories[2].is_untouched());
}

#[tokio::test]
async fn no_member_is_restarted_that_is_needed_for_the_majority() {
    let (_, memories) = members();
    let place = Place::with(THREE, memories).await;
    // The machine of the third did not answer, so that it has no task either.
    let mut plan = plan(Concurrency::OneByOne(Lane::Etcd));
    plan.tasks.pop();
    let run = Run::new(
        &place.cluster,
        &place.machines,
        &place.managed,
        &place.authorities,
        8,
        &|_| (),
    );
    let outcome = run.without(&[2]).execute(&plan).await;
    assert_eq!(outcome.failed.len(), 2);
    for failure in &outcome.failed {
        assert_eq!(
            failure.reason,
            "not restarted: etcd on m2 does not answer that it is healthy, and this restart would leave 1 of 3 members"
        );
        assert!(failure.remedy.is_some());
    }
    assert!(place.memories.iter().all(Memory::is_untouched));
}

/// A machine that is reached only once all others are being reached too, as a new etcd starts.
struct Meeting(Memory, Arc<Barrier>);

impl Connector for Meeting {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        async move {
            self.1.wait().await;
            self.0.connect().await
        }
        .boxed()
    }
}

#[tokio::test]
async fn founding_members_do_not_wait_for_room() {
    let (_, memories) = members();
    let mut place = Place::with(THREE, memories).await;
    let barrier = Arc::new(Barrier::new(3));
    let meet = |memory: &Memory| {
        let meeting = Meeting(memory.clone(), Arc::clone(&barrier));
        let identity = nobody(&place.cluster.id);
        Arc::new(Machine::new(Arc::new(meeting), Privilege::Root, identity))
    };
    let machines: Vec<_> = place.memories.iter().map(meet).collect();
    place.machines = machines;
    let run = Run::new(
        &place.cluster,
        &place.machines,
        &place.managed,
        &place.authorities,
        1,
        &|_| (),
    );
    let plan = plan(Concurrency::Together);
    let outcome = tokio::time::timeout(Duration::from_secs(20), run.execute(&plan)).await;
    let outcome = outcome.expect("they wait for each other for ever");
    assert_eq!((outcome.changes, outcome.failed.len()), (3, 0));
}
