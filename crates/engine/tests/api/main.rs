//! The Kubernetes API through a machine, against a real API server: one for all tests.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod applying;
mod drain;
mod lost;
mod nodes;
mod pruning;
mod reaching;
mod server;
mod waiting;
