//! Plans, without any machine: what is planned for which cluster, what is rendered for which version, whether each
//! version understands it, and whether each key of a deploy file makes a difference.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

mod changes;
mod clusters;
mod elsewhere;
mod flags;
mod fleet;
mod ground;
mod hardening;
mod keys;
mod rendered;
mod text;
