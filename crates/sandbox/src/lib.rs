//! Disposable machines with systemd, SSH and addresses of their own, and real Kubernetes
//! beside them, for trying Hatchery and for testing it.
//!
//! [`lab`] is the way in: [`lab::up`] makes a set of machines, [`lab::open`] finds one again,
//! [`lab::down`] removes it. What exists is read from Docker's labels each time, so that
//! a run that was killed at any instant can simply be repeated.

pub mod apiserver;
mod boot;
mod capabilities;
mod create;
pub mod deploy_file;
pub mod docker;
mod down;
pub mod engine;
mod error;
pub mod fault;
mod files;
pub mod fixtures;
pub mod image;
mod inotify;
pub mod inventory;
pub mod lab;
mod lab_files;
mod machine;
pub mod name;
pub mod packages;
mod process;
pub mod progress;
pub mod settings;
pub mod snapshot;
pub mod ssh;
mod ssh_directory;
mod subnet;
pub mod test_lab;
mod up;
