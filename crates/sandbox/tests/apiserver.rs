//! The real API server: it works like one, several tests can share it, and it never outlives
//! its owner.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use futures::{TryStreamExt as _, pin_mut};
use hatchery_sandbox::apiserver::{ApiServer, Error, Options};
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenReview},
        core::v1::{ConfigMap, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, CustomResource, CustomResourceExt as _, ResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt as _,
        wait::{await_condition, conditions},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(30);

async fn shared() -> &'static ApiServer {
    let server = ApiServer::shared().await.unwrap();
    println!(
        "API server ready after {:.2} s",
        server.started_in().as_secs_f64()
    );
    server
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "test.hatchery.example",
    version = "v1",
    kind = "Nest",
    namespaced
)]
struct NestSpec {
    #[schemars(range(min = 1))]
    eggs: u32,
}

#[tokio::test]
async fn a_custom_resource_is_applied_and_seen_through_a_watch() {
    let server = shared().await;
    let client = server.client().unwrap();
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    crds.create(&PostParams::default(), &Nest::crd())
        .await
        .unwrap();
    let established = await_condition(
        crds,
        "nests.test.hatchery.example",
        conditions::is_crd_established(),
    );
    timeout(DEADLINE, established).await.unwrap().unwrap();

    let namespace = server.namespace("nests").await.unwrap();
    let nests = Api::<Nest>::namespaced(client, &namespace);
    let seen = watcher(nests.clone(), watcher::Config::default()).applied_objects();
    pin_mut!(seen);
    let apply = PatchParams::apply("test");
    for eggs in [3, 4] {
        let nest = Nest::new("oak", NestSpec { eggs });
        nests
            .patch("oak", &apply, &Patch::Apply(&nest))
            .await
            .unwrap();
        let nest = timeout(DEADLINE, seen.try_next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!((nest.name_any().as_str(), nest.spec.eggs), ("oak", eggs));
    }

    let empty = Nest::new("oak", NestSpec { eggs: 0 });
    let refused = nests
        .patch("oak", &apply, &Patch::Apply(&empty))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("spec.eggs"), "{refused}");
}

/// Two tests, two runtimes, one server: each sees its own object only.
async fn keeps_to_its_own_namespace(content: &str) {
    let server = shared().await;
    let namespace = server.namespace("share").await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(server.client().unwrap(), &namespace);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("same-name".into()),
            ..ObjectMeta::default()
        },
        data: Some([("content".into(), content.into())].into()),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let found = maps.list(&kube::api::ListParams::default()).await.unwrap();
    let contents: Vec<_> = found
        .iter()
        .map(|map| map.data.clone().unwrap()["content"].clone())
        .collect();
    assert_eq!(contents, [content]);
}

#[tokio::test]
async fn the_first_test_of_two_keeps_to_its_namespace() {
    keeps_to_its_own_namespace("first").await;
}

#[tokio::test]
async fn the_second_test_of_two_keeps_to_its_namespace() {
    keeps_to_its_own_namespace("second").await;
}

#[tokio::test]
async fn files_are_private_and_the_kubeconfig_has_no_stranger_in() {
    let server = shared().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(server.dir()), 0o700);
    assert_eq!(mode(&server.kubeconfig_path()), 0o600);
    for process in processes_of(server.dir()) {
        assert!(!process.command_line.contains("PRIVATE KEY"), "{process:?}");
    }

    let text = fs::read_to_string(server.kubeconfig_path()).unwrap();
    let mut parsed = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    parsed.auth_infos[0].auth_info = None;
    let mut config = kube::Config::from_custom_kubeconfig(parsed, &Default::default())
        .await
        .unwrap();
    config.proxy_url = None;
    let stranger = kube::Client::try_from(config).unwrap();
    let refused = Api::<ConfigMap>::default_namespaced(stranger)
        .list(&Default::default())
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("system:anonymous")
    );
}

/// The server signs with, and trusts, the ECDSA service-account key that `pki` makes.
#[tokio::test]
async fn a_service_account_token_is_accepted() {
    let server = shared().await;
    let namespace = server.namespace("accounts").await.unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(server.client().unwrap(), &namespace);
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some("robot".into()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    let post = PostParams::default();
    accounts.create(&post, &account).await.unwrap();
    let wanted = TokenRequest::default();
    let granted = accounts.create_token_request("robot", &post, &wanted);
    let token = granted.await.unwrap().status.unwrap().token;

    let reviews = Api::<TokenReview>::all(server.client().unwrap());
    let mut review = TokenReview::default();
    review.spec.token = token.unwrap();
    let status = reviews
        .create(&post, &review)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.authenticated, Some(true), "{status:?}");
    let user = format!("system:serviceaccount:{namespace}:robot");
    assert_eq!(status.user.unwrap().username, Some(user));
}

#[tokio::test]
async fn a_dropped_server_is_gone_at_once() {
    let server = ApiServer::start().await.unwrap();
    let dir = server.dir().to_owned();
    assert_runs(&dir);
    drop(server);
    assert_eq!(remains_of(&dir), None);
}

#[tokio::test]
async fn a_failed_start_shows_the_end_of_the_log_and_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let wrong = Options {
        apiserver_flags: vec!["--no-such-flag".into()],
        parent: parent.path().to_owned(),
        ..Options::default()
    };
    let failure = ApiServer::start_with(&wrong).await.unwrap_err().to_string();
    assert!(
        failure.contains("kube-apiserver ended with status 1"),
        "{failure}"
    );
    assert!(
        failure.contains("unknown flag: --no-such-flag"),
        "{failure}"
    );
    assert!(failure.contains("end of etcd's log"), "{failure}");
    assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    assert_eq!(processes_of(parent.path()), []);
}

#[tokio::test]
async fn a_slow_start_ends_at_its_deadline_with_both_logs() {
    let hasty = Options {
        deadline: Duration::from_millis(200),
        ..Options::default()
    };
    let started = Instant::now();
    let failure = ApiServer::start_with(&hasty).await.unwrap_err().to_string();
    assert!(failure.contains("was not ready after 0.2 s"), "{failure}");
    assert!(failure.contains("end of kube-apiserver's log"), "{failure}");
    assert!(started.elapsed() < DEADLINE);
}

/// The words by which a lost port is known are the programs' own: a new version may change them.
#[tokio::test]
async fn a_port_that_stays_taken_is_told_after_some_attempts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let parent = tempfile::tempdir().unwrap();
    let unlucky = Options {
        apiserver_flags: vec![format!("--secure-port={port}")],
        parent: parent.path().to_owned(),
        ..Options::default()
    };
    let failure = ApiServer::start_with(&unlucky).await.unwrap_err();
    assert!(
        matches!(failure, Error::PortTaken { attempts: 5, .. }),
        "{failure}"
    );
    assert!(
        failure.to_string().contains("address already in use"),
        "{failure}"
    );
    assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
}

#[test]
fn nothing_remains_after_a_panic() {
    let (mut child, dir) = run_child("child_that_panics");
    let status = child.wait().unwrap();
    assert!(!status.success(), "the child was to panic");
    assert_vanishes(&dir);
}

#[test]
fn nothing_remains_after_a_kill() {
    let (mut child, dir) = run_child("child_that_waits");
    assert_runs(&dir);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_vanishes(&dir);
}

#[tokio::test]
#[ignore = "runs as the child of nothing_remains_after_a_panic"]
async fn child_that_panics() {
    let server = ApiServer::start().await.unwrap();
    assert_runs(server.dir());
    println!("{DIR_MARK}{}", server.dir().display());
    panic!("on purpose, with a running API server at hand");
}

#[tokio::test]
#[ignore = "runs as the child of nothing_remains_after_a_kill"]
async fn child_that_waits() {
    let server = ApiServer::shared().await.unwrap();
    println!("{DIR_MARK}{}", server.dir().display());
    std::future::pending::<()>().await;
}

const DIR_MARK: &str = "directory of the child: ";

/// Starts this test program again for one test, and returns when that test has a server.
fn run_child(test: &str) -> (Child, PathBuf) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let dir = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.split_once(DIR_MARK).map(|(_, dir)| PathBuf::from(dir)));
    (child, dir.expect("the child starts an API server"))
}

#[derive(Debug, PartialEq)]
struct Process {
    id: String,
    command_line: String,
}

/// The processes whose command line names this directory.
fn processes_of(dir: &Path) -> Vec<Process> {
    let dir = dir.to_str().unwrap();
    let named = |entry: fs::DirEntry| {
        let raw = fs::read(entry.path().join("cmdline")).ok()?;
        let command_line = String::from_utf8_lossy(&raw).replace('\0', " ");
        let id = entry.file_name().to_string_lossy().into_owned();
        command_line
            .contains(dir)
            .then_some(Process { id, command_line })
    };
    fs::read_dir("/proc")
        .unwrap()
        .map(Result::unwrap)
        .filter_map(named)
        .collect()
}

fn assert_runs(dir: &Path) {
    let processes = processes_of(dir);
    for program in ["/etcd ", "/kube-apiserver "] {
        let is_it = |process: &&Process| {
            process
                .command_line
                .split_once(' ')
                .is_some_and(|(first, _)| format!("{first} ").ends_with(program))
        };
        assert_eq!(
            processes.iter().filter(is_it).count(),
            1,
            "{program} in {processes:#?}"
        );
    }
}

/// What is still there of a server that is to be gone.
fn remains_of(dir: &Path) -> Option<String> {
    let processes = processes_of(dir);
    (!processes.is_empty() || dir.exists())
        .then(|| format!("{processes:#?}, directory there: {}", dir.exists()))
}

fn assert_vanishes(dir: &Path) {
    let end = Instant::now() + DEADLINE;
    while let Some(remains) = remains_of(dir) {
        assert!(Instant::now() < end, "{remains}");
        thread::sleep(Duration::from_millis(50));
    }
}
