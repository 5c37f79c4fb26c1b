//! The outcome of a task, operation by operation.

use crate::{
    report::{Answer, Line},
    script::Step,
    task::Task,
};

/// Something worth telling while a task is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Event<'a> {
    /// A step is being done.
    Step {
        /// In a user's words.
        title: &'a str,
    },
    /// A script that went well has printed something.
    Said {
        /// Its step, in a user's words.
        title: &'a str,
        /// The last of it.
        text: &'a str,
    },
    /// Another run has the machine.
    Waiting { run: &'a str },
    /// Another run, whose control process was gone, was ended.
    Fenced { run: &'a str },
    /// The connection was lost and is being made again.
    Lost { reason: &'a str },
}

/// How one operation went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was so already.
    Unchanged,
    /// It is so now.
    Changed,
    /// It could not be made so.
    Failed,
    /// An earlier one failed.
    NotReached,
}

impl Outcome {
    pub(super) fn from_answer(task: &Task, steps: &[Step], answer: &Answer) -> Vec<Self> {
        let mut outcomes = vec![Self::Unchanged; task.operations().len()];
        for (number, step) in steps.iter().enumerate() {
            let Some(outcome) = outcomes.get_mut(step.operation) else {
                continue;
            };
            match (answer.steps.get(&number), &outcome) {
                (Some(Line::Failed(..)), _) => *outcome = Self::Failed,
                (Some(Line::Changed(_)), Self::Unchanged) => *outcome = Self::Changed,
                (Some(Line::Unchanged(_) | Line::Changed(_)), _) | (_, Self::Failed) => {}
                _ => *outcome = Self::NotReached,
            }
        }
        outcomes
    }
}

/// The outcome of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One for each operation.
    pub outcomes: Vec<Outcome>,
    /// All that went to the machine, the script included.
    pub bytes_sent: u64,
    /// How often it was asked.
    pub round_trips: u32,
}

impl Report {
    /// How many operations changed something.
    pub fn changes(&self) -> usize {
        let changed = |outcome: &&Outcome| **outcome == Outcome::Changed;
        self.outcomes.iter().filter(changed).count()
    }
}

/// What a task would do to one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is as wanted already.
    Unchanged,
    /// Something, for these reasons in the words of the machine's script.
    Change(Vec<String>),
}

/// What a task would do to a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// One for each operation.
    pub differences: Vec<Difference>,
    /// Whether applying the task would do nothing else. Otherwise another run is at work on the machine, or one that died has
    /// left something to be put in order.
    pub is_settled: bool,
}

impl Look {
    /// Whether applying the task would do nothing at all.
    pub fn is_unchanged(&self) -> bool {
        let mut differences = self.differences.iter();
        self.is_settled && differences.all(|one| *one == Difference::Unchanged)
    }

    /// Nothing for an answer that is not complete.
    pub(super) fn from_answer(task: &Task, steps: &[Step], answer: &Answer) -> Option<Self> {
        if answer.end.as_deref() != Some("ok") {
            return None;
        }
        Some(Self {
            differences: Difference::from_answer(task, steps, answer)?,
            is_settled: !answer.others.contains(&Line::Unsettled),
        })
    }
}

impl Difference {
    fn from_answer(task: &Task, steps: &[Step], answer: &Answer) -> Option<Vec<Self>> {
        let mut differences = vec![Self::Unchanged; task.operations().len()];
        for (number, step) in steps.iter().enumerate() {
            let difference = differences.get_mut(step.operation)?;
            let Line::Would(_, reason) = answer.steps.get(&number)? else {
                continue;
            };
            let reason = match &step.detail {
                Some(detail) => format!("{detail}: {reason}"),
                None => reason.clone(),
            };
            match difference {
                Self::Unchanged => *difference = Self::Change(vec![reason]),
                Self::Change(reasons) => reasons.push(reason),
            }
        }
        Some(differences)
    }
}

/// Something that could not be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Left {
    /// Kind and name.
    pub resource: String,
    pub reason: String,
}

/// The outcome of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Kind and name of what is as it was.
    pub restored: Vec<String>,
    /// Directories of ours that hold other people's files and therefore stay.
    pub kept: Vec<String>,
    /// What is not as it was. It stays in the record, so that another undo tries again.
    pub left: Vec<Left>,
}

impl Undone {
    pub(super) fn add(&mut self, answer: &Answer) {
        for line in &answer.others {
            match line {
                Line::Undone(resource) => self.restored.push(resource.clone()),
                Line::Kept(resource) => self.kept.push(resource.clone()),
                Line::Left(resource) => self.left.push(Left {
                    resource: resource.clone(),
                    reason: String::new(),
                }),
                Line::Why(reason) => {
                    if let Some(left) = self.left.last_mut() {
                        left.reason.clone_from(reason);
                    }
                }
                _ => {}
            }
        }
    }
}
