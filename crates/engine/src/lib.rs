//! What each machine of a cluster needs, in which order, done, and remembered.
//!
//! Every change to a cluster takes the same way, which [`session`] offers: [`reach`] makes machines that can be talked to out
//! of those that a deploy file names, and [`preflight`] asks them what they are like, which gives what is [`observed`];
//! [`package`] says what archives and lists bring, which makes the file a cluster that is [`wanted`]; [`plan`] compares the two
//! and puts in order what has to be done, of which `components` know the parts; a run does it, on machines and through
//! the cluster's own [`api`], and gives an [`outcome`]. [`state`] remembers a cluster between runs, and [`authorities`] are what
//! its certificates and tokens stand on.

pub mod api;
pub mod api_access;
mod arguments;
pub mod authorities;
pub mod command_hook;
mod comparison;
mod components;
pub mod confinement;
pub mod diff;
pub mod event;
mod fetch;
pub mod finding;
pub mod kubeconfig;
pub mod material;
pub mod observed;
pub mod outcome;
pub mod owner;
pub mod package;
pub mod plan;
pub mod preflight;
pub mod reach;
pub mod resource;
mod run;
pub mod session;
pub mod state;
pub mod status;
mod taints;
mod traces;
mod unit_file;
pub mod versions;
pub mod wanted;

pub use self::run::{MaxUnavailable, Settings};
pub use hatchery_spec::name_list;
