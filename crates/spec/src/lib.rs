//! Deploy files of every dialect, parsed into one validated value.
//!
//! The way through: bytes → `tree` (every value with its place) → a dialect's reader →
//! `draft` (dialect aside) → `resolve` (defaults, comparisons) → [`cluster::Cluster`]. On the
//! way [`diagnostic::Diagnostics`] collects all problems, so that they are reported at once.
//!
//! No file is opened here: the caller passes the bytes, and gets a list of the files that they name.
//!
//! ```
//! use hatchery_spec::{Input, read};
//!
//! let text = "
//! cluster-id: demo
//! masters: [{name: m0, ip: 192.168.0.1}]
//! workers: [{name: m0, ip: 192.168.0.1}]
//! ";
//! let reading = read(Input::private("deploy.yaml", text.as_bytes()));
//! let cluster = reading.cluster.expect("nothing is wrong with it");
//! assert_eq!(cluster.endpoint.to_string(), "192.168.0.1:6443");
//!
//! let wrong = text.replace("192.168.0.1", "192.168.0");
//! let reading = read(Input::private("deploy.yaml", wrong.as_bytes()));
//! assert!(reading.cluster.is_none());
//! assert!(reading.diagnostics.render(false).contains("deploy.yaml:3:26"));
//! ```

pub mod cluster;
pub mod diagnostic;
mod draft;
pub mod edit;
mod eggo;
pub mod inventory;
pub mod keys;
pub mod name_list;
pub mod network_plugins;
pub mod package_name;
pub mod reading;
mod resolve;
pub mod runtimes;
pub mod schema;
mod settings;
pub mod source;
pub mod template;
mod tree;
pub mod value;
pub mod versions;
mod walk;

pub use cluster::Cluster;
pub use diagnostic::{Diagnostic, Diagnostics, Need, Severity};
pub use reading::{Purpose, Reading, Reference, read, read_for};
pub use source::Input;
