//! Processes that are killed in the middle.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::*;

const HOME: &str = "HATCHERY_TEST_HOME";

/// Begins one of the ignored tests below as a process of its own, and waits until it says that it is ready.
fn begin(test: &str, place: &Place) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("state::tests::crash::{test}")])
        .args(["--ignored", "--nocapture"])
        .env(HOME, place.home())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines
        .map_while(Result::ok)
        .any(|line| line.contains("ready"));
    assert!(ready, "{test} did not begin");
    child
}

fn killed(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Nothing when the process was not begun by a test.
fn directory_of_process() -> Option<Directory> {
    let home = std::env::var_os(HOME)?;
    Some(Directory::new(Path::new(&home), &name("demo")))
}

/// A process whose test failed must not stay for ever.
const LONGEST: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "a process for another test"]
async fn holds_the_lock() {
    let Some(store) = directory_of_process() else {
        return;
    };
    let _lock = store.lock(holder("deploy")).await.unwrap();
    println!("ready");
    tokio::time::sleep(LONGEST).await;
}

#[tokio::test]
#[ignore = "a process for another test"]
async fn writes_on_and_on() {
    let Some(store) = directory_of_process() else {
        return;
    };
    println!("ready");
    let begin = Instant::now();
    for letter in ["a", "b"].into_iter().cycle() {
        let written = write(&store, &letter.repeat(300_000), Expected::Anything).await;
        written.unwrap();
        if begin.elapsed() > LONGEST {
            break;
        }
    }
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free() {
    let place = Place::new();
    let store = place.directory();
    let child = begin("holds_the_lock", &place);
    let refused = store.lock(holder("join")).await.unwrap_err();
    let Error::Locked {
        holder: Some(found),
    } = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!((found.pid, found.command.as_str()), (child.id(), "deploy"));
    killed(child);
    let lock = store.lock(holder("join")).await.unwrap();
    let Err(Error::Locked {
        holder: Some(found),
    }) = store.lock(holder("x")).await
    else {
        panic!("it is held")
    };
    assert_eq!(found.command, "join", "the dead one's word does not remain");
    drop(lock);
}

#[tokio::test]
async fn a_killed_writer_leaves_a_whole_value() {
    let place = Place::new();
    let store = place.directory();
    write(&store, &"b".repeat(300_000), Expected::Nothing)
        .await
        .unwrap();
    let mut cut_off = 0;
    for round in 0..12 {
        let child = begin("writes_on_and_on", &place);
        tokio::time::sleep(Duration::from_micros(700 * round)).await;
        killed(child);
        let text = read(&store, KEY).await.unwrap();
        assert_eq!(text.len(), 300_000);
        let first = &text[..1];
        assert_eq!(text.matches(first).count(), 300_000);
        cut_off += unfinished(&store.path().join("pki")).len();
        write(&store, &text, Expected::Anything).await.unwrap();
        assert_eq!(unfinished(&store.path().join("pki")), [""; 0]);
    }
    eprintln!("{cut_off} writers were cut off in the middle");
}
