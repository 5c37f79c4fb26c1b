//! What a confined program sees: itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use nix::sched::CloneFlags;
use rustix::{
    process::{Resource, Rlimit, Signal},
    thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets},
};

use super::NotStarted;

/// More than a program takes that only prints its version, with what Go reserves.
const MEMORY: u64 = 4 << 30;
/// Seconds of processor time.
const CPU_TIME: u64 = 15;
const OPEN_FILES: u64 = 64;

/// Where the dynamic loader and libraries are. Everybody may read them anyway.
const LIBRARIES: [&str; 5] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/etc/ld.so.cache",
];

/// Closes files that our parent process left open: no other restriction covers those.
pub(super) fn close_inherited_files() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // The directory's own is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// Limits time, memory and files.
pub(super) fn set_limits() -> Result<(), NotStarted> {
    for (resource, most) in [
        (Resource::As, MEMORY),
        (Resource::Cpu, CPU_TIME),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        let set = rustix::process::setrlimit(resource, limit);
        set.map_err(|error| NotStarted::new(format!("its limits cannot be set: {error}")))?;
    }
    Ok(())
}

/// Hides everything but the program, and for one that is linked dynamically, the system's libraries. Two restrictions, each
/// of which is enough: a root of its own in a user namespace, with an empty network; and Landlock.
///
/// The answer is the program's path behind the fences.
pub(super) fn enclose(program: &Path, is_dynamic: bool) -> Result<PathBuf, NotStarted> {
    let in_namespaces = enter_namespaces();
    let rooted = match (in_namespaces, is_dynamic) {
        // Libraries would have to be mounted there.
        (true, false) => change_root(program),
        _ => None,
    };
    drop_capabilities(in_namespaces)?;
    // A session of its own has no terminal.
    let _ = rustix::process::setsid();
    // Set last: a change of rights takes it back.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| NotStarted::new(format!("it cannot be tied to us: {error}")))?;
    let path = rooted.clone().unwrap_or_else(|| program.to_owned());
    let fenced = landlocked(&path, is_dynamic)
        .map_err(|error| NotStarted::new(format!("it cannot be confined: {error}")))?;
    if fenced || rooted.is_some() {
        Ok(path)
    } else {
        Err(NotStarted::new(
            "this machine cannot keep your files from it: its kernel has neither Landlock nor, for programs that \
             are linked statically, user namespaces",
        ))
    }
}

fn enter_namespaces() -> bool {
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    nix::sched::unshare(all).is_ok()
}

/// Makes the directory of the program, in which nothing else is, the root. A process without capabilities cannot leave it.
fn change_root(program: &Path) -> Option<PathBuf> {
    let name = program.file_name()?;
    rustix::process::chroot(program.parent()?).ok()?;
    rustix::process::chdir("/").ok()?;
    Some(Path::new("/").join(name))
}

/// Gives up capabilities for good, root's too.
fn drop_capabilities(in_namespaces: bool) -> Result<(), NotStarted> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE;
    let no_root = rustix::thread::set_capabilities_secure_bits(bits).is_ok();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    let dropped = rustix::thread::set_capabilities(None, none).is_ok();
    // In a namespace where nobody is root, no program becomes it. Elsewhere root's programs regain all.
    let regains = !no_root && !in_namespaces && rustix::process::geteuid().is_root();
    match dropped && !regains {
        true => Ok(()),
        false => Err(NotStarted::new("root's rights cannot be taken from it")),
    }
}

fn landlocked(program: &Path, is_dynamic: bool) -> Result<bool, RulesetError> {
    let newest = ABI::V6;
    let own = AccessFs::Execute | AccessFs::ReadFile;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?;
    let libraries = LIBRARIES.iter().filter(|_| is_dynamic).map(Path::new);
    for path in libraries.chain([program]) {
        // Not every system has all of them.
        if let Ok(open) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(open, own))?;
        }
    }
    let status = ruleset.restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}
