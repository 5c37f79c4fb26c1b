//! Small values that are right by construction: each is made from text and says what was expected.

mod address;
mod arch;
mod duration;
mod host_key;
mod label;
mod name;
mod path;
mod release;
mod secret;
mod version;

pub use address::{
    Bastion, Cidrs, Endpoint, Host, Port, address, cidr, login, machine_address, nth_address,
};
pub use arch::Arch;
pub use duration::GoDuration;
pub use host_key::HostKey;
pub use label::{Effect, Label, Taint};
pub use name::{DnsName, Name};
pub use path::{AbsolutePath, LocalPath};
pub use release::Release;
pub use secret::Secret;
pub use version::Version;

/// Why a text is not the value it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What is wrong, without the text itself, as the end of a sentence: `"x" is …`.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Mismatch {
    pub(crate) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// Serialised as its text.
macro_rules! text_serialize {
    ($($kind:ty),*) => {$(
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
text_serialize!(
    Bastion,
    Cidrs,
    Endpoint,
    Host,
    GoDuration,
    HostKey,
    Label,
    Taint,
    Name,
    DnsName,
    AbsolutePath,
    LocalPath,
    Release,
    Version
);
