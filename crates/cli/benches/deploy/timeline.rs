//! Where the time of a run goes, from its own events.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

/// The tasks of one run, in the order of their ends.
pub(crate) struct Timeline {
    tasks: Vec<Task>,
    /// Until the program ended.
    seconds: f64,
}

/// One task; times are seconds since the program began.
#[derive(Clone)]
struct Task {
    title: String,
    machine: Option<String>,
    from: f64,
    to: f64,
    bytes: u64,
}

impl Timeline {
    /// Reads what `deploy` or `cleanup` printed with `-o json`.
    pub(crate) fn read(text: &str, seconds: f64) -> Self {
        let time_of = |event: &Value| {
            OffsetDateTime::parse(event["time"].as_str().unwrap(), &Rfc3339).unwrap()
        };
        // The last line says how long it took until then.
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let begin = time_of(&last) - Duration::seconds_f64(last["seconds"].as_f64().unwrap());
        let mut started = BTreeMap::new();
        let mut tasks = Vec::new();
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let Some(task) = event["task"].as_u64() else {
                continue;
            };
            let at = (time_of(&event) - begin).as_seconds_f64();
            match event["event"].as_str() {
                Some("started") => drop(started.insert(task, at)),
                Some("finished") => tasks.push(Task {
                    title: event["title"].as_str().unwrap().to_owned(),
                    machine: event["machine"].as_str().map(str::to_owned),
                    from: started[&task],
                    to: at,
                    bytes: event["bytes"].as_u64().unwrap(),
                }),
                _ => {}
            }
        }
        Self { tasks, seconds }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// When the last task of a phase was done.
    pub(crate) fn end_of(&self, phase: &str) -> f64 {
        let tasks = self.tasks.iter().filter(|task| task.title == phase);
        tasks.map(|task| task.to).fold(0.0, f64::max)
    }

    /// A task begins as soon as the last one that it waits for is done: so the chain of the latest ends, backwards.
    fn critical_path(&self) -> Vec<&Task> {
        let mut path: Vec<&Task> = self.tasks.last().into_iter().collect();
        while let Some(first) = path.last() {
            let before = self.tasks.iter().filter(|task| task.to <= first.from);
            let Some(before) = before.max_by(|a, b| a.to.total_cmp(&b.to)) else {
                break;
            };
            path.push(before);
        }
        path.reverse();
        path
    }

    /// Phases and the critical path, for people.
    pub(crate) fn table(&self) -> String {
        let mut phases: Vec<&str> = Vec::new();
        for task in &self.tasks {
            if !phases.contains(&task.title.as_str()) {
                phases.push(&task.title);
            }
        }
        let from = |phase: &str| {
            let tasks = self.tasks.iter().filter(|task| task.title == phase);
            tasks.map(|task| task.from).fold(f64::MAX, f64::min)
        };
        phases.sort_by(|a, b| from(a).total_cmp(&from(b)));
        let mut text = format!(
            "    {:<18} {:>7} {:>7} {:>14} {:>6}\n",
            "phase", "from", "to", "slowest task", "MiB"
        );
        for phase in phases {
            let tasks = self.tasks.iter().filter(|task| task.title == phase);
            let bytes: u64 = tasks.clone().map(|task| task.bytes).sum();
            let slowest = tasks.map(|task| task.to - task.from).fold(0.0, f64::max);
            let _ = writeln!(
                text,
                "    {phase:<18} {:>7.1} {:>7.1} {slowest:>14.1} {:>6}",
                from(phase),
                self.end_of(phase),
                bytes >> 20
            );
        }
        let path = self.critical_path();
        let look = path.first().map_or(0.0, |task| task.from);
        let _ = write!(text, "    critical path: look {look:.1}");
        for task in path {
            text += " → ";
            if let Some(machine) = &task.machine {
                let _ = write!(text, "{machine}: ");
            }
            let _ = write!(text, "{} {:.1}", task.title, task.to - task.from);
        }
        text
    }
}
