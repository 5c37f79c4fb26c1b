//! Ctrl-C in the middle: the machine is in a clean state, and the same command goes on.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::bench::Bench;

/// A deploy that has come so far that this line was printed.
fn until(bench: &Bench, words: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = bench
        .command("deploy -o json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut seen) = (String::new(), String::new());
    while !line.contains(words) {
        line.clear();
        assert_ne!(
            output.read_line(&mut line).unwrap(),
            0,
            "no {words}: {seen}"
        );
        seen += &line;
    }
    (child, output)
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_and_run_again() {
    let bench = Bench::new("t-stop", 1, str::to_owned).await;
    let left = "pgrep -fa 'sh [.]/run|/var/lib/[h]atchery|sshd:.*notty' || true";

    // Once: what is under way is finished, and nothing else is begun.
    let (mut child, mut output) = until(&bench, "\"title\":\"etcd\"");
    interrupt(&child);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    println!("{rest}{said}");
    assert!(rest.contains("\"state\":\"stopped\""), "{rest}");
    assert_eq!(bench.inside(0, left).await, "");

    // Twice: at once.
    let (mut child, _output) = until(&bench, "\"title\":\"master\"");
    interrupt(&child);
    tokio::time::sleep(Duration::from_millis(100)).await;
    interrupt(&child);
    let begin = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );

    let made = bench.hatchery(0, "deploy");
    assert!(made.contains("is up"), "{made}");
    let nodes = bench.kubectl("get nodes --no-headers").await;
    assert_eq!(nodes.matches(" Ready ").count(), 1, "{nodes}");
}
