//! What each machine of a cluster needs, in which order, done, and remembered.
//!
//! [`reach`] makes machines that can be talked to out of those that a deploy file names, and [`preflight`] asks them
//! what they are like and judges whether a cluster can be made of them, before anything is changed. [`state`] remembers a
//! cluster between runs, and [`authorities`] are what its certificates and tokens stand on.

pub mod authorities;
pub mod name_list;
pub mod preflight;
pub mod reach;
pub mod state;
