//! On whose behalf a machine has something.
//!
//! A machine's record names the owners of every resource, so that one part of a machine can be taken away without another.

use std::fmt;

use hatchery_host::path::Word;

/// A part of what a machine is in the cluster. The words are in the records of machines:
/// what belongs to a renamed one would have no owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Programs, packages, and what every machine of a cluster needs.
    Prepare,
    /// The user's scripts that run before a machine joins.
    Prejoin,
    /// The user's scripts that run after a machine has joined.
    Postjoin,
    /// The user's scripts that are kept for the way back, and run before it.
    Precleanup,
    /// The same, run after it.
    Postcleanup,
    /// A member of etcd.
    Etcd,
    /// What leads to the API servers.
    LoadBalancer,
    /// The control plane.
    Master,
    /// What pods leave behind, and what takes it away.
    Pods,
    /// The container runtime and the network plugins.
    Runtime,
    /// The kubelet and kube-proxy.
    Worker,
    /// What came along with packages of a run that died.
    Unowned,
}

impl Owner {
    /// Those whose resources go together at cleanup. Pods go before them, and the user's last scripts run after them.
    pub(crate) const UNDONE_TOGETHER: [Self; 10] = [
        Self::Prepare,
        Self::Prejoin,
        Self::Etcd,
        Self::LoadBalancer,
        Self::Master,
        Self::Pods,
        Self::Runtime,
        Self::Worker,
        Self::Postjoin,
        Self::Unowned,
    ];

    /// The word in a machine's record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Prejoin => "prejoin",
            Self::Postjoin => "postjoin",
            Self::Precleanup => "keep-precleanup",
            Self::Postcleanup => "keep-postcleanup",
            Self::Etcd => "etcd",
            Self::LoadBalancer => "load-balancer",
            Self::Master => "master",
            Self::Pods => "pods",
            Self::Runtime => "runtime",
            Self::Worker => "worker",
            Self::Unowned => "unowned",
        }
    }

    /// The name that machines know it by.
    #[expect(
        clippy::expect_used,
        reason = "lower-case letters and dashes are a word"
    )]
    pub fn word(self) -> Word {
        Word::new(self.as_str()).expect("an owner is a word")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
