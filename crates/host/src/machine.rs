//! A machine as everything above sees it: facts, a look, a task, and the way back.
//!
//! One connection serves many commands. When it is lost, the machine is asked what became of the task, and only a
//! task that the machine does not know, or that died there, is sent again: every operation may be repeated.

mod contents;
mod error;
mod last_words;
pub(crate) mod managed;
mod offered;
mod one_off;
mod outcome;
mod progress;

use std::{
    collections::BTreeSet,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use futures::FutureExt as _;
use tokio::{
    io::AsyncReadExt as _,
    sync::Mutex,
    time::{timeout, timeout_at},
};

pub(crate) use self::managed::END as MANAGED_END;
use self::progress::{Progress, lacking, step_title};
pub use self::{
    error::Error,
    managed::{Managed, ManagedResource},
    one_off::OneOff,
    outcome::{Difference, Event, Left, Look, Outcome, Report, Undone},
};
use crate::{
    facts::{self, Facts, Questions},
    path::Word,
    privilege::{self, Privilege},
    report::{Answer, Line, Reader, Unreadable, readable},
    script::{self, Identity, List, Release, Setting},
    stream,
    task::Task,
    transport::{self, Connection, Connector, Running},
};

/// Unpacks a stream into a directory of its own and runs its first entry, when its last one came too. Nobody reads a
/// script from the stream that carries the payload: dash and busybox read ahead.
const TASK: &str = "umask 077; s=/var/lib/hatchery/in; mkdir -p $s && d=$(mktemp -d $s/XXXXXX) && cd $d \
    && echo $$ $(cut -d\" \" -f22 /proc/$$/stat) >pid && tar -xpf - && [ -e end ] && exec sh ./run; rm -rf \"$d\"; exit 97";

/// How many bytes of the end of a command's error output are shown.
const COMPLAINT: usize = 4096;

/// How long one step of the way back may take.
const UNDO_STEP: Duration = Duration::from_secs(300);

/// Tasks that are looked at together have the sum of their deadlines, up to this unless one of them alone has more.
const LOOK: Duration = Duration::from_secs(300);

/// Reads a script to its end and runs it; nothing is written anywhere.
const QUESTION: &str = "eval \"$(cat)\"";

/// A machine, with how to become root there and for whom.
pub struct Machine {
    connector: Arc<dyn Connector>,
    privilege: Privilege,
    identity: Identity,
    connection: Mutex<Option<Arc<dyn Connection>>>,
    /// How long a run waits for another one on the same machine.
    pub lock_timeout: Duration,
    /// Whether files are compared by their bytes even where size, times and inode are known.
    pub verify: bool,
    /// What is asked beside the usual facts.
    pub questions: Questions,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("name", &self.connector.name())
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// Nothing is connected yet.
    pub fn new(connector: Arc<dyn Connector>, privilege: Privilege, identity: Identity) -> Self {
        Self {
            connector,
            privilege,
            identity,
            connection: Mutex::new(None),
            lock_timeout: Duration::from_secs(120),
            verify: false,
            questions: Questions::default(),
        }
    }

    /// The machine's name in the deploy file.
    pub fn name(&self) -> &str {
        self.connector.name()
    }

    /// The connection, made when there is none or the last one was lost.
    pub async fn connection(&self) -> Result<Arc<dyn Connection>, transport::Error> {
        let mut known = self.connection.lock().await;
        if let Some(connection) = known.as_ref().filter(|known| !known.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = self.connector.connect().await?;
        *known = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Ends the connection, if there is one.
    pub async fn disconnect(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            connection.close().await;
        }
    }

    /// What the machine is like and what of it is ours, in one round trip. Changes nothing.
    pub async fn facts(&self, deadline: Duration) -> Result<(Facts, Managed), Error> {
        let run = self.new_run();
        let managed = script::managed(&self.setting(&run));
        let asked = facts::script(&self.questions);
        let question = format!("(\n{managed})\necho {MANAGED_END}{asked}");
        let sent = SystemTime::now();
        let (output, errors) = self.ask(&question, deadline, "facts").await?;
        let received = SystemTime::now();
        let Some((managed, rest)) = Managed::split(&output) else {
            let text = readable(&[output, errors].concat());
            return Err(self.garbled(&text));
        };
        let facts = facts::parse(rest, sent, received).map_err(|source| Error::Facts {
            host: self.name().into(),
            source,
        })?;
        Ok((facts, managed))
    }

    /// What a task would change. Changes nothing and needs no lock.
    pub async fn look(&self, task: &Task) -> Result<Look, Error> {
        let mut looks = self.look_at_all(std::slice::from_ref(task)).await?;
        // There is one for each task.
        Ok(looks.remove(0))
    }

    /// What each of several tasks would change now, in one round trip. Changes nothing and needs no lock.
    pub async fn look_at_all(&self, tasks: &[Task]) -> Result<Vec<Look>, Error> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let lists: Vec<_> = tasks.iter().map(List::for_task).collect();
        let run = self.new_run();
        let question = script::look(&self.setting(&run), tasks.iter().zip(&lists));
        let deadlines = tasks.iter().map(|task| task.deadline);
        let longest = deadlines.clone().max().unwrap_or_default();
        let deadline = deadlines.sum::<Duration>().min(longest.max(LOOK));
        let (output, errors) = self.ask(&question, deadline, "look").await?;
        let answers = self.read_each(&output, &errors)?;
        for answer in &answers {
            self.refused(answer)?;
        }
        let all = answers.iter().zip(tasks.iter().zip(&lists));
        let looks: Option<Vec<_>> = all
            .map(|(answer, (task, list))| Look::from_answer(task, &list.steps, answer))
            .collect();
        looks
            .filter(|looks| looks.len() == tasks.len())
            .ok_or_else(|| self.garbled(&readable(&output)))
    }

    /// Executes a task. Bytes are sent only for what the machine turns out to lack. `watch` is called for each step.
    pub async fn apply(
        &self,
        task: &Task,
        watch: &(dyn Fn(Event<'_>) + Send + Sync),
    ) -> Result<Report, Error> {
        let list = List::for_task(task);
        let end = Instant::now() + task.deadline;
        let mut wanted = BTreeSet::new();
        let mut report = Report::default();
        // Once with the question, once with the bytes; more often only when connections are lost.
        for attempt in 0..6 {
            let run = self.new_run();
            let progress = Progress::new(task, &list, watch);
            let sending = self.send(task, &list, &run, &wanted, &progress);
            let left = end.saturating_duration_since(Instant::now());
            let Ok(sent) = timeout(left, sending).await else {
                return Err(self.late(task.deadline, &progress.underway()));
            };
            let answer = match sent {
                Ok((answer, bytes)) => {
                    report.bytes_sent += bytes;
                    report.round_trips += 1;
                    answer
                }
                Err(error) if error.is_lost() => {
                    watch(Event::Lost {
                        reason: &error.to_string(),
                    });
                    match self.after_loss(&run, end, &progress).await? {
                        Some(answer) => answer,
                        None => continue,
                    }
                }
                // It was ended from outside; what it did is recorded, and the rest is asked for again.
                Err(Error::Died { .. }) if attempt < 5 => continue,
                Err(error) => return Err(error),
            };
            self.refused(&answer)?;
            let lacking = lacking(task, &list, &answer);
            let lacking = lacking.map_err(|step| Error::Changed {
                host: self.name().into(),
                step,
            })?;
            if !lacking.is_empty() {
                wanted.extend(lacking);
                continue;
            }
            return self.checked_report(report, task, &list, &answer);
        }
        Err(Error::Restless {
            host: self.name().into(),
        })
    }

    /// Puts back what only these owners need, or everything when none is named.
    pub async fn undo(&self, owners: &[Word], deadline: Duration) -> Result<Undone, Error> {
        let script = |setting: &Setting<'_>| script::undo(setting, owners, UNDO_STEP);
        self.put_back(&script, deadline).await
    }

    /// Puts back what is no longer needed once these owners have given it up.
    pub async fn release(&self, released: &[Release], deadline: Duration) -> Result<Undone, Error> {
        let script = |setting: &Setting<'_>| script::release(setting, released, UNDO_STEP);
        self.put_back(&script, deadline).await
    }

    async fn put_back(
        &self,
        script: &(dyn Fn(&Setting<'_>) -> String + Sync),
        deadline: Duration,
    ) -> Result<Undone, Error> {
        let end = Instant::now() + deadline;
        let mut undone = Undone::default();
        for _ in 0..6 {
            let run = self.new_run();
            let question = script(&self.setting(&run));
            let left = end.saturating_duration_since(Instant::now());
            match self.ask(&question, left, "undo").await {
                Ok((output, errors)) => {
                    let answer = self.read(&output, &errors)?;
                    self.refused(&answer)?;
                    undone.add(&answer);
                    match answer.end.as_deref() {
                        Some("ok" | "stuck") => return Ok(undone),
                        Some(_) => return Err(self.undo_failed(&answer)),
                        // It died there; what it had not put back yet is still in the record.
                        None => {}
                    }
                }
                // What it was doing is done again, harmlessly, by the next one, which waits for it.
                Err(error) if error.is_lost() => self.reconnect(end).await?,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Restless {
            host: self.name().into(),
        })
    }

    async fn send(
        &self,
        task: &Task,
        list: &List,
        run: &Word,
        wanted: &BTreeSet<usize>,
        progress: &Progress<'_>,
    ) -> Result<(Answer, u64), Error> {
        let text = list.apply(&self.setting(run), task);
        tracing::debug!(host = self.name(), script = script::shown(&text), "task");
        let payloads: Vec<_> = wanted
            .iter()
            .filter_map(|number| Some((*number, list.steps.get(*number)?.payload.clone()?)))
            .collect();
        let connection = self.connection().await.map_err(Error::transport)?;
        let Running {
            mut input,
            mut output,
            mut errors,
            exit,
        } = privilege::begin(connection.as_ref(), &self.privilege, TASK)
            .await
            .map_err(Error::transport)?;
        let exit = exit.shared();
        // A command that has ended reads nothing more, and nobody else would tell the sender.
        let ended = exit.clone();
        let sending = async move {
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let sent = tokio::select! {
                sent = stream::send(&mut input, &text, &payloads) => sent,
                _ = ended => Err(stream::Error::Write { source: gone() }),
            };
            drop(input);
            sent
        };
        let listening = async {
            let (mut reader, mut piece) = (Reader::default(), vec![0; 16 * 1024]);
            loop {
                // A broken stream is explained by the exit.
                let length = output.read(&mut piece).await.unwrap_or(0);
                if length == 0 {
                    return Ok(());
                }
                tracing::debug!(
                    host = self.name(),
                    output = readable(&piece[..length]),
                    "answer"
                );
                for line in reader.push(&piece[..length])? {
                    progress.take(line);
                }
            }
        };
        let complaining = transport::last_of(&mut errors, COMPLAINT);
        let exchange = async { Ok(tokio::join!(sending, complaining)) };
        // Who answers nonsense is not listened to any longer, whatever else there is to come.
        let ((sent, complaint), ()) =
            tokio::try_join!(exchange, listening).map_err(|why| self.unreadable(why))?;
        let complaint = readable(&complaint).trim().to_owned();
        let exit = exit.await.map_err(Error::transport)?;
        let answer = progress.answer();
        if answer.end.is_some() {
            return Ok((answer, sent.unwrap_or_default()));
        }
        if answer
            .others
            .iter()
            .any(|line| matches!(line, Line::Begin(_)))
        {
            return Err(Error::Died {
                host: self.name().into(),
                step: progress.underway(),
            });
        }
        // Without an end there was no script: either our bytes or the machine's disk failed it.
        match sent {
            Err(error) if !matches!(error, stream::Error::Write { .. }) => Err(Error::Stream {
                host: self.name().into(),
                source: error,
            }),
            _ => Err(Error::NotBegun {
                host: self.name().into(),
                exit,
                complaint,
            }),
        }
    }

    /// Asks what became of a run: its answer, or `None` when it never began or died.
    async fn after_loss(
        &self,
        run: &Word,
        end: Instant,
        progress: &Progress<'_>,
    ) -> Result<Option<Answer>, Error> {
        loop {
            self.reconnect(end).await?;
            let question = script::outcome(&self.setting(run));
            let left = end.saturating_duration_since(Instant::now());
            let output = match self.ask(&question, left, "outcome").await {
                Ok((output, _)) => output,
                Err(error) if error.is_lost() => continue,
                Err(Error::Deadline { after, .. }) => {
                    return Err(self.late(after, &progress.underway()));
                }
                Err(error) => return Err(error),
            };
            let (first, rest) = match output.iter().position(|byte| *byte == b'\n') {
                Some(end) => output.split_at(end + 1),
                None => (&output[..], &[][..]),
            };
            match readable(first).trim_end().split(' ').next() {
                Some("report") => {
                    let answer = self.read(rest, &[])?;
                    return Ok(answer.end.is_some().then_some(answer));
                }
                Some("none" | "gone") => return Ok(None),
                Some("running") => {}
                _ => return Err(self.garbled(&readable(&output))),
            }
        }
    }

    /// Connects again, as often as it takes until the deadline.
    async fn reconnect(&self, end: Instant) -> Result<(), Error> {
        let begin = Instant::now();
        let connecting = async {
            self.disconnect().await;
            let mut pause = Duration::from_millis(200);
            loop {
                match self.connection().await {
                    Ok(_) => return Ok(()),
                    Err(error) if error.may_pass() && Instant::now() + pause < end => {
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(Duration::from_secs(5));
                    }
                    Err(error) => return Err(Error::transport(error)),
                }
            }
        };
        // One attempt may take minutes where the way leads over bastions.
        match timeout_at(end.into(), connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(self.late(begin.elapsed(), "connecting again")),
        }
    }

    /// Runs a script that reads nothing, and gives all it printed.
    async fn ask(
        &self,
        question: &str,
        deadline: Duration,
        step: &'static str,
    ) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let script = match step {
            // Always the same and long, or the user's own.
            "facts" | "scripts" => String::new(),
            _ => script::shown(question),
        };
        tracing::debug!(host = self.name(), script, "{step}");
        let asking = async {
            let connection = self.connection().await.map_err(Error::transport)?;
            let begun = privilege::begin(connection.as_ref(), &self.privilege, QUESTION).await;
            let finished = begun
                .map_err(Error::transport)?
                .finish(question.as_bytes())
                .await;
            finished.map_err(|error| match error {
                transport::Error::TooLong { limit } => self.too_long(limit),
                error => Error::transport(error),
            })
        };
        match timeout(deadline, asking).await {
            Ok(finished) => finished.map(|finished| {
                // Files may hold what belongs into no log.
                let output = match step {
                    "contents" => String::new(),
                    _ => readable(&finished.output),
                };
                tracing::debug!(host = self.name(), output, "answer");
                (finished.output, finished.errors)
            }),
            Err(_) => Err(Error::Deadline {
                host: self.name().into(),
                step: step.into(),
                after: deadline,
            }),
        }
    }

    fn read(&self, output: &[u8], errors: &[u8]) -> Result<Answer, Error> {
        let lines = Reader::default().push(output);
        let mut answer = Answer::default();
        for line in lines.map_err(|why| self.unreadable(why))? {
            answer.take(line);
        }
        if answer.end.is_none() && !errors.is_empty() {
            return Err(self.garbled(&readable(errors)));
        }
        Ok(answer)
    }

    /// Reads answers that follow each other, each with a line that begins it.
    fn read_each(&self, output: &[u8], errors: &[u8]) -> Result<Vec<Answer>, Error> {
        let lines = Reader::default().push(output);
        let mut answers: Vec<Answer> = Vec::new();
        for line in lines.map_err(|why| self.unreadable(why))? {
            if matches!(line, Line::Begin(_)) {
                answers.push(Answer::default());
            }
            if let Some(answer) = answers.last_mut() {
                answer.take(line);
            }
        }
        let is_whole = answers.last().is_some_and(|answer| answer.end.is_some());
        if !is_whole && !errors.is_empty() {
            return Err(self.garbled(&readable(errors)));
        }
        Ok(answers)
    }

    /// Lines by which a machine declines the whole task.
    fn refused(&self, answer: &Answer) -> Result<(), Error> {
        let host = || self.name().to_owned();
        for line in &answer.others {
            return Err(match line {
                Line::Held(cluster, name) => Error::Held {
                    host: host(),
                    cluster: cluster.clone(),
                    name: name.clone(),
                },
                Line::Busy(run) => Error::Busy {
                    host: host(),
                    run: run.clone(),
                },
                Line::Needs(program) => Error::Needs {
                    host: host(),
                    program: program.clone(),
                },
                Line::Stopped(reason) => Error::Stopped {
                    host: host(),
                    reason: reason.clone(),
                },
                _ => continue,
            });
        }
        Ok(())
    }

    fn checked_report(
        &self,
        mut report: Report,
        task: &Task,
        list: &List,
        answer: &Answer,
    ) -> Result<Report, Error> {
        report.outcomes = Outcome::from_answer(task, &list.steps, answer);
        let failed = answer.steps.iter().find_map(|(number, line)| match line {
            Line::Failed(_, text) => Some((*number, text.clone())),
            _ => None,
        });
        if let Some((number, output)) = failed {
            return Err(Error::Step {
                host: self.name().into(),
                step: step_title(task, list, number),
                output,
                report: Box::new(report),
            });
        }
        match answer.end.as_deref() {
            Some("ok") => Ok(report),
            other => Err(self.garbled(&format!("ended with {other:?}"))),
        }
    }

    fn undo_failed(&self, answer: &Answer) -> Error {
        let output = answer.steps.values().find_map(|line| match line {
            Line::Failed(_, text) => Some(text.clone()),
            _ => None,
        });
        Error::Step {
            host: self.name().into(),
            step: "undo".into(),
            output: output.unwrap_or_default(),
            report: Box::default(),
        }
    }

    fn late(&self, after: Duration, step: &str) -> Error {
        Error::Deadline {
            host: self.name().into(),
            step: step.into(),
            after,
        }
    }

    fn unreadable(&self, why: Unreadable) -> Error {
        match why {
            Unreadable::Garbled(text) => self.garbled(&text),
            Unreadable::TooLong => self.too_long(transport::ANSWER_LIMIT),
        }
    }

    fn too_long(&self, limit: usize) -> Error {
        Error::TooLong {
            host: self.name().into(),
            limit,
        }
    }

    fn garbled(&self, text: &str) -> Error {
        Error::Garbled {
            host: self.name().into(),
            text: text.chars().take(500).collect(),
        }
    }

    fn setting<'a>(&'a self, run: &'a Word) -> Setting<'a> {
        Setting {
            identity: &self.identity,
            run,
            root: "",
            lock_timeout: self.lock_timeout,
            verify: self.verify,
        }
    }

    /// A name that is unique among all runs.
    fn new_run(&self) -> Word {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let text = format!("r{:x}-{:x}-{count:x}", since.as_nanos(), std::process::id());
        // Letters, digits and dashes, far below the longest word.
        Word::new(text).unwrap_or_else(|_| self.identity.cluster.clone())
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod lost_tests;
