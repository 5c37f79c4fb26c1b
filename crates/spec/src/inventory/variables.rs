//! Every known variable and its treatment. Reading, warnings, the documentation and
//! the tests go by this table.

mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use table::VARIABLES;

use crate::walk::nearest;

/// How a variable is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It takes effect, at this place of the serialised cluster (a JSON pointer); `!` for a value
    /// that is only compared with others.
    Honoured(&'static str),
    /// Only these values are supported; the first is the default. Nothing and an empty
    /// list are always accepted.
    Only(&'static [&'static str]),
    /// It has no effect.
    NoEffect,
}

/// A variable of kubespray or Ansible.
#[derive(Clone, Copy, Debug)]
pub struct VariableInfo {
    /// The variable; a `*` at the beginning or end stands for anything.
    pub name: &'static str,
    /// How it is treated.
    pub treatment: Treatment,
    /// What it means, or why it is refused.
    pub doc: &'static str,
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static VariableInfo>> =
    LazyLock::new(|| VARIABLES.iter().map(|info| (info.name, info)).collect());

/// What is known of the variable of this name.
pub fn find(name: &str) -> Option<&'static VariableInfo> {
    BY_NAME.get(name).copied().or_else(|| {
        VARIABLES.iter().find(|info| {
            let begins = |pattern: &str| name.starts_with(pattern);
            let ends = |pattern: &str| name.ends_with(pattern);
            info.name.strip_suffix('*').is_some_and(begins)
                || info.name.strip_prefix('*').is_some_and(ends)
        })
    })
}

/// The variable that may be meant by a name that is not known.
pub(super) fn near(name: &str) -> Option<&'static str> {
    let honoured = VARIABLES
        .iter()
        .filter(|info| matches!(info.treatment, Treatment::Honoured(_)));
    // Many names of kubespray differ in a word only, so that near must be very near.
    let near = nearest(name, honoured.map(|info| info.name))?;
    (near.len().abs_diff(name.len()) <= 2 && name.len() > 4).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_described_once() {
        let mut seen = std::collections::HashSet::new();
        for info in VARIABLES {
            assert!(seen.insert(info.name), "{info:?}");
            assert!(info.doc.ends_with('.'), "{info:?}");
            assert_eq!(find(info.name).unwrap().name, info.name);
        }
    }

    #[test]
    fn patterns_and_near_names() {
        let treatment = |name| find(name).map(|info| info.treatment);
        assert_eq!(treatment("download_run_once"), Some(Treatment::NoEffect));
        assert_eq!(treatment("kubelet_checksums"), Some(Treatment::NoEffect));
        assert_eq!(treatment("colour"), None);
        assert_eq!(near("kube_verion"), Some("kube_version"));
        assert_eq!(near("colour"), None);
    }
}
