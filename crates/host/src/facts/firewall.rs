//! Firewalls that are installed, and which of them act.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{answer::Answer, os::unquote, service::Unit};

/// The usual firewalls; `None` is one that is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Firewalls {
    pub firewalld: Option<Firewall>,
    pub ufw: Option<Firewall>,
    /// The rules that the nftables service loads.
    pub nftables: Option<Firewall>,
    pub iptables: Option<Iptables>,
}

/// A firewall that is installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firewall {
    /// Whether it acts, where that is known.
    pub active: Option<bool>,
}

/// The iptables program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iptables {
    /// What it writes its rules to, where that is known.
    pub backend: Option<IptablesBackend>,
    /// Tables of the old kind that the kernel holds, such as `nat`.
    pub legacy_tables: Vec<String>,
}

/// What an iptables program writes its rules to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IptablesBackend {
    /// Tables of its own in the kernel.
    Legacy,
    /// nftables.
    Nft,
}

pub(super) fn firewalls(
    answer: &Answer,
    programs: &BTreeMap<String, String>,
    units: Option<&BTreeMap<String, Unit>>,
) -> Firewalls {
    let has = |name: &str| programs.contains_key(name);
    let runs = |name: &str| units.map(|units| units.get(name).is_some_and(Unit::is_active));
    Firewalls {
        firewalld: has("firewall-cmd").then(|| Firewall {
            active: runs("firewalld.service"),
        }),
        // Its unit is active even when it is switched off.
        ufw: has("ufw").then(|| Firewall {
            active: ufw_enabled(answer),
        }),
        nftables: has("nft").then(|| Firewall {
            active: runs("nftables.service"),
        }),
        iptables: has("iptables").then(|| Iptables {
            backend: answer.value("iptables").and_then(|path| backend(&path)),
            legacy_tables: answer.each("iptables-tables").map(str::to_owned).collect(),
        }),
    }
}

fn ufw_enabled(answer: &Answer) -> Option<bool> {
    let mut lines = answer.each("ufw-conf");
    let enabled = lines.find_map(|line| line.trim().strip_prefix("ENABLED="))?;
    Some(unquote(enabled).eq_ignore_ascii_case("yes"))
}

fn backend(path: &str) -> Option<IptablesBackend> {
    let name = path.rsplit('/').next()?;
    match name {
        "xtables-nft-multi" | "iptables-nft" => Some(IptablesBackend::Nft),
        // What came before there were two.
        "xtables-legacy-multi" | "iptables-legacy" | "xtables-multi" => {
            Some(IptablesBackend::Legacy)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{answer::with_sections, service::ActiveState};

    #[test]
    fn installed_is_not_active() {
        let names = ["firewall-cmd", "ufw", "iptables"];
        let programs = names
            .map(|name| (name.to_owned(), format!("/usr/sbin/{name}")))
            .into();
        let unit = |active| Unit {
            active: Some(active),
            enablement: None,
            path: None,
        };
        let units = BTreeMap::from([
            ("firewalld.service".to_owned(), unit(ActiveState::Inactive)),
            ("ufw.service".to_owned(), unit(ActiveState::Active)),
        ]);
        let answer = with_sections(&[
            ("ufw-conf", "# comment\nENABLED=no\n"),
            ("values", "iptables /usr/sbin/xtables-nft-multi\n"),
            ("iptables-tables", "nat\nfilter\n"),
        ]);
        let found = firewalls(&answer, &programs, Some(&units));
        assert_eq!(
            found.firewalld,
            Some(Firewall {
                active: Some(false)
            })
        );
        assert_eq!(
            found.ufw,
            Some(Firewall {
                active: Some(false)
            })
        );
        assert_eq!(found.nftables, None);
        let iptables = found.iptables.unwrap();
        assert_eq!(iptables.backend, Some(IptablesBackend::Nft));
        assert_eq!(iptables.legacy_tables, ["nat", "filter"]);
        assert_eq!(
            firewalls(&with_sections(&[]), &programs, None).firewalld,
            Some(Firewall { active: None })
        );
    }
}
