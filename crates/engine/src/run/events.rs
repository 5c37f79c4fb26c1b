//! What a run tells of its tasks, and what it remembers of those that were not done.

use std::collections::BTreeMap;

use super::{Failure, Outcome, Run};
use crate::{
    event::{Event, Share},
    plan::Plan,
};

impl Run<'_> {
    pub(super) fn begin(&self, plan: &Plan) {
        let mut shares = BTreeMap::new();
        for place in (0..plan.tasks.len()).filter_map(|number| Self::place(plan, number)) {
            *shares.entry(place).or_insert(0) += 1;
        }
        let share = |(place, tasks): (usize, usize)| Share {
            name: self.cluster.machine(place).name.to_string(),
            tasks,
        };
        (self.emit)(Event::Begun {
            tasks: plan.tasks.len(),
            machines: shares.into_iter().map(share).collect(),
        });
    }

    /// The machine that a task is about, also by way of its node.
    pub(super) fn place(plan: &Plan, number: usize) -> Option<usize> {
        plan.tasks[number].subject().machine()
    }

    pub(super) fn name(&self, plan: &Plan, number: usize) -> Option<String> {
        let place = Self::place(plan, number)?;
        Some(self.cluster.machine(place).name.to_string())
    }

    /// The user wanted to stop before it was done.
    pub(super) fn give_up(&self, plan: &Plan, number: usize, outcome: &mut Outcome) {
        outcome.left += 1;
        (self.emit)(Event::Stopped {
            task: number,
            title: plan.tasks[number].title.clone(),
            machine: self.name(plan, number),
        });
    }

    pub(super) fn skip(&self, plan: &Plan, number: usize, because: &str, outcome: &mut Outcome) {
        let title = plan.tasks[number].title.clone();
        (self.emit)(Event::Skipped {
            task: number,
            title: title.clone(),
            machine: self.name(plan, number),
            because: because.to_owned(),
        });
        outcome.failed.push(Failure {
            subject: plan.tasks[number].subject(),
            title,
            reason: format!("not begun, since “{because}” is not done"),
            remedy: None,
            begun: false,
        });
    }

    pub(super) fn fail(
        &self,
        plan: &Plan,
        number: usize,
        reason: String,
        remedy: Option<String>,
        outcome: &mut Outcome,
    ) {
        let title = plan.tasks[number].title.clone();
        (self.emit)(Event::Failed {
            task: number,
            title: title.clone(),
            machine: self.name(plan, number),
            reason: reason.clone(),
            remedy: remedy.clone(),
        });
        outcome.failed.push(Failure {
            subject: plan.tasks[number].subject(),
            title,
            reason,
            remedy,
            begun: true,
        });
    }
}
