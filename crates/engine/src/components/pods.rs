//! What runs in a machine's pods ends with the machine's time in the cluster.
//!
//! Containers, their mounts, network devices and packet filter rules are made by others (the runtime, plugins,
//! kube-proxy) while the cluster lives. Nothing is to be done for them when it is made; when it goes, they go.

use std::time::Duration;

use hatchery_host::operation::Script;

use super::Site;
use crate::wish::{Error, Wishes, word};

/// On whose behalf the machine's pods are ended: before everything else is put back.
pub(crate) const OWNER: &str = "pods";

/// Lists what of the network is there.
const AROUND: &str = include_str!("pods_before.sh");
const MARK: &str = "/var/lib/hatchery/pods";

pub(crate) fn wishes(_: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    wishes.script(Script {
        name: word("pods")?,
        // The record is all there is to do; the mark goes with it.
        check: format!("[ -e {MARK} ]"),
        // What others have is remembered: it may be called as Kubernetes calls its own.
        apply: format!("{AROUND}around >{MARK}.new && mv {MARK}.new {MARK}"),
        undo: format!(
            "mark={MARK}\n{AROUND}{}rm -f {MARK}\n",
            include_str!("pods.sh")
        ),
        deadline: Duration::from_secs(120),
    });
    Ok(())
}
