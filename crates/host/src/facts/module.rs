//! Kernel modules: loaded, loadable, or missing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// How a kernel has a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModuleState {
    /// It is loaded.
    Loaded,
    /// It is part of the kernel.
    Builtin,
    /// `modprobe` would load it.
    Loadable,
    /// It cannot be had.
    Missing,
}

/// Modules of interest, and the settings of the kernel's build that stand for them. The first
/// one that the build knows decides.
const MODULES: [(&str, &[&str]); 24] = [
    ("br_netfilter", &["BRIDGE_NETFILTER"]),
    ("bridge", &["BRIDGE"]),
    ("dummy", &["DUMMY"]),
    ("ip6_tables", &["IP6_NF_IPTABLES_LEGACY", "IP6_NF_IPTABLES"]),
    ("ip_set", &["IP_SET"]),
    ("ip_tables", &["IP_NF_IPTABLES_LEGACY", "IP_NF_IPTABLES"]),
    ("ip_vs", &["IP_VS"]),
    ("ip_vs_rr", &["IP_VS_RR"]),
    ("ip_vs_sh", &["IP_VS_SH"]),
    ("ip_vs_wrr", &["IP_VS_WRR"]),
    ("ipip", &["NET_IPIP"]),
    ("iptable_filter", &["IP_NF_FILTER"]),
    ("iptable_nat", &["IP_NF_NAT"]),
    ("nf_conntrack", &["NF_CONNTRACK"]),
    ("nf_nat", &["NF_NAT"]),
    ("nf_tables", &["NF_TABLES"]),
    ("nvme_tcp", &["NVME_TCP"]),
    ("overlay", &["OVERLAY_FS"]),
    ("rbd", &["BLK_DEV_RBD"]),
    ("tun", &["TUN"]),
    ("veth", &["VETH"]),
    ("vxlan", &["VXLAN"]),
    ("wireguard", &["WIREGUARD"]),
    ("xt_set", &["NETFILTER_XT_SET"]),
];

pub(super) fn modules(answer: &Answer) -> BTreeMap<String, ModuleState> {
    let known = Known::from_answer(answer);
    let state = |&(module, settings): &(&str, &[&str])| {
        Some((module.to_owned(), known.state(answer, module, settings)?))
    };
    MODULES.iter().filter_map(state).collect()
}

/// What the kernel and its files say; `None` is what they do not say.
struct Known<'a> {
    loaded: BTreeSet<&'a str>,
    builtin: Option<BTreeSet<&'a str>>,
    loadable: Option<BTreeSet<&'a str>>,
    config: Option<BTreeMap<&'a str, char>>,
}

impl<'a> Known<'a> {
    fn from_answer(answer: &'a Answer) -> Self {
        let files = |section| {
            let lines = answer.lines(section)?;
            Some(lines.iter().filter_map(|line| file_stem(line)).collect())
        };
        let loaded = answer.each("modules-loaded");
        Self {
            loaded: loaded.filter_map(|line| line.split(' ').next()).collect(),
            builtin: files("modules-builtin"),
            loadable: files("modules-loadable"),
            config: answer
                .lines("kernel-config")
                .filter(|lines| !lines.is_empty())
                .map(|lines| lines.iter().filter_map(|line| setting(line)).collect()),
        }
    }

    fn state(&self, answer: &Answer, module: &str, settings: &[&str]) -> Option<ModuleState> {
        let among = |set: &Option<BTreeSet<&str>>| set.as_ref().is_some_and(|s| s.contains(module));
        if self.loaded.contains(module) {
            return Some(ModuleState::Loaded);
        }
        // The kernel lists a module only when it is loaded, or built in with parameters.
        if among(&self.builtin) || answer.has_path(&format!("/sys/module/{module}")) {
            return Some(ModuleState::Builtin);
        }
        if among(&self.loadable) {
            return Some(ModuleState::Loadable);
        }
        if self.builtin.is_some() && self.loadable.is_some() {
            return Some(ModuleState::Missing);
        }
        let config = self.config.as_ref()?;
        match settings.iter().find_map(|setting| config.get(setting)) {
            Some('y') => Some(ModuleState::Builtin),
            // Made as a module, and the files of modules are not here.
            Some(_) | None => Some(ModuleState::Missing),
        }
    }
}

/// `kernel/net/bridge/br_netfilter.ko.xz:` is `br_netfilter`.
fn file_stem(line: &str) -> Option<&str> {
    let (_, file) = line.rsplit_once('/')?;
    file.split_once(".ko").map(|(stem, _)| stem)
}

/// `CONFIG_VXLAN=m` is `m`, `# CONFIG_VXLAN is not set` is `n`.
fn setting(line: &str) -> Option<(&str, char)> {
    if let Some(unset) = line.strip_prefix("# CONFIG_") {
        return Some((unset.strip_suffix(" is not set")?, 'n'));
    }
    let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
    Some((name, value.chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn an_ordinary_kernel_has_modules_in_all_states() {
        let found = modules(&with_sections(&[
            ("modules-loaded", "overlay 151552 12 - Live 0x0\n"),
            ("modules-builtin", "kernel/net/netfilter/nf_conntrack.ko\n"),
            (
                "modules-loadable",
                "kernel/net/bridge/br_netfilter.ko.xz:\nkernel/fs/overlayfs/overlay.ko.xz:\n",
            ),
        ]));
        assert_eq!(found["overlay"], ModuleState::Loaded);
        assert_eq!(found["nf_conntrack"], ModuleState::Builtin);
        assert_eq!(found["br_netfilter"], ModuleState::Loadable);
        assert_eq!(found["ip_vs"], ModuleState::Missing);
        assert_eq!(found.len(), MODULES.len());
    }

    #[test]
    fn a_kernel_without_modules_tells_by_its_build() {
        let config = "# CONFIG_MODULES is not set\nCONFIG_VXLAN=y\n# CONFIG_IP_NF_IPTABLES_LEGACY is not set\nCONFIG_IP_NF_IPTABLES=y\nCONFIG_IP6_NF_IPTABLES=y\n";
        let found = modules(&with_sections(&[
            ("kernel-config", config),
            ("paths", "/sys/module/bridge\n"),
        ]));
        assert_eq!(found["vxlan"], ModuleState::Builtin);
        assert_eq!(found["bridge"], ModuleState::Builtin);
        assert_eq!(found["ip_tables"], ModuleState::Missing);
        assert_eq!(found["ip6_tables"], ModuleState::Builtin);
        assert_eq!(found["ip_vs"], ModuleState::Missing);
    }

    #[test]
    fn a_container_knows_only_what_it_sees() {
        let found = modules(&with_sections(&[(
            "modules-loaded",
            "overlay 1 1 - Live 0x0\n",
        )]));
        assert_eq!(
            found,
            BTreeMap::from([("overlay".to_owned(), ModuleState::Loaded)])
        );
        assert_eq!(
            modules(&with_sections(&[("kernel-config", "")])),
            BTreeMap::new()
        );
    }
}
