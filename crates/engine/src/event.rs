//! Events of a plan that is executed.

use serde::Serialize;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The tasks are known.
    Begun {
        /// The number of tasks.
        tasks: usize,
        /// The machines that take part, in the cluster's order.
        machines: Vec<Share>,
    },
    /// A task begins.
    Started {
        /// Its place in the plan.
        task: usize,
        /// In a user's words.
        title: String,
        /// On which machine; none for the cluster's API.
        machine: Option<String>,
    },
    /// A step of a task begins.
    Step {
        /// The task's index in the plan.
        task: usize,
        /// On which machine.
        machine: Option<String>,
        /// In a user's words.
        step: String,
    },
    /// A task is done.
    Finished {
        /// The task's index in the plan.
        task: usize,
        /// In a user's words.
        title: String,
        /// On which machine.
        machine: Option<String>,
        /// How many things changed.
        changes: usize,
        /// What went over the wire.
        bytes: u64,
        /// How long it took.
        seconds: f64,
    },
    /// A task failed.
    Failed {
        /// The task's index in the plan.
        task: usize,
        /// In a user's words.
        title: String,
        /// On which machine.
        machine: Option<String>,
        /// What went wrong.
        reason: String,
        /// What to do.
        remedy: Option<String>,
    },
    /// A task is not begun, because another failed.
    Skipped {
        /// The task's index in the plan.
        task: usize,
        /// In a user's words.
        title: String,
        /// On which machine.
        machine: Option<String>,
        /// Because of which.
        because: String,
    },
    /// A task that only waited was given up, because the user wants to stop.
    Stopped {
        /// The task's index in the plan.
        task: usize,
        /// In a user's words.
        title: String,
        /// On which machine.
        machine: Option<String>,
    },
    /// Something the user should know.
    Note {
        /// In a sentence.
        text: String,
    },
}

/// What a machine has to do with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// How many of the tasks are on it.
    pub tasks: usize,
}
