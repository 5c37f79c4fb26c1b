//! The progress of a task.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::outcome::Event;
use crate::{
    operation::Operation,
    report::{Answer, Line},
    script::List,
    task::Task,
};

/// What the machine has reported of a task so far, also when the waiting for it is given up.
pub(super) struct Progress<'a> {
    task: &'a Task,
    list: &'a List,
    watch: &'a (dyn Fn(Event<'_>) + Send + Sync),
    answer: Mutex<Answer>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(
        task: &'a Task,
        list: &'a List,
        watch: &'a (dyn Fn(Event<'_>) + Send + Sync),
    ) -> Self {
        Self {
            task,
            list,
            watch,
            answer: Mutex::default(),
        }
    }

    pub(super) fn take(&self, line: Line) {
        match &line {
            Line::Start(number) => (self.watch)(Event::Step {
                title: &step_title(self.task, self.list, *number),
            }),
            Line::Said(number, text) => (self.watch)(Event::Said {
                title: &step_title(self.task, self.list, *number),
                text,
            }),
            Line::Waiting(run) => (self.watch)(Event::Waiting { run }),
            Line::Fenced(run) => (self.watch)(Event::Fenced { run }),
            _ => {}
        }
        self.lock().take(line);
    }

    pub(super) fn answer(&self) -> Answer {
        self.lock().clone()
    }

    pub(super) fn underway(&self) -> String {
        let underway = self.lock().underway();
        underway.map_or_else(
            || "sending the task".into(),
            |number| step_title(self.task, self.list, number),
        )
    }

    /// A panic in `watch` does not make the collected reports wrong.
    fn lock(&self) -> MutexGuard<'_, Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The steps that need bytes, or a message for the first of them whose bytes are not here.
pub(super) fn lacking(task: &Task, list: &List, answer: &Answer) -> Result<Vec<usize>, String> {
    let wanting = |(number, line): (&usize, &Line)| {
        let step = list
            .steps
            .get(*number)
            .filter(|_| matches!(line, Line::Wanting(_)))?;
        let payload = step.payload.as_ref()?;
        Some(match payload.content.is_only_there() {
            true => Err(step_title(task, list, *number)),
            false => Ok(*number),
        })
    };
    answer.steps.iter().filter_map(wanting).collect()
}

/// A step in a user's words.
pub(super) fn step_title(task: &Task, list: &List, number: usize) -> String {
    let Some(step) = list.steps.get(number) else {
        return format!("step {number}");
    };
    let operation = task.operations().get(step.operation);
    step.detail
        .clone()
        .or_else(|| operation.map(Operation::title))
        .unwrap_or_default()
}
