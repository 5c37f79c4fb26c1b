mod one_by_one;

use std::sync::Mutex as StdMutex;

use hatchery_host::{
    content::Content,
    operation::{Access, File, Operation},
    path::{MachinePath, Word},
    privilege::Privilege,
    transport::memory::Memory,
};
use hatchery_spec::{Input, read};
use tempfile::TempDir;
use time::OffsetDateTime;

use super::*;
use crate::{
    plan::{Concurrency, Task, TaskId},
    resource::Resource,
    state::{Directory, Holder, Store as _, nobody},
};

struct Place {
    cluster: Cluster,
    authorities: Authorities,
    memories: Vec<Memory>,
    machines: Vec<Arc<Machine>>,
    managed: Vec<Managed>,
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
        let machine = |memory: &Memory| {
            let identity = nobody(&cluster.id);
            Arc::new(Machine::new(
                Arc::new(memory.clone()),
                Privilege::Root,
                identity,
            ))
        };
        Self {
            machines: memories.iter().map(machine).collect(),
            managed: vec![Managed::default(); memories.len()],
            authorities: made.unwrap(),
            memories,
            cluster,
        }
    }
}

fn task(machine: usize, part: &str, needs: &[usize]) -> Task {
    let file = Operation::File(File {
        path: MachinePath::new(format!("/etc/{part}")).unwrap(),
        content: Content::bytes(part.as_bytes().to_vec()),
        access: Access::root(0o644).unwrap(),
    });
    Task {
        title: format!("{}: {part}", ["m0", "w0", "w1"][machine]),
        needs: needs.iter().map(|number| TaskId(*number)).collect(),
        after: Vec::new(),
        concurrency: Concurrency::Free,
        work: Work::Machine {
            machine,
            owner: Word::new(part).unwrap(),
            resources: vec![Resource::Operation(file)],
        },
    }
}

#[tokio::test]
async fn a_stopped_run_finishes_what_is_under_way_and_begins_nothing() {
    let place = Place::new().await;
    let plan = Plan {
        // The third waits for its turn on the same machine, the others for what they need.
        tasks: vec![
            task(0, "one", &[]),
            task(1, "two", &[0]),
            task(0, "three", &[]),
            task(1, "four", &[1]),
        ],
        notes: Vec::new(),
    };
    let (stop, stopped) = watch::channel(false);
    let told = StdMutex::new(Vec::new());
    let emit = |event: Event| {
        if matches!(event, Event::Started { .. }) {
            stop.send_replace(true);
        }
        told.lock().unwrap().push(event);
    };
    let run = Run::new(
        &place.cluster,
        &place.machines,
        &place.managed,
        &place.authorities,
        8,
        &emit,
    );
    let outcome = run.stopped_by(stopped).execute(&plan).await;
    assert_eq!(
        (outcome.changes, outcome.left, outcome.failed.len()),
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
    let plan = Plan {
        tasks: vec![task(0, "one", &[]), task(1, "two", &[0])],
        notes: Vec::new(),
    };
    let (_stop, stopped) = watch::channel(false);
    let run = Run::new(
        &place.cluster,
        &place.machines,
        &place.managed,
        &place.authorities,
        8,
        &|_| (),
    );
    let outcome = run.stopped_by(stopped).execute(&plan).await;
    assert_eq!((outcome.changes, outcome.left), (2, 0));
}
