//! Machines with nothing to change are asked once.

use hatchery_host::transport::memory::Failure;

use super::*;
use crate::plan::Lane;

/// The plan of these tests: three tasks on the first machine, two on the other that need the second of those.
fn plan() -> Plan {
    plan_of(vec![
        task("m0", "one", &[]),
        task("m0", "two", &[0]),
        task("m0", "three", &[1]),
        task("w0", "four", &[1]),
        task("w0", "five", &[]),
    ])
}

/// Two machines on which the plan has been executed, and what was asked of each since.
struct Deployed {
    place: Place,
    before: Vec<usize>,
}

impl Deployed {
    async fn new() -> Self {
        let mut place = Place::new().await;
        assert_eq!(place.execute(&plan()).await.changes, 5);
        let mut replies = Vec::new();
        for (name, machine) in &place.machines {
            replies.push((name.clone(), machine.facts(Duration::from_secs(5)).await));
        }
        place.observed = Observed::new(replies);
        let before = place.memories.iter().map(|one| one.log().asked.len());
        Self {
            before: before.collect(),
            place,
        }
    }

    fn write(&self, machine: usize, file: &str) {
        let written = self.place.memories[machine].write(&format!("/etc/{file}"), *b"by hand");
        written.unwrap();
    }

    fn asked(&self) -> Vec<Vec<&'static str>> {
        let machines = self.place.memories.iter().zip(&self.before);
        machines
            .map(|(machine, before)| machine.log().asked[*before..].to_vec())
            .collect()
    }
}

#[tokio::test]
async fn where_nothing_is_to_be_done_a_machine_is_asked_once() {
    let deployed = Deployed::new().await;
    let ended = StdMutex::new(Vec::new());
    let emit = |event: Event| {
        if let Event::Finished { task, changes, .. } = event {
            ended.lock().unwrap().push((task, changes));
        }
    };
    let (_stop, stopped) = watch::channel(false);
    let executed = deployed.place.run(&emit, stopped).execute(&plan()).await;
    assert_eq!((executed.changes, executed.failures.len()), (0, 0));
    let mut ended = ended.into_inner().unwrap();
    ended.sort_unstable();
    assert_eq!(ended, [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]);
    assert_eq!(deployed.asked(), [["look"], ["look"]]);
}

#[tokio::test]
async fn what_follows_a_change_is_asked_again() {
    let deployed = Deployed::new().await;
    deployed.write(0, "two");
    let executed = deployed.place.execute(&plan()).await;
    assert_eq!((executed.changes, executed.failures.len()), (1, 0));
    // The second is asked and sent what it lacks; the third comes after it, and so does the fourth, elsewhere.
    assert_eq!(
        deployed.asked(),
        [
            vec!["look", "apply", "apply", "apply"],
            vec!["look", "apply"]
        ]
    );
    assert_eq!(
        &*deployed.place.memories[0].file("/etc/two").unwrap(),
        b"two"
    );
}

/// What an earlier task of the run undoes is seen by a later one, although all was well when the machine was asked.
#[tokio::test]
async fn an_answer_does_not_outlive_a_change_on_the_machine() {
    let deployed = Deployed::new().await;
    deployed.write(0, "one");
    let memory = &deployed.place.memories[0];
    let emit = |event: Event| {
        // As a restarted service may do it.
        if matches!(event, Event::Finished { task: 0, .. }) {
            memory.write("/etc/three", *b"by a service").unwrap();
        }
    };
    let (_stop, stopped) = watch::channel(false);
    let executed = deployed.place.run(&emit, stopped).execute(&plan()).await;
    assert_eq!((executed.changes, executed.failures.len()), (2, 0));
    assert_eq!(&*memory.file("/etc/three").unwrap(), b"three");
}

/// A machine that was never reached by the cluster has everything to change, which no question need tell.
#[tokio::test]
async fn a_new_machine_is_not_asked_beforehand() {
    let mut place = Place::new().await;
    let mut replies = Vec::new();
    for (name, machine) in &place.machines {
        replies.push((name.clone(), machine.facts(Duration::from_secs(5)).await));
    }
    place.observed = Observed::new(replies);
    assert_eq!(place.execute(&plan()).await.changes, 5);
    assert!(!place.memories[0].log().asked.contains(&"look"));
}

/// What came from another owner is known to be needed by the new one before the old one gives it up.
#[tokio::test]
async fn who_is_not_on_record_as_an_owner_applies() {
    let deployed = Deployed::new().await;
    let mut plan = plan();
    for task in &mut plan.tasks {
        if task.title == "two"
            && let Work::Machine { owner, .. } = &mut task.work
        {
            *owner = Owner::Worker;
        }
    }
    // In a lane a task looks by itself before it waits for its turn.
    plan.tasks[2].concurrency = Concurrency::OneByOne(Lane::Workers);
    if let Work::Machine { owner, .. } = &mut plan.tasks[2].work {
        *owner = Owner::Worker;
    }
    let executed = deployed.place.execute(&plan).await;
    assert_eq!((executed.changes, executed.failures.len()), (0, 0));
    assert_eq!(
        deployed.asked(),
        [vec!["look", "apply", "look", "apply"], vec!["look"]]
    );
    let machine = &deployed.place.machines[&named("m0")];
    let (_, managed) = machine.facts(Duration::from_secs(5)).await.unwrap();
    for name in ["/etc/two", "/etc/three"] {
        let mut resources = managed.resources.iter();
        let one = resources.find(|one| one.name == name).unwrap();
        let owner = Owner::Worker.word().to_string();
        assert!(one.owners.contains(&owner), "{one:?}");
    }
}

#[tokio::test]
async fn a_machine_on_which_another_run_is_at_work_is_not_believed() {
    let deployed = Deployed::new().await;
    deployed.place.memories[0].inject(Failure::Busy {
        run: "theirs".into(),
    });
    let memory = &deployed.place.memories[0];
    let emit = |event: Event| {
        if matches!(event, Event::Step { step, .. } if step == "waiting for run theirs") {
            memory.heal();
        }
    };
    let (_stop, stopped) = watch::channel(false);
    let executed = deployed.place.run(&emit, stopped).execute(&plan()).await;
    assert_eq!((executed.changes, executed.failures.len()), (0, 0));
    assert_eq!(
        deployed.asked(),
        [vec!["look", "apply", "apply", "apply"], vec!["look"]]
    );
}
