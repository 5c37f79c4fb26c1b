//! What each machine of a cluster needs, in which order, done, and remembered.
//!
//! The way of a cluster: [`reach`] makes machines that can be talked to out of those that a deploy file names;
//! [`preflight`] asks them what they are like and judges whether a cluster can be made of them; [`package`] says what
//! archives and lists bring; [`plan`] puts in order what each machine needs, of which `components` know; [`run`] does it,
//! on machines and through the cluster's own [`api`]. [`deployment`] is this way up to the plan, [`cleanup`] the way back.
//! [`state`] remembers a cluster between runs, and [`authorities`] are what its certificates and tokens stand on.

pub mod api;
mod arguments;
pub mod authorities;
pub mod cleanup;
pub mod command_hook;
mod components;
pub mod confinement;
pub mod deployment;
pub mod diff;
pub mod event;
mod fetch;
pub mod kubeconfig;
pub mod material;
pub mod package;
pub mod plan;
pub mod preflight;
pub mod reach;
pub mod resource;
pub mod run;
pub mod state;
pub mod status;
mod taints;
mod unit_file;
pub mod versions;

pub use hatchery_spec::name_list;
