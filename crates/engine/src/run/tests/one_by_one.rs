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
        let mut task = task(&format!("m{one}"), "etcd", &[]);
        task.concurrency = concurrency;
        task
    });
    plan_of(tasks.collect())
}

async fn execute(place: &mut Place) -> Executed {
    place.settings.restart = Duration::from_secs(2);
    let plan = plan(Concurrency::OneByOne(Lane::Etcd));
    place.execute(&plan).await
}

#[tokio::test]
async fn members_of_a_living_etcd_are_changed_one_at_a_time() {
    let (shared, memories) = members();
    let mut place = Place::with(THREE, memories).await;
    let executed = execute(&mut place).await;
    assert_eq!((executed.changes, executed.failures.len()), (3, 0));
    {
        let members = shared.lock().unwrap();
        assert_eq!(members.most, 1, "two were away at the same time");
        assert!(members.restarted.iter().all(|asked| *asked > SLOW));
    }
    // Nobody is asked where nothing has to be changed.
    let asked = shared.lock().unwrap().asked;
    let executed = execute(&mut place).await;
    assert_eq!((executed.changes, executed.failures.len()), (0, 0));
    assert_eq!(shared.lock().unwrap().asked, asked);
}

#[tokio::test]
async fn a_member_that_does_not_come_back_keeps_the_others_as_they_are() {
    let (shared, memories) = members();
    shared.lock().unwrap().lost = Some(0);
    let mut place = Place::with(THREE, memories).await;
    let executed = execute(&mut place).await;
    let failed: Vec<_> = executed
        .failures
        .iter()
        .map(|failure| (failure.subject.clone(), failure.cause.reason.as_str()))
        .collect();
    let subject = |machine| Subject::Machine(named(machine));
    assert_eq!(
        failed,
        [
            (
                subject("m0"),
                "restarted, and 2 s later etcd is not healthy on m0"
            ),
            (subject("m1"), "not begun, since “m0: etcd” is not done"),
            (subject("m2"), "not begun, since “m0: etcd” is not done"),
        ]
    );
    assert!(place.memories[1].is_untouched() && place.memories[2].is_untouched());
}

#[tokio::test]
async fn no_member_is_restarted_that_is_needed_for_the_majority() {
    let (_, memories) = members();
    let mut place = Place::with(THREE, memories).await;
    // The machine of the third did not answer, so that it has no task either.
    let mut plan = plan(Concurrency::OneByOne(Lane::Etcd));
    plan.tasks.pop();
    place.silence("m2");
    let executed = place.execute(&plan).await;
    assert_eq!(executed.failures.len(), 2);
    for failure in &executed.failures {
        assert_eq!(
            failure.cause.reason,
            "not restarted: etcd on m2 does not answer that it is healthy, and this restart would leave 1 of 3 members"
        );
        assert!(failure.cause.remedy.is_some());
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
        let meeting = Arc::new(Meeting(memory.clone(), Arc::clone(&barrier)));
        let machine = Machine::new(meeting, Privilege::Root, nobody(&place.cluster.id));
        (named(memory.name()), Arc::new(machine))
    };
    place.machines = place.memories.iter().map(meet).collect();
    place.settings.parallel = 1;
    let plan = plan(Concurrency::Together);
    let executed = tokio::time::timeout(Duration::from_secs(20), place.execute(&plan)).await;
    let executed = executed.expect("they wait for each other for ever");
    assert_eq!((executed.changes, executed.failures.len()), (3, 0));
}

const FIVE: &str = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\n\
    workers: [{name: w0, ip: 10.0.0.2}, {name: w1, ip: 10.0.0.3}, {name: w2, ip: 10.0.0.4}, {name: w3, ip: 10.0.0.5}]\n";

/// What is known of workers whose kubelets are restarted.
#[derive(Default)]
struct Kubelets {
    /// Those that do not come back.
    lost: Vec<usize>,
    /// Those that were not well before.
    ill: Vec<usize>,
    /// How often each was asked since it changed.
    restarted: [usize; 4],
    /// The most that were not well at the same time, but for those that never were.
    most: usize,
}

/// Workers, behind a master that has no part in it.
fn workers(kubelets: Kubelets) -> (Arc<StdMutex<Kubelets>>, Vec<Memory>) {
    let shared = Arc::new(StdMutex::new(kubelets));
    let memories: Vec<_> = (0..4).map(|one| Memory::new(format!("w{one}"))).collect();
    let all = memories.clone();
    let answering = (0..4).map(|one| {
        let (shared, all) = (Arc::clone(&shared), all.clone());
        let health = move || {
            let kubelets = &mut *shared.lock().unwrap();
            let is_restarted = |one: usize| all[one].file("/etc/kubelet").is_some();
            if is_restarted(one) {
                kubelets.restarted[one] += 1;
            }
            let is_well = |kubelets: &Kubelets, one: usize| {
                !kubelets.ill.contains(&one)
                    && (!is_restarted(one)
                        || (!kubelets.lost.contains(&one) && kubelets.restarted[one] > SLOW))
            };
            let unwell = (0..4)
                .filter(|one| !kubelets.ill.contains(one) && !is_well(kubelets, *one))
                .count();
            kubelets.most = kubelets.most.max(unwell);
            let code = if is_well(kubelets, one) {
                "200 OK"
            } else {
                "500 Internal Server Error"
            };
            format!("HTTP/1.0 {code}\r\n\r\nx").into_bytes()
        };
        memories[one].clone().with_port(10_248, health)
    });
    let machines = std::iter::once(Memory::new("m0")).chain(answering);
    let machines = machines.collect();
    (shared, machines)
}

async fn change_kubelets(kubelets: Kubelets, limit: &str) -> (Executed, usize, Vec<bool>) {
    let (shared, memories) = workers(kubelets);
    let mut place = Place::with(FIVE, memories).await;
    place.settings.restart = Duration::from_secs(2);
    place.settings.max_unavailable = limit.parse().unwrap();
    let tasks = (0..4).map(|one| {
        let mut task = task(&format!("w{one}"), "kubelet", &[]);
        task.concurrency = Concurrency::OneByOne(Lane::Workers);
        task
    });
    let executed = place.execute(&plan_of(tasks.collect())).await;
    let most = shared.lock().unwrap().most;
    let workers = place.memories[1..].iter();
    let touched = workers.map(|memory| !memory.is_untouched()).collect();
    (executed, most, touched)
}

#[tokio::test]
async fn only_so_many_nodes_are_changed_at_the_same_time() {
    for (limit, allowed) in [("1", 1), ("2", 2), ("50%", 2)] {
        let (executed, most, touched) = change_kubelets(Kubelets::default(), limit).await;
        assert_eq!((executed.changes, executed.failures.len()), (4, 0));
        assert!((1..=allowed).contains(&most), "{most} at once with {limit}");
        assert_eq!(touched, [true; 4]);
    }
}

#[tokio::test]
async fn nodes_that_do_not_come_back_keep_the_others_as_they_are() {
    let lost = |lost: &[usize]| Kubelets {
        lost: lost.to_vec(),
        ..Kubelets::default()
    };
    let (executed, _, touched) = change_kubelets(lost(&[0]), "1").await;
    assert_eq!((executed.changes, executed.failures.len()), (0, 4));
    assert_eq!(touched.iter().filter(|touched| **touched).count(), 1);
    // One may be unavailable, and there is room for another: the rest goes on one by one.
    let (executed, most, touched) = change_kubelets(lost(&[0]), "2").await;
    assert_eq!((executed.changes, executed.failures.len()), (3, 1));
    assert!(most <= 2, "{most}");
    assert_eq!(touched, [true; 4]);
}

#[tokio::test]
async fn a_node_that_was_not_well_before_stops_nobody() {
    let ill = Kubelets {
        ill: vec![0],
        ..Kubelets::default()
    };
    let (executed, _, touched) = change_kubelets(ill, "1").await;
    assert_eq!((executed.changes, executed.failures.len()), (4, 0));
    assert_eq!(touched, [true; 4]);
}
