//! One machine that answered, with what is wanted of it.

use hatchery_host::{facts::Facts, machine::Managed};
use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role},
};

use crate::finding::{Finding, Findings, Severity};

/// A machine that answered.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) node: &'a Machine,
    pub(super) facts: &'a Facts,
    pub(super) managed: &'a Managed,
    /// Whether this cluster holds it already, so that what runs there may be ours.
    pub(super) ours: bool,
}

impl Subject<'_> {
    pub(super) fn is(&self, role: Role) -> bool {
        self.node.is(role)
    }

    pub(super) fn name(&self) -> String {
        self.node.name.to_string()
    }

    /// Says something of this machine.
    pub(super) fn say(
        &self,
        findings: &mut Findings,
        (severity, code): (Severity, &'static str),
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        findings.add(Finding {
            severity,
            code,
            machines: vec![self.name()],
            message: message.into(),
            remedy: Some(remedy.into()).filter(|remedy| !remedy.is_empty()),
        });
    }
}

/// A size for people.
pub(super) fn gibibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 30;
    match tenths {
        0..10 => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", tenths / 10, tenths % 10),
    }
}
