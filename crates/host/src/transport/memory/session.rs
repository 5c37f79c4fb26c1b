//! One command on a machine in memory, from its login to its exit.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    time::Instant,
};

use super::{
    Shared,
    failure::Failure,
    incoming,
    login::{Command, Work},
    look::look,
    request::{Call, Request, Step},
};
use crate::{
    facts,
    machine::MANAGED_END,
    transport::{Exit, ending::Ending},
};

/// Why a script does not go on.
pub(super) enum Stop {
    /// It has said its last word.
    Ended(u32),
    /// It has ended and so has its control process, or it was killed.
    Gone,
}

/// The three streams of a command and the connection that carries them.
pub(super) struct Session {
    pub(super) machine: Arc<Shared>,
    pub(super) input: BufReader<DuplexStream>,
    pub(super) output: DuplexStream,
    pub(super) errors: DuplexStream,
    pub(super) connection: Ending,
    /// Whether what is said is also written down.
    pub(super) reporting: bool,
}

impl Session {
    /// Runs a command line.
    pub(super) async fn run(mut self, line: String) -> Exit {
        let latency = self.machine.lock().latency;
        if let Some(latency) = latency {
            tokio::time::sleep(latency).await;
        }
        let Some(command) = Command::read(&line) else {
            let _ = self
                .errors
                .write_all(b"sh: 1: a machine in memory has no such command\n")
                .await;
            return Exit::Code(127);
        };
        let login = self.machine.lock().login.clone();
        let begun = command
            .begin(&login, &mut self.input, &mut self.output, &mut self.errors)
            .await;
        if let Err(refused) = begun {
            let _ = self.errors.write_all(refused.complaint.as_bytes()).await;
            return Exit::Code(refused.code);
        }
        let stop = match command.work {
            Work::Task => self.task().await,
            Work::Question => self.question().await,
        };
        match stop {
            Stop::Ended(code) => Exit::Code(code),
            Stop::Gone => Exit::Signal("KILL".into()),
        }
    }

    async fn task(&mut self) -> Stop {
        let room = {
            let mut state = self.machine.lock();
            state.store.begun = true;
            state.failures.iter().find_map(|failure| match failure {
                Failure::DiskFull { after } => Some(*after),
                _ => None,
            })
        };
        let mut taken = 0;
        let received = incoming::receive(&mut self.input, room, &mut taken).await;
        self.machine.lock().log.bytes += taken;
        let incoming = match received {
            Ok(incoming) => incoming,
            Err(complaint) => {
                let _ = self.errors.write_all(complaint.as_bytes()).await;
                return Stop::Ended(97);
            }
        };
        match Request::read(&incoming.script) {
            Some(request) if request.call == Call::Apply => {
                drop(incoming.script);
                self.machine.lock().log.asked.push("apply");
                self.locked(&request, incoming.contents).await
            }
            _ => self.misunderstood().await,
        }
    }

    async fn question(&mut self) -> Stop {
        let mut text = String::new();
        let read = self.input.read_to_string(&mut text).await;
        self.machine.lock().log.bytes += text.len() as u64;
        if read.is_err() {
            return Stop::Gone;
        }
        if let Some(before) = text.strip_suffix(facts::SCRIPT) {
            return self.facts(before).await;
        }
        let Some(request) = Request::read(&text) else {
            return self.misunderstood().await;
        };
        drop(text);
        let word = match request.call {
            Call::Apply => return self.misunderstood().await,
            Call::Look => "look",
            Call::Undo(_) => "undo",
            Call::Outcome => "outcome",
            Call::Managed => "managed",
        };
        self.machine.lock().log.asked.push(word);
        match &request.call {
            Call::Look => self.look(&request).await,
            Call::Undo(_) if !self.machine.lock().store.begun => {
                self.say(&format!("hatchery 1 {}", request.run)).await;
                self.end("ok").await
            }
            Call::Outcome => self.outcome(&request).await,
            Call::Managed => {
                let managed = self.machine.lock().managed();
                self.print(&managed).await;
                Stop::Ended(0)
            }
            _ => self.locked(&request, BTreeMap::new()).await,
        }
    }

    async fn misunderstood(&mut self) -> Stop {
        let _ = self
            .errors
            .write_all(b"sh: 1: a machine in memory does not understand this script\n")
            .await;
        Stop::Ended(2)
    }

    async fn facts(&mut self, before: &str) -> Stop {
        let answer = {
            let mut state = self.machine.lock();
            state.log.asked.push("facts");
            let managed = match before.contains(&format!("echo {MANAGED_END}")) {
                true => state.managed() + MANAGED_END,
                false => String::new(),
            };
            managed + &state.facts.answer(&state.world, SystemTime::now())
        };
        self.print(&answer).await;
        Stop::Ended(0)
    }

    /// Writes to the connection, which may be gone.
    pub(super) async fn print(&mut self, text: &str) {
        if self.connection.has_come() {
            return;
        }
        tokio::select! {
            biased;
            _ = self.connection.comes() => {}
            _ = self.output.write_all(text.as_bytes()) => {}
        }
    }

    /// A line for the control process, and for the report that a later connection reads.
    pub(super) async fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        if self.reporting
            && let Some((_, report)) = &mut self.machine.lock().store.report
        {
            report.push_str(&line);
        }
        self.print(&line).await;
    }

    pub(super) async fn end(&mut self, how: &str) -> Stop {
        self.say(&format!("end {how}")).await;
        Stop::Ended(u32::from(how != "ok"))
    }

    pub(super) async fn fail(&mut self, number: usize, text: &str) -> Stop {
        self.say(&format!("failed {number} {}\n{text}", text.len()))
            .await;
        self.end("failed").await
    }

    async fn look(&mut self, request: &Request) -> Stop {
        let mut stop = Stop::Ended(0);
        for steps in &request.looks {
            stop = self.look_at(request, steps).await;
        }
        stop
    }

    async fn look_at(&mut self, request: &Request, steps: &[Step]) -> Stop {
        self.say(&format!("hatchery 1 {}", request.run)).await;
        let found = {
            let state = self.machine.lock();
            match &state.store.cluster {
                Some((id, name)) if *id != request.cluster => Err(format!("held {id} {name}")),
                _ => Ok(look(&state.world, &state.store, steps)),
            }
        };
        let needs = match found {
            Ok(needs) => needs,
            Err(held) => {
                self.say(&held).await;
                return self.end("failed").await;
            }
        };
        if self.machine.held_until(Instant::now()).await.is_some() {
            self.say("unsettled").await;
        }
        for (number, need) in needs.iter().enumerate() {
            match need.as_str() {
                "" => self.say(&format!("unchanged {number}")).await,
                need => self.say(&format!("would {number} {need}")).await,
            }
        }
        self.end("ok").await
    }

    async fn outcome(&mut self, request: &Request) -> Stop {
        if !self.machine.lock().store.begun {
            self.print("gone\n").await;
            return Stop::Ended(0);
        }
        let until = Instant::now() + Duration::from_secs(request.lock_timeout);
        if let Some(run) = self.machine.held_until(until).await {
            self.print(&format!("running {run}\n")).await;
            return Stop::Ended(0);
        }
        let answer = match &self.machine.lock().store.report {
            Some((run, report)) if *run == request.run => format!("report\n{report}"),
            _ => "none\n".into(),
        };
        self.print(&answer).await;
        Stop::Ended(0)
    }
}
