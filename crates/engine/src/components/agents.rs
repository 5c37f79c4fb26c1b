//! What keeps NetworkManager and cloud-init from taking back what a node needs.

use std::{collections::BTreeSet, time::Duration};

use hatchery_host::{content::Hash, operation::Script};
use hatchery_spec::cluster::Role;

use super::{NodeContext, network_plugin};
use crate::resource::{Error, Resources, word};

const NETWORK_MANAGER: &str = "/etc/NetworkManager/conf.d/90-hatchery.conf";
const CLOUD_INIT: &str = "/etc/cloud/cloud.cfg.d/99-hatchery.cfg";
/// A copy of the file that NetworkManager has read.
const TOLD: &str = "/var/lib/hatchery/network-manager";

/// Interfaces that bridges of pods and kube-proxy make, beside those of network plugins.
const DEVICES: [&str; 3] = ["cni*", "kube-ipvs*", "veth*"];

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let agents = &node_context.facts.agents;
    if agents.network_manager && node_context.node.is(Role::Worker) {
        let plugins = network_plugin::ALL.iter();
        let devices = plugins
            .flat_map(|plugin| plugin.interfaces())
            .chain(&DEVICES);
        let devices: BTreeSet<_> = devices.collect();
        let names: Vec<_> = devices
            .into_iter()
            .map(|name| format!("interface-name:{name}"))
            .collect();
        let text = format!("[keyfile]\nunmanaged-devices+={}\n", names.join(";"));
        let reload = reload(&text)?;
        resources.file(NETWORK_MANAGER, 0o644, text)?;
        resources.script(reload);
    }
    if agents.cloud_init {
        let mut text = "manage_etc_hosts: false\n".to_owned();
        if node_context.node.set_hostname {
            text += "preserve_hostname: true\n";
        }
        resources.file(CLOUD_INIT, 0o644, text)?;
    }
    Ok(())
}

/// NetworkManager reads its configuration when it starts; one that began before our file was there has to reload it. Whether
/// it was is checked before the file is written.
fn reload(wanted: &str) -> Result<Script, Error> {
    let reload = "nmcli general reload 2>/dev/null || systemctl reload NetworkManager || :";
    let hash = Hash::digest(wanted.as_bytes());
    Ok(Script {
        name: word("network-manager")?,
        check: format!(
            "! systemctl -q is-active NetworkManager || \
             {{ [ \"$(sha256sum 2>/dev/null <{TOLD})\" = '{}  -' ] && cmp -s {NETWORK_MANAGER} {TOLD}; }}",
            hash.as_str()
        ),
        apply: format!("{reload}; cp {NETWORK_MANAGER} {TOLD}"),
        undo: format!("rm -f {NETWORK_MANAGER} {TOLD}; {reload}"),
        deadline: Duration::from_secs(30),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_read_in_the_same_run() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let is_told = |wanted: &str| {
            let script = reload(wanted).unwrap();
            let check = script
                .check
                .replace(NETWORK_MANAGER, &at("file"))
                .replace(TOLD, &at("told"));
            let mut shell = std::process::Command::new("sh");
            // A NetworkManager that began after the file was written.
            let text = format!("systemctl() {{ :; }}\nfind() {{ echo newer; }}\n{check}");
            shell.args(["-c", &text]).status().unwrap().success()
        };
        std::fs::write(at("file"), "old").unwrap();
        assert!(!is_told("old"));
        std::fs::write(at("told"), "old").unwrap();
        assert!(is_told("old") && !is_told("new"));
        std::fs::write(at("file"), "theirs").unwrap();
        assert!(!is_told("old"));
    }
}
