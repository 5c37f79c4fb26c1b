//! What a machine's container runtime was used for before the cluster came, and how the two part again.
//!
//! The first thing that a worker's runtime gets is a record of whom it serves and of what is in it. At the end of the
//! cluster what came since is taken out of it through the runtime itself, and the user's containers run again.

use std::time::Duration;

use hatchery_host::{
    facts::{DOCKER_SETTINGS, RUNTIME_USE},
    operation::Script,
};

use crate::{
    components::{NodeContext, pods},
    resource::{Error, Resources, word},
};

/// The record is made before anything of the runtime is changed; when it is undone, everything else of it is as it was.
pub(super) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let lines = node_context
        .facts
        .runtime_use
        .lines()
        .replace('\'', "'\\''");
    let names = format!(
        "use={RUNTIME_USE}\nsettings={DOCKER_SETTINGS}\nmark={}\n{}",
        pods::MARK,
        include_str!("containerd/list.sh")
    );
    resources.script(Script {
        name: word("runtime-before")?,
        check: format!("[ -e {RUNTIME_USE} ]"),
        apply: format!("{names}lines='{lines}'\n{}", include_str!("before.sh")),
        undo: format!(
            "{names}{}{}",
            include_str!("docker/restart.sh"),
            include_str!("after.sh")
        ),
        deadline: Duration::from_secs(300),
    });
    Ok(())
}
