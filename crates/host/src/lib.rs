//! One machine: reach it, know it, change it, and put it back.
//!
//! [`transport`] is the way there, [`privilege`] makes a command run as root, [`facts`] is what a machine is like.
//! A [`task::Task`] is a list of [`operation`]s that travels as one stream and is answered with one report;
//! [`machine::Machine`] sends it, and knows what to do when the connection is lost on the way.

pub mod archive;
pub mod content;
pub mod facts;
pub mod machine;
pub mod operation;
pub mod package_format;
pub mod package_manager;
pub mod path;
pub mod privilege;
pub mod quote;
mod report;
pub mod script;
pub mod stream;
pub mod task;
pub mod transport;
