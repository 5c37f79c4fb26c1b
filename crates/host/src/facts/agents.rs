//! Programs that rewrite parts of a machine by themselves, unless they are configured not to.

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// Which of them a machine has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    /// NetworkManager configures interfaces that appear, those of pods too.
    pub network_manager: bool,
    /// cloud-init may set the hostname and write `/etc/hosts` at every boot.
    pub cloud_init: bool,
    /// The data with which this machine was made have cloud-init write `/etc/hosts`. They count for more than any file in
    /// `/etc/cloud`.
    #[serde(default)]
    pub cloud_init_hosts: bool,
}

pub(super) fn agents(answer: &Answer) -> Agents {
    Agents {
        network_manager: answer.has_path("/etc/NetworkManager/NetworkManager.conf"),
        cloud_init: answer.has_path("/etc/cloud/cloud.cfg.d"),
        cloud_init_hosts: answer.each("cloud-init").any(|line| line == "hosts"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn each_is_known_by_its_configuration() {
        assert_eq!(agents(&with_sections(&[("paths", "")])), Agents::default());
        let both = "/etc/NetworkManager/NetworkManager.conf\n/etc/cloud/cloud.cfg.d\n";
        let found = agents(&with_sections(&[("paths", both)]));
        assert!(found.network_manager && found.cloud_init && !found.cloud_init_hosts);
        let found = agents(&with_sections(&[
            ("paths", both),
            ("cloud-init", "hosts\n"),
        ]));
        assert!(found.cloud_init_hosts);
    }
}
