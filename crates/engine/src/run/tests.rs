mod looks;
mod one_by_one;

use std::{
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use hatchery_host::{
    content::Content,
    machine::Error as MachineError,
    operation::{Access, File, Operation},
    path::MachinePath,
    privilege::Privilege,
    transport::memory::Memory,
};
use hatchery_spec::{Input, read};
use tempfile::TempDir;
use time::OffsetDateTime;

use super::*;
use crate::{
    owner::Owner,
    plan::{Concurrency, Task, TaskId},
    resource::Resource,
    state::{Directory, Holder, Store as _, nobody},
};

struct Place {
    cluster: Cluster,
    authorities: Authorities,
    memories: Vec<Memory>,
    machines: Machines,
    observed: Observed,
    settings: Settings,
}

fn named(text: &str) -> Name {
    Name::parse(text).unwrap()
}

impl Place {
    async fn new() -> Self {
        let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: w0, ip: 10.0.0.2}]\n";
        Self::with(text, vec![Memory::new("m0"), Memory::new("w0")]).await
    }

    async fn with(text: &str, memories: Vec<Memory>) -> Self {
        let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
        let cluster = cluster.unwrap();
        let home = TempDir::new().unwrap();
        let store = Directory::new(home.path(), &cluster.id);
        let now = OffsetDateTime::now_utc();
        let lock = store.lock(Holder::this_process("test", now)).await.unwrap();
        let made = Authorities::load_or_create(&store, &lock, false, None, now).await;
        let machine = |(node, memory): (&hatchery_spec::cluster::Machine, &Memory)| {
            let identity = nobody(&cluster.id);
            let memory = Arc::new(memory.clone());
            let machine = Machine::new(memory, Privilege::Root, identity);
            (node.name.clone(), Arc::new(machine))
        };
        Self {
            machines: cluster
                .machines()
                .iter()
                .zip(&memories)
                .map(machine)
                .collect(),
            observed: Observed::default(),
            authorities: made.unwrap(),
            memories,
            settings: Settings {
                parallel: 8,
                ..Settings::default()
            },
            cluster,
        }
    }

    fn silence(&mut self, machine: &str) {
        let late = MachineError::Deadline {
            host: machine.into(),
            after: Duration::ZERO,
            step: String::new(),
        };
        self.observed = Observed::new([(named(machine), Err(late))]);
    }

    async fn execute(&self, plan: &Plan) -> Executed {
        let (_stop, stopped) = watch::channel(false);
        self.run(&|_| (), stopped).execute(plan).await
    }

    fn run<'a>(
        &'a self,
        emit: &'a (dyn Fn(Event) + Send + Sync),
        stop: watch::Receiver<bool>,
    ) -> Run<'a> {
        let context = Context {
            cluster: &self.cluster,
            machines: &self.machines,
            observed: &self.observed,
            authorities: Some(&self.authorities),
            settings: &self.settings,
            emit,
        };
        Run::new(context, stop)
    }
}

/// The parts of tests, each a file on a machine.
fn task(machine: &str, file: &str, needs: &[usize]) -> Task {
    let operation = Operation::File(File {
        path: MachinePath::new(format!("/etc/{file}")).unwrap(),
        content: Content::bytes(file.as_bytes().to_vec()),
        access: Access::root(0o644).unwrap(),
    });
    Task {
        title: file.into(),
        needs: needs.iter().map(|number| TaskId(*number)).collect(),
        after: Vec::new(),
        concurrency: Concurrency::Free,
        work: Work::Machine {
            machine: named(machine),
            owner: Owner::Prepare,
            resources: vec![Resource::Operation(operation)],
        },
    }
}

fn plan_of(tasks: Vec<Task>) -> Plan {
    Plan {
        tasks,
        notes: Vec::new(),
    }
}

#[tokio::test]
async fn a_stopped_run_finishes_what_is_under_way_and_begins_nothing() {
    let place = Place::new().await;
    // The third waits for its turn on the same machine, the others for what they need.
    let plan = plan_of(vec![
        task("m0", "one", &[]),
        task("w0", "two", &[0]),
        task("m0", "three", &[]),
        task("w0", "four", &[1]),
    ]);
    let (stop, stopped) = watch::channel(false);
    let told = StdMutex::new(Vec::new());
    let emit = |event: Event| {
        if matches!(event, Event::Started { .. }) {
            stop.send_replace(true);
        }
        told.lock().unwrap().push(event);
    };
    let executed = place.run(&emit, stopped).execute(&plan).await;
    assert_eq!(
        (executed.changes, executed.left, executed.failures.len()),
        (1, 3, 0)
    );
    assert!(place.memories[0].file("/etc/one").is_some());
    assert!(place.memories[0].file("/etc/three").is_none());
    assert!(place.memories[1].is_untouched());
    let told = told.into_inner().unwrap();
    let begun: Vec<_> = told
        .iter()
        .filter(|event| matches!(event, Event::Started { .. }))
        .collect();
    assert_eq!(begun.len(), 1, "{told:?}");
    assert!(
        matches!(&told[0], Event::Begun { tasks: 4, machines } if machines.len() == 2),
        "{told:?}"
    );
}

#[tokio::test]
async fn who_is_not_stopped_comes_to_the_end() {
    let place = Place::new().await;
    let plan = plan_of(vec![task("m0", "one", &[]), task("w0", "two", &[0])]);
    let executed = place.execute(&plan).await;
    assert_eq!((executed.changes, executed.left), (2, 0));
}
