//! Names of values.

use std::fmt;

/// The name of a value, known when the program is compiled: words of letters, digits, `-`, `.`, with `/` between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(&'static str);

impl Key {
    /// Which cluster this is: a [`Record`](super::Record).
    pub const CLUSTER: Self = Self::new("cluster.json");
    /// The deploy file as it was given.
    pub const DEPLOY_FILE: Self = Self::new("deploy.yaml");
    /// Deploy files of earlier runs, as long as they alone say how a machine of the cluster is reached.
    pub const EARLIER_FILES: Self = Self::new("earlier-files.json");
    /// The variables that go with it, where it is an inventory.
    pub const VARIABLES: Self = Self::new("group-vars.yml");
    /// The administrator's kubeconfig.
    pub const ADMIN_CONF: Self = Self::new("admin.conf");

    /// A key. Meant for constants, where a name that is not allowed does not compile.
    ///
    /// # Panics
    /// When the name is not allowed.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_allowed(name.as_bytes()), "not a name for a value");
        Self(name)
    }

    /// The key as stores use it for a file name.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Whether it is a path below a directory that can be nothing but a value: no `..`, and nothing that begins with a dot,
/// as what is being written does.
const fn is_allowed(name: &[u8]) -> bool {
    let mut place = 0;
    let mut begins = true;
    while place < name.len() {
        let byte = name[place];
        let inside = byte == b'/' || byte == b'.' || byte == b'-';
        if !byte.is_ascii_alphanumeric() && (begins || !inside) {
            return false;
        }
        begins = byte == b'/';
        place += 1;
    }
    !begins
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn keys_lead_nowhere_else() {
        for good in ["a", "pki/ca.crt", "pki/front-proxy-ca.key", "a/b/c", "a.."] {
            assert!(is_allowed(good.as_bytes()), "{good}");
        }
        for bad in [
            "", "/", "/a", "a/", "a//b", "..", "a/..", "../a", ".a", "a/.b", "a b", "a\\b", "ä",
            "-a",
        ] {
            assert!(!is_allowed(bad.as_bytes()), "{bad}");
        }
    }
}
