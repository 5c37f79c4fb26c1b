//! A cluster that goes: each of its machines is put back as it was found.

use hatchery_spec::value::Name;

use super::{ApiWork, Plan, TaskId, Work, graph::Graph};

/// What a task is called that runs the user's scripts ahead of cleanup. Few machines have any.
pub const SCRIPTS_BEFORE_CLEANUP: &str = "scripts before cleanup";

/// Puts these machines back. The user's own scripts for this come first, while the whole cluster is there; a machine
/// on which one fails is left as it is, since it may have had something to save.
pub fn remove<'a>(machines: impl IntoIterator<Item = &'a Name>) -> Plan {
    let mut graph = Graph::default();
    let before: Vec<(&Name, TaskId)> = machines
        .into_iter()
        .map(|name| {
            let machine = name.clone();
            let work = Work::BeforeUndo { machine };
            (name, graph.push(SCRIPTS_BEFORE_CLEANUP, &[], work))
        })
        .collect();
    let all: Vec<_> = before.iter().map(|(_, task)| *task).collect();
    for (name, scripts) in before {
        let work = Work::Undo {
            machine: name.clone(),
            leaves: false,
        };
        graph.push("cleanup", &[scripts], work);
        graph.last_comes_after(&all);
    }
    Plan {
        tasks: graph.tasks,
        notes: Vec::new(),
    }
}

/// What becomes of a machine that left while it did not answer, and is back. Its kubelet has registered it again, so the node
/// goes once more; what is on the machine is the last, as with machines that leave.
pub fn remove_returned(machine: &Name) -> Plan {
    let mut graph = Graph::default();
    let name = || machine.clone();
    let before = Work::BeforeUndo { machine: name() };
    let scripts = graph.push(SCRIPTS_BEFORE_CLEANUP, &[], before);
    let deleted = graph.api("delete node", &[scripts], ApiWork::DeleteNode(name()));
    let undo = Work::Undo {
        machine: name(),
        leaves: false,
    };
    graph.push("cleanup", &[deleted], undo);
    Plan {
        tasks: graph.tasks,
        notes: Vec::new(),
    }
}
