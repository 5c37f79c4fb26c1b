//! SELinux and AppArmor.

use serde::{Deserialize, Serialize};

use super::{answer::Answer, os::unquote};

/// How far SELinux goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelinuxMode {
    /// Violations are denied.
    Enforcing,
    /// It only warns.
    Permissive,
    /// It is off, or the kernel has none.
    Disabled,
}

/// SELinux, now and after the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selinux {
    /// What the kernel does.
    pub mode: SelinuxMode,
    /// What `/etc/selinux/config` asks for, where there is one.
    pub configured: Option<SelinuxMode>,
}

/// The state of AppArmor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppArmor {
    /// The kernel obeys profiles.
    Enabled,
    /// The kernel has it, or not, and does not obey profiles.
    Disabled,
}

pub(super) fn selinux(answer: &Answer) -> Option<Selinux> {
    answer.lines("paths")?;
    let mode = match answer.value("selinux-enforce").as_deref() {
        Some("1") => SelinuxMode::Enforcing,
        Some("0") => SelinuxMode::Permissive,
        Some(_) => return None,
        None => SelinuxMode::Disabled,
    };
    let mut lines = answer.each("selinux-config");
    let configured = lines.find_map(|line| line.trim().strip_prefix("SELINUX="));
    let configured = configured.and_then(|word| match unquote(word).to_lowercase().as_str() {
        "enforcing" => Some(SelinuxMode::Enforcing),
        "permissive" => Some(SelinuxMode::Permissive),
        "disabled" => Some(SelinuxMode::Disabled),
        _ => None,
    });
    Some(Selinux { mode, configured })
}

pub(super) fn apparmor(answer: &Answer) -> Option<AppArmor> {
    answer.lines("paths")?;
    match answer.value("apparmor").as_deref() {
        Some("Y") => Some(AppArmor::Enabled),
        Some("N") => Some(AppArmor::Disabled),
        Some(_) => None,
        None => (!answer.has_path("/sys/module/apparmor")).then_some(AppArmor::Disabled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn what_is_and_what_is_asked_for() {
        let config = "# SELINUX= can take\nSELINUX=enforcing\nSELINUXTYPE=targeted\n";
        let answer = with_sections(&[
            ("paths", ""),
            ("values", "selinux-enforce 0\napparmor Y\n"),
            ("selinux-config", config),
        ]);
        let found = selinux(&answer).unwrap();
        assert_eq!(found.mode, SelinuxMode::Permissive);
        assert_eq!(found.configured, Some(SelinuxMode::Enforcing));
        assert_eq!(apparmor(&answer), Some(AppArmor::Enabled));
        assert_eq!(
            selinux(&with_sections(&[("paths", "")])).unwrap().mode,
            SelinuxMode::Disabled
        );
        assert_eq!(selinux(&with_sections(&[])), None);
        assert_eq!(
            apparmor(&with_sections(&[("paths", "/sys/module/apparmor\n")])),
            None
        );
    }
}
