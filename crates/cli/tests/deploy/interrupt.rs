//! Ctrl-C in the middle: the machine is in a clean state, and the same command goes on.

use std::{
    io::{BufRead, BufReader, Read as _},
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use crate::bench::Bench;

struct Deploy {
    child: Child,
    progress: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

fn until(words: &str, stream: &mut impl BufRead) {
    let mut seen = String::new();
    while !seen.contains(words) {
        let read = stream.read_line(&mut seen).unwrap();
        assert_ne!(read, 0, "no {words:?} in: {seen}");
    }
}

impl Deploy {
    /// One that has come so far that these words were printed.
    fn until(bench: &Bench, words: &str) -> Self {
        let mut command = bench.command("deploy");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut progress = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        until(words, &mut progress);
        Self {
            child,
            progress,
            errors,
        }
    }

    fn signal(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// It is heard.
    fn interrupt(&mut self) {
        self.signal();
        until("stopping: no new task begins", &mut self.errors);
    }

    /// What is still said until the end of one that was interrupted.
    fn end(mut self) -> String {
        let mut said = String::new();
        self.progress.read_to_string(&mut said).unwrap();
        self.errors.read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{said}");
        said
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_and_run_again() {
    let bench = Bench::new("t-stop", 1, str::to_owned).await;

    // Once: what is under way is finished, and nothing else is begun.
    let mut deploy = Deploy::until(&bench, ": prepare: ");
    deploy.interrupt();
    let said = deploy.end();
    for words in [
        "is not finished: ",
        "run the same command again; what is done stays done",
        "puts the machines back as they were",
    ] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    assert!(!said.contains(": worker: "), "{said}");
    let ours =
        "ps ax -o args= | grep '[s]h ./run\\|[/]var/lib/hatchery\\|[s]shd: root@notty' || true";
    assert_eq!(bench.inside(0, ours).await, "");

    // Twice: at once. What was under way may go on for a moment; the next run waits for it.
    let mut deploy = Deploy::until(&bench, ": etcd: ");
    deploy.interrupt();
    deploy.signal();
    let begin = Instant::now();
    let said = deploy.end();
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}: {said}");
    assert!(
        said.contains("left at once; run the same command again"),
        "{said}"
    );

    let made = bench.hatchery(0, "deploy");
    assert!(made.contains("is up"), "{made}");
    let nodes = bench.kubectl("get nodes --no-headers").await;
    assert_eq!(nodes.matches(" Ready ").count(), 1, "{nodes}");
}
