//! Sessions: many at the same time in one process, each with a cluster of its own.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use hatchery_engine::{
    api_access::Machines,
    authorities::Authorities,
    event::Event,
    observed::Observed,
    outcome::{Outcome, State},
    package::Installation,
    plan,
    reach::Environment,
    session::{Control, Locked, Planned, Removal, Session},
    state::{self, DeployFile, Holder, Home, Stores},
    versions::Versions,
    wanted::Wanted,
};
use hatchery_host::{
    facts,
    machine::{Machine, Managed},
    privilege::Privilege,
    script::Identity,
    transport::memory::Memory,
};
use hatchery_spec::{Cluster, Input, read, value::Version};
use time::OffsetDateTime;
use tokio::sync::watch;

const CLUSTERS: usize = 20;

fn file(number: usize) -> DeployFile {
    let text = format!(
        "cluster-id: c{number}\nruntime: containerd\nmasters: [{{name: m0, ip: 10.0.{number}.1}}]\n\
         workers: [{{name: w0, ip: 10.0.{number}.2}}, {{name: w1, ip: 10.0.{number}.3}}]\n"
    );
    DeployFile {
        text: text.into_bytes(),
        variables: None,
    }
}

fn cluster(file: &DeployFile) -> Cluster {
    let reading = read(Input::private("deploy.yaml", &file.text));
    let said = reading.diagnostics.render(false);
    reading.cluster.unwrap_or_else(|| panic!("{said}"))
}

/// What would be found on machines that are all bare.
fn planned(cluster: &Cluster, memories: &BTreeMap<String, Memory>, identity: &Identity) -> Planned {
    let answer = include_bytes!("../../host/src/facts/answers/debian.txt");
    let asked = UNIX_EPOCH + Duration::from_secs(1_794_787_750);
    let facts = facts::parse(answer, asked, asked).unwrap();
    let names = || cluster.machines().iter().map(|node| node.name.clone());
    let wanted = Wanted {
        cluster: cluster.clone(),
        versions: Versions {
            kubernetes: Version::parse("1.37.0").unwrap(),
            containerd: None,
            etcd: None,
            coredns: None,
        },
        installations: names()
            .map(|name| (name, Installation::default()))
            .collect(),
        manifests: Vec::new(),
        images: Vec::new(),
    };
    let reply = || Ok((facts.clone(), Managed::default()));
    let observed = Observed::new(names().map(|name| (name, reply())));
    let machine = |name: &hatchery_spec::value::Name| {
        let memory = Arc::new(memories[name.as_str()].clone());
        Arc::new(Machine::new(memory, Privilege::Root, identity.clone()))
    };
    let machines: Machines = names().map(|name| (name.clone(), machine(&name))).collect();
    let plan = plan::make(&wanted, &observed, OffsetDateTime::now_utc()).unwrap();
    Planned {
        wanted,
        observed,
        machines,
        findings: Vec::new(),
        plan,
        formed: false,
    }
}

/// Deploys a cluster until its API would have to answer, and takes it away again.
async fn one_cluster(number: usize, stores: Arc<dyn Stores>, cache: &Path) {
    let file = file(number);
    let cluster = cluster(&file);
    let environment = Environment::new(cache.to_owned(), None, |_| None);
    let session = Session::open(Arc::clone(&stores), &cluster.id, environment);
    let holder = Holder::this_process("deploy", OffsetDateTime::now_utc());
    let mut session = session.await.unwrap().lock(holder.clone()).await.unwrap();
    let memories: BTreeMap<_, _> = ["m0", "w0", "w1"]
        .map(|name| (name.to_owned(), Memory::new(name)))
        .into();
    let planned = planned(&cluster, &memories, session.identity());
    let authorities = session.make_authorities(&planned).await.unwrap();

    let (stop, stopped) = watch::channel(false);
    let failures = Mutex::new(Vec::new());
    let emit = |event: Event| match event {
        Event::Started { title, .. } if title == "API ready" => {
            stop.send_replace(true);
        }
        Event::Failed { reason, .. } => failures.lock().unwrap().push(reason),
        _ => {}
    };
    let control = Control {
        emit: &emit,
        stop: stopped,
    };
    let outcome = session.run(&planned, &file, &authorities, control).await;
    let outcome = outcome.unwrap();
    assert_eq!(*failures.lock().unwrap(), [""; 0]);
    assert_eq!(outcome.state, State::Stopped);
    assert!(outcome.changes > 50, "{outcome:?}");
    assert_eq!(session.record().unwrap().claims().len(), 3);
    // Nobody else works on it meanwhile, and everybody may look.
    let listed = state::list(stores.as_ref()).await.unwrap();
    assert!(listed.iter().any(|one| one.name == cluster.id));

    let (_stop, stopped) = watch::channel(false);
    let control = Control {
        emit: &|_| (),
        stop: stopped,
    };
    let back = session
        .roll_back(&cluster, &planned.machines, control)
        .await;
    let (outcome, is_forgotten) = back.unwrap();
    assert_eq!((outcome.state, is_forgotten), (State::Done, true));
    assert!(memories.values().all(Memory::is_untouched));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_process_holds_twenty_clusters() {
    let home = tempfile::tempdir().unwrap();
    let stores: Arc<dyn Stores> = Arc::new(Home::new(home.path()));
    let clusters: Vec<_> = (0..CLUSTERS)
        .map(|number| {
            let (stores, cache) = (Arc::clone(&stores), home.path().join("cache"));
            // Each may go on on another thread.
            tokio::spawn(async move { one_cluster(number, stores, &cache).await })
        })
        .collect();
    for cluster in clusters {
        cluster.await.unwrap();
    }
    assert!(state::list(stores.as_ref()).await.unwrap().is_empty());
}

/// Who looks at a cluster is not kept out by who changes it, and two do not change it at once.
#[tokio::test]
async fn a_cluster_is_changed_by_one_and_seen_by_all() {
    let home = tempfile::tempdir().unwrap();
    let stores: Arc<dyn Stores> = Arc::new(Home::new(home.path()));
    let id = cluster(&file(1)).id;
    let open = || {
        let environment = Environment::new(home.path().join("cache"), None, |_| None);
        Session::open(Arc::clone(&stores), &id, environment)
    };
    let holder = || Holder::this_process("deploy", OffsetDateTime::now_utc());
    let locked = open().await.unwrap().lock(holder()).await.unwrap();
    assert!(open().await.unwrap().record().is_none());
    let refused = open().await.unwrap().lock(holder()).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("another run works on this cluster: deploy"),
        "{refused}"
    );
    drop(locked);
    open().await.unwrap().lock(holder()).await.unwrap();
}

/// An operator holds many sessions: whatever one does may go on on another thread. Nothing is run here.
#[expect(dead_code, reason = "that it compiles is the test")]
fn all_that_a_session_does_may_move(
    session: &Session,
    locked: Locked,
    (cluster, planned, removal): (&Cluster, &Planned, &Removal),
    (authorities, outcome): (&Authorities, &Outcome),
    control: Control<'_>,
) {
    fn is_send<T: Send>(_: T) {}
    is_send(session.with_leaving(cluster));
    is_send(session.plan(cluster));
    is_send(session.diff(planned, authorities, false));
    is_send(session.foreseen_authorities(planned));
    is_send(session.status(cluster, Duration::ZERO));
    is_send(session.plan_removal(cluster));
    is_send(locked.was_up(planned));
    is_send(locked.remove(removal, &planned.machines, control));
    is_send(locked.forget(removal, outcome, false));
}
