//! What is under way where, and how long each part has taken.

use hatchery_engine::event::{Event, Share};
use serde::Serialize;

/// A part of the work, over all machines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Phase {
    /// In a user's words.
    pub(crate) title: String,
    /// When its first task began, in seconds of the run.
    pub(crate) from: f64,
    /// When its last task ended.
    pub(crate) to: f64,
}

/// What has been told so far.
#[derive(Debug, Default)]
pub(super) struct Board {
    tasks: usize,
    done: usize,
    failed: usize,
    machines: Vec<Share>,
    /// How many tasks of each machine have ended.
    ended: Vec<usize>,
    running: Vec<Running>,
    phases: Vec<Phase>,
}

#[derive(Debug)]
struct Running {
    task: usize,
    machine: Option<String>,
    part: String,
    step: String,
    since: f64,
}

impl Board {
    pub(super) fn take(&mut self, event: &Event, at: f64) {
        match event {
            Event::Begun { tasks, machines } => {
                self.tasks = *tasks;
                self.ended = vec![0; machines.len()];
                self.machines.clone_from(machines);
            }
            Event::Started {
                task,
                title,
                machine,
            } => {
                let part = title.clone();
                if !self.phases.iter().any(|phase| phase.title == part) {
                    self.phases.push(Phase {
                        title: part.clone(),
                        from: at,
                        to: at,
                    });
                }
                self.running.push(Running {
                    task: *task,
                    machine: machine.clone(),
                    part,
                    step: String::new(),
                    since: at,
                });
            }
            Event::Step { task, step, .. } => {
                if let Some(one) = self.running.iter_mut().find(|one| one.task == *task) {
                    one.step.clone_from(step);
                }
            }
            Event::Finished { task, machine, .. } => {
                self.done += 1;
                self.end(*task, machine.as_deref(), at);
            }
            Event::Failed { task, machine, .. }
            | Event::Skipped { task, machine, .. }
            | Event::Stopped { task, machine, .. } => {
                self.failed += 1;
                self.end(*task, machine.as_deref(), at);
            }
            Event::Note { .. } => {}
        }
    }

    fn end(&mut self, task: usize, machine: Option<&str>, at: f64) {
        if let Some(place) = self.running.iter().position(|one| one.task == task) {
            let one = self.running.remove(place);
            for phase in &mut self.phases {
                if phase.title == one.part {
                    phase.to = at;
                }
            }
        }
        let place = self
            .machines
            .iter()
            .position(|share| Some(share.name.as_str()) == machine);
        if let Some(place) = place {
            self.ended[place] += 1;
        }
    }

    /// In the order in which they began.
    pub(super) fn phases(&self) -> Vec<Phase> {
        self.phases.clone()
    }

    /// A line for each machine and for the API, as many as there is room for, and a summary.
    pub(super) fn lines(&self, at: f64, rows: usize, columns: usize) -> Vec<String> {
        if self.tasks == 0 {
            return vec![cut(&format!("asking the machines, {at:.0} s"), columns)];
        }
        let names = self.machines.iter().map(|share| share.name.chars().count());
        let width = names.max().unwrap_or(0).max("API".len());
        let under_way = |name: Option<&str>| {
            self.running
                .iter()
                .rev()
                .find(|one| one.machine.as_deref() == name)
        };
        let (mut busy, mut idle) = (Vec::new(), Vec::new());
        for (place, share) in self.machines.iter().enumerate() {
            let name = share.name.as_str();
            match under_way(Some(name)) {
                Some(one) => busy.push((place, one.line(name, width, at))),
                None if self.ended[place] >= share.tasks => {
                    idle.push((place, format!("  {name:<width$}  done")));
                }
                None => idle.push((place, format!("  {name:<width$}  waits"))),
            }
        }
        let working = busy.len();
        if let Some(one) = under_way(None) {
            busy.push((self.machines.len(), one.line("API", width, at)));
        }
        // The lines above them should be seen too.
        let room = rows.saturating_sub(4).max(1);
        let mut lines = busy;
        if lines.len() + idle.len() <= room {
            lines.extend(idle);
        }
        lines.truncate(room);
        lines.sort_by_key(|(place, _)| *place);
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} not done"),
        };
        let whole = format!(
            "{} of {} tasks{failed}, {working} of {} machines at work, {at:.0} s",
            self.done,
            self.tasks,
            self.machines.len()
        );
        let lines = lines.into_iter().map(|(_, line)| line).chain([whole]);
        lines.map(|line| cut(&line, columns)).collect()
    }
}

impl Running {
    fn line(&self, name: &str, width: usize, at: f64) -> String {
        let step = match self.step.as_str() {
            "" => String::new(),
            step => format!(": {step}"),
        };
        let seconds = (at - self.since).max(0.0);
        // The time comes first, since long steps are cut.
        format!("  {name:<width$}  {seconds:>3.0} s  {}{step}", self.part)
    }
}

/// A line that fits, without what would break it.
fn cut(line: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1).max(10);
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= room {
        return line;
    }
    let kept: String = line.chars().take(room - 1).collect();
    format!("{kept}…")
}

/// What of an event goes into the log of which machine.
pub(super) fn log_line(event: &Event) -> Option<(&str, String)> {
    let (machine, text) = match event {
        Event::Started { title, machine, .. } => (machine, format!("{title} begins")),
        Event::Step { machine, step, .. } => (machine, format!("  {step}")),
        Event::Finished {
            title,
            machine,
            changes,
            bytes,
            seconds,
            ..
        } => (
            machine,
            format!("{title} is done: {changes} changes, {bytes} bytes sent, {seconds:.1} s"),
        ),
        Event::Failed {
            title,
            machine,
            reason,
            ..
        } => (machine, format!("{title} failed: {reason}")),
        Event::Skipped {
            title,
            machine,
            because,
            ..
        } => (
            machine,
            format!("{title} is not begun, since “{because}” is not done"),
        ),
        Event::Stopped { title, machine, .. } => (machine, format!("{title} is given up")),
        Event::Begun { .. } | Event::Note { .. } => return None,
    };
    Some((machine.as_deref()?, text))
}
