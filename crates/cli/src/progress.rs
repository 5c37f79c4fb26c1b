//! What is seen of a run while it goes on: lines on a terminal, plain lines elsewhere, events for programs, and logs.

mod board;
mod echo;

use std::{
    io::{self, IsTerminal as _},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use hatchery_engine::{event::Event, plan::SCRIPTS_BEFORE_CLEANUP, state::RunLog};
use hatchery_spec::value::Name;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

pub(crate) use self::board::Phase;
use self::{board::Board, echo::Echo};
use crate::{output::Output, template::number};

/// What is seen of a run.
pub(crate) struct Progress<'a> {
    output: &'a Output,
    log: Option<&'a RunLog>,
    begin: Instant,
    board: Arc<Mutex<Board>>,
    live: Mutex<Option<Live>>,
}

/// Lines that are drawn again and again.
struct Live {
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    ticking: Option<JoinHandle<()>>,
    /// Put back last.
    _echo: Option<Echo>,
}

/// An event with its time.
#[derive(Serialize)]
struct Timed<'a, E> {
    time: String,
    #[serde(flatten)]
    event: &'a E,
}

impl<'a> Progress<'a> {
    /// Of a run that began then.
    pub(crate) fn new(output: &'a Output, log: Option<&'a RunLog>, begin: Instant) -> Self {
        let board = Arc::new(Mutex::new(Board::default()));
        // The lines of -d would tear them.
        let is_live = !output.json() && !output.debug() && io::stderr().is_terminal();
        Self {
            output,
            log,
            begin,
            live: Mutex::new(is_live.then(|| Live::new(Arc::clone(&board), begin))),
            board,
        }
    }

    /// Takes an event.
    pub(crate) fn emit(&self, event: &Event) {
        self.record(event);
        self.note(event);
        let at = self.begin.elapsed().as_secs_f64();
        let mut board = self.board();
        board.take(event, at);
        if self.output.json() {
            return;
        }
        if let Some(line) = line(event, at) {
            // While the board is held, so that lines of one event stay together.
            self.print(&line);
        }
        let (rows, columns) = size();
        let lines = board.lines(at, rows, columns);
        drop(board);
        if let Some(live) = &*self.live() {
            live.bar.set_message(lines.join("\n"));
        }
    }

    /// Prints an event of the command's own, for programs and into the log.
    pub(crate) fn record(&self, event: &impl Serialize) {
        let time = OffsetDateTime::now_utc().format(&Rfc3339);
        let timed = Timed {
            time: time.unwrap_or_default(),
            event,
        };
        // A full disk does not stop a deployment.
        let _ = self.log.map(|log| log.event(&timed));
        if self.output.json()
            && let Ok(value) = serde_json::to_value(&timed)
        {
            self.output.print_json(&value);
        }
    }

    /// Prints lines for people, above those that are drawn again.
    pub(crate) fn print(&self, text: &str) {
        match &*self.live() {
            Some(live) => live.bar.suspend(|| self.output.print(text)),
            None => self.output.print(text),
        }
    }

    /// The same on standard error, also where programs read the results.
    pub(crate) fn say(&self, text: &str) {
        match &*self.live() {
            Some(live) => live.bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Ends drawing and restores the terminal. Returns how long each phase took.
    pub(crate) fn end(&self) -> Vec<Phase> {
        let live = self.live().take();
        drop(live);
        self.board().phases()
    }

    /// Into the machine's own log.
    fn note(&self, event: &Event) {
        let (Some(log), Some((machine, text))) = (self.log, board::log_line(event)) else {
            return;
        };
        if let Ok(name) = Name::parse(machine) {
            let now = OffsetDateTime::now_utc().format(&Rfc3339);
            let _ = log.machine(&name, &format!("{} {text}", now.unwrap_or_default()));
        }
    }

    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // What was counted so far is still right.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn new(board: Arc<Mutex<Board>>, begin: Instant) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (ended, drawn) = (Arc::clone(&over), bar.clone());
        let ticking = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_millis(500));
                let text = {
                    let board = board.lock().unwrap_or_else(PoisonError::into_inner);
                    let (rows, columns) = size();
                    board.lines(begin.elapsed().as_secs_f64(), rows, columns)
                };
                if !ended.load(Ordering::Relaxed) {
                    drawn.set_message(text.join("\n"));
                }
            }
        });
        Self {
            bar,
            over,
            ticking: Some(ticking),
            _echo: Echo::off(),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(ticking) = self.ticking.take() {
            ticking.thread().unpark();
            let _ = ticking.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Rows and columns of the terminal.
fn size() -> (usize, usize) {
    let (rows, columns) = console::Term::stderr().size();
    (rows.into(), columns.into())
}

/// An event that stays on the screen, for people.
fn line(event: &Event, at: f64) -> Option<String> {
    let named = |machine: &Option<String>, title: &str| match machine {
        Some(machine) => format!("{at:6.1} s  {machine}: {title}"),
        None => format!("{at:6.1} s  {title}"),
    };
    Some(match event {
        // There are none on most machines.
        Event::Finished {
            title, changes: 0, ..
        } if title == SCRIPTS_BEFORE_CLEANUP => return None,
        Event::Finished {
            title,
            machine,
            changes,
            bytes,
            seconds,
            ..
        } => {
            let changes = match changes {
                0 => "unchanged".to_owned(),
                count => number(*count, "change"),
            };
            let sent = match bytes >> 20 {
                0 => String::new(),
                megabytes => format!(", {megabytes} MiB"),
            };
            let named = named(machine, title);
            format!("{named}: {changes}{sent}, {seconds:.1} s\n")
        }
        Event::Failed {
            title,
            machine,
            reason,
            remedy,
            ..
        } => {
            let remedy = remedy
                .as_ref()
                .map(|remedy| format!("          {remedy}\n"));
            let named = named(machine, title);
            format!("{named} failed: {reason}\n{}", remedy.unwrap_or_default())
        }
        Event::Skipped {
            title,
            machine,
            because,
            ..
        } => {
            let named = named(machine, title);
            format!("{named}: not begun, since “{because}” is not done\n")
        }
        Event::Stopped { title, machine, .. } => {
            format!("{}: given up\n", named(machine, title))
        }
        Event::Note { text } => format!("note: {text}\n"),
        Event::Begun { .. } | Event::Started { .. } | Event::Step { .. } => return None,
    })
}

#[cfg(test)]
mod tests;
