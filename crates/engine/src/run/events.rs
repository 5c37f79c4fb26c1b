//! The events that a run emits about its tasks, and the failures that it collects.

use std::collections::BTreeMap;

use super::{Cause, Executed, Failure, Run, name};
use crate::{
    event::{Event, Share},
    plan::Plan,
};

impl Run<'_> {
    pub(super) fn begin(&self, plan: &Plan) {
        let mut shares = BTreeMap::new();
        for task in &plan.tasks {
            if let Some(machine) = task.subject().machine() {
                *shares.entry(machine.clone()).or_insert(0) += 1;
            }
        }
        let machines = self.context.cluster.all_machines();
        let machines = machines.filter_map(|machine| {
            let tasks = shares.remove(&machine.name)?;
            let name = machine.name.to_string();
            Some(Share { name, tasks })
        });
        self.emit(Event::Begun {
            tasks: plan.tasks.len(),
            machines: machines.collect(),
        });
    }

    /// The user wanted to stop before it was done.
    pub(super) fn give_up(&self, plan: &Plan, number: usize, executed: &mut Executed) {
        executed.left += 1;
        self.emit(Event::Stopped {
            task: number,
            title: plan.tasks[number].title.clone(),
            machine: name(plan, number),
        });
    }

    pub(super) fn skip(&self, plan: &Plan, number: usize, because: &str, executed: &mut Executed) {
        let task = &plan.tasks[number];
        self.emit(Event::Skipped {
            task: number,
            title: task.title.clone(),
            machine: name(plan, number),
            because: because.to_owned(),
        });
        let reason = format!("not begun, since “{because}” is not done");
        executed.failures.push(Failure {
            subject: task.subject(),
            cause: Cause::new(reason, None),
            begun: false,
        });
    }

    pub(super) fn fail(&self, plan: &Plan, number: usize, cause: Cause, executed: &mut Executed) {
        let task = &plan.tasks[number];
        self.emit(Event::Failed {
            task: number,
            title: task.title.clone(),
            machine: name(plan, number),
            reason: cause.reason.clone(),
            remedy: cause.remedy.clone(),
        });
        executed.failures.push(Failure {
            subject: task.subject(),
            cause,
            begun: true,
        });
    }
}
