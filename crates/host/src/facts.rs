//! What a machine is, learnt in one round trip.
//!
//! [`script()`] gives what runs on the machine and only reads; [`parse`] turns its answer into [`Facts`]. The
//! script ships what files and programs say, what they mean is decided here, where it can be tested.
//!
//! A machine's answer is hostile until read: any bytes give facts or an error. Text that comes
//! out of it holds no control characters and is safe to print. A fact that the machine did not
//! report is `None` or not in the list; nothing is guessed.

mod agents;
mod answer;
mod capability;
mod cgroup;
mod clock;
mod confinement;
mod disk;
mod firewall;
mod identity;
mod memory;
mod module;
mod network;
mod os;
mod port;
mod program;
mod question;
mod resolver;
mod runtime;
mod runtime_use;
mod security;
mod service;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::SystemTime};

use serde::{Deserialize, Serialize};

pub use agents::Agents;
use answer::Answer;
pub use answer::{Error, MAX_ANSWER};
pub use capability::Capabilities;
pub use cgroup::{CgroupVersion, Cgroups};
pub use clock::Clock;
pub use confinement::Confinement;
pub use disk::{Disk, Space};
pub use firewall::{Firewall, Firewalls, Iptables, IptablesBackend};
pub use identity::Identity;
pub use memory::{Memory, Swap};
pub use module::ModuleState;
pub use network::{Address, DefaultRoute, Interface, Names};
pub use os::{Arch, Os};
pub use port::{Listener, Process, Protocol};
pub use program::Shell;
pub use question::{ConfiguredDirectory, DirectorySetting, Questions, RuntimeQuestion, script};
pub use resolver::Resolver;
pub use runtime::Runtime;
pub use runtime_use::{DOCKER_SETTINGS, DockerUse, RUNTIME_USE, RuntimeUse};
pub use security::{AppArmor, Selinux, SelinuxMode};
pub use service::{ActiveState, Init, Systemd, Unit};

use crate::package_manager::PackageManager;

/// Prints the facts of the machine that runs it, best as root, behind what [`script()`] puts before it. For any POSIX
/// shell; it takes nothing from its standard input and does not depend on how it was started.
pub(crate) const SCRIPT: &str = include_str!("facts/facts.sh");

/// What is known of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The distribution, as `/etc/os-release` names it.
    pub os: Os,
    /// The processor's architecture.
    pub arch: Option<Arch>,
    /// The kernel's release, such as `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// Whether the script ran as root; without, several facts are missing.
    pub root: Option<bool>,
    /// What identifies this machine.
    pub identity: Identity,
    /// Host names: the kernel's, and the configured one.
    pub names: Names,
    /// Whether the machine is a container or virtual.
    pub confinement: Confinement,
    /// What even root may not do here.
    pub capabilities: Option<Capabilities>,
    /// Which version of control groups is mounted, with which controllers.
    pub cgroups: Option<Cgroups>,
    /// The first process.
    pub init: Init,
    /// Units of interest that exist, by name; `None` when systemd did not answer.
    pub units: Option<BTreeMap<String, Unit>>,
    /// Kernel modules of interest. One that is not listed is unknown.
    pub modules: BTreeMap<String, ModuleState>,
    /// Kernel settings by their dotted names.
    pub sysctls: BTreeMap<String, String>,
    /// The package manager, `None` when there is none that is known.
    pub package_manager: Option<&'static PackageManager>,
    /// What `/bin/sh` is.
    pub shell: Option<Shell>,
    /// Programs of interest that are there, with their paths.
    pub programs: BTreeMap<String, String>,
    /// The machine's clock against ours.
    pub clock: Option<Clock>,
    /// For how many seconds the kernel runs.
    pub uptime_seconds: Option<u64>,
    /// Processors that are online.
    pub cpus: Option<u32>,
    /// Memory and swap.
    pub memory: Option<Memory>,
    /// Swap in use; empty when there is none.
    pub swap: Option<Vec<Swap>>,
    /// Mounted file systems that hold data, in the order they were mounted.
    pub disks: Option<Vec<Disk>>,
    /// SELinux.
    pub selinux: Option<Selinux>,
    /// AppArmor.
    pub apparmor: Option<AppArmor>,
    /// Programs that rewrite parts of the machine by themselves.
    #[serde(default)]
    pub agents: Agents,
    /// Firewalls that are installed.
    pub firewalls: Firewalls,
    /// Network interfaces; `None` where there is no `ip` program.
    pub interfaces: Option<Vec<Interface>>,
    /// Default routes of IPv4 and IPv6.
    pub default_routes: Option<Vec<DefaultRoute>>,
    /// Ports that processes listen on.
    pub listeners: Option<Vec<Listener>>,
    /// The configuration of name resolution.
    pub resolver: Option<Resolver>,
    /// Those of [`Questions::runtimes`] that are installed.
    pub runtimes: Vec<Runtime>,
    /// Whom they serve, besides a cluster of ours.
    #[serde(default)]
    pub runtime_use: RuntimeUse,
    /// Paths in the directories of [`Questions::entries`].
    #[serde(default)]
    pub entries: Vec<String>,
    /// Directories that the settings of [`Questions::directories`] name, by the setting's name.
    #[serde(default)]
    pub directories: BTreeMap<String, ConfiguredDirectory>,
    /// Names of proxy settings in `/etc/environment`. Values may hold passwords and stay there.
    pub proxies: Vec<String>,
}

/// Reads what the script of [`script()`] printed. `sent` and `received` are our own clock before the script was
/// sent and after its answer was complete.
///
/// # Errors
/// When it is not an answer, of another version, truncated or longer than [`MAX_ANSWER`].
pub fn parse(bytes: &[u8], sent: SystemTime, received: SystemTime) -> Result<Facts, Error> {
    let answer = Answer::read(bytes)?;
    let arch = os::arch(&answer);
    let units = service::units(&answer);
    let programs = program::programs(&answer);
    let os = os::os(&answer);
    Ok(Facts {
        kernel: answer.value("kernel"),
        root: capability::is_root(&answer),
        identity: identity::identity(&answer),
        names: network::names(&answer),
        confinement: confinement::confinement(&answer),
        capabilities: capability::capabilities(&answer),
        cgroups: cgroup::cgroups(&answer),
        init: service::init(&answer),
        modules: module::modules(&answer),
        sysctls: program::sysctls(&answer),
        package_manager: program::package_manager(&answer, &os, &programs),
        shell: program::shell(&answer),
        clock: clock::clock(&answer, sent, received),
        uptime_seconds: clock::uptime_seconds(&answer),
        cpus: memory::cpus(&answer),
        memory: memory::memory(&answer),
        swap: memory::swap(&answer),
        disks: disk::disks(&answer),
        selinux: security::selinux(&answer),
        apparmor: security::apparmor(&answer),
        agents: agents::agents(&answer),
        firewalls: firewall::firewalls(&answer, &programs, units.as_ref()),
        interfaces: network::interfaces(&answer),
        default_routes: network::default_routes(&answer, arch.as_ref()),
        listeners: port::listeners(&answer, arch.as_ref()),
        resolver: resolver::resolver(&answer),
        runtimes: runtime::runtimes(&answer, &programs, units.as_ref()),
        runtime_use: runtime_use::runtime_use(&answer, units.as_ref()),
        entries: answer.lines("entries").unwrap_or_default().to_vec(),
        directories: question::directories(&answer),
        proxies: answer.lines("proxies").unwrap_or_default().to_vec(),
        os,
        arch,
        units,
        programs,
    })
}
