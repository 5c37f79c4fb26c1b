//! The system calls that a confined program is refused.
//!
//! Landlock and namespaces keep files and the network away, as far as this kernel's know them. The filter does what
//! they leave open, on every kernel alike: sockets of any kind, new processes, other processes, owners, modes and times of
//! files, keys, and what is shared between processes of one user.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

use super::NotStarted;

/// Refused whatever their arguments are, where each processor has them.
const REFUSED: &[i64] = &[
    // Sockets, and the queue through which a kernel makes them without these calls.
    libc::SYS_socket,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes. Its own threads are signalled by tgkill, which has its own rule.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_setpriority,
    // Names, also where there is no Landlock and the program has a root of its own.
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    // Files, where Landlock does not look: modes, owners, times, attributes, and handles instead of paths.
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_open_by_handle_at,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    // What processes of one user share.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // Much kernel, and no use for a program that prints its version.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// The older calls that only this processor has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

// Calls that are newer than their names in libc; their numbers are the same everywhere.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

// Who is told about a file, by names that libc does not have.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;

/// This bit in a call's number means the same call for programs with short pointers, on x86-64.
const SHORT_POINTERS: i64 = 0x4000_0000;

/// Installs the filter. From here on this process has neither sockets nor children.
pub(super) fn install() -> Result<(), NotStarted> {
    let refused = |error: &dyn std::fmt::Display| {
        NotStarted::new(format!(
            "this machine cannot limit its system calls: {error}"
        ))
    };
    for program in programs(std::process::id()).map_err(|error| refused(&error))? {
        apply_filter(&program).map_err(|error| refused(&error))?;
    }
    Ok(())
}

fn programs(own_id: u32) -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = |rules, errno: i32| -> Result<BpfProgram, seccompiler::BackendError> {
        // The C library's constants are positive.
        let action = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
    };
    // Their flags lie in memory, where no filter sees them: a C library then uses the older calls.
    let newest = [libc::SYS_clone3, libc::SYS_openat2];
    let newest = newest.map(|call| (call, Vec::new())).into();
    Ok([
        filter(both(newest), libc::ENOSYS)?,
        filter(both(rules(own_id)?), libc::EPERM)?,
    ])
}

fn rules(own_id: u32) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let unless =
        |argument, compare, value| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
            let condition = Condition::new(argument, Len::Qword, compare, value)?;
            Ok(vec![SeccompRule::new(vec![condition])?])
        };
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let always = REFUSED.iter().chain(OLDER).map(|call| (*call, Vec::new()));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = always.collect();
    rules.insert(libc::SYS_openat, for_writing(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, for_writing(1)?);
    rules.insert(libc::SYS_clone, unless(0, Compare::MaskedEq(thread), 0)?);
    rules.insert(libc::SYS_tgkill, unless(0, Compare::Ne, own_id.into())?);
    rules.insert(libc::SYS_prlimit64, unless(0, Compare::Ne, 0)?);
    // Whoever owns a file is sent a signal of one's choice when there is something to read.
    let owners = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX].map(|call| u64::from(call.unsigned_abs()));
    rules.insert(libc::SYS_fcntl, one_of(1, &owners)?);
    rules.insert(
        libc::SYS_ioctl,
        one_of(1, &[FIOSETOWN, SIOCSPGRP, libc::TIOCSTI])?,
    );
    Ok(rules)
}

/// Calls whose argument is one of these.
fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rule = |value: &u64| {
        let condition = Condition::new(argument, Len::Dword, Compare::Eq, *value)?;
        SeccompRule::new(vec![condition])
    };
    values.iter().map(rule).collect()
}

/// Files that are opened to be made or written; the argument holds the flags.
fn for_writing(argument: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let flags = [
        (libc::O_ACCMODE, libc::O_WRONLY),
        (libc::O_ACCMODE, libc::O_RDWR),
        (libc::O_CREAT, libc::O_CREAT),
        (libc::O_TRUNC, libc::O_TRUNC),
    ];
    let rule = |(mask, value): (i32, i32)| {
        let (mask, value) = (
            u64::from(mask.unsigned_abs()),
            u64::from(value.unsigned_abs()),
        );
        let condition = Condition::new(argument, Len::Dword, Compare::MaskedEq(mask), value)?;
        SeccompRule::new(vec![condition])
    };
    flags.into_iter().map(rule).collect()
}

fn both(rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    if !cfg!(target_arch = "x86_64") {
        return rules;
    }
    let short = rules.clone().into_iter();
    let short = short.map(|(call, rules)| (call | SHORT_POINTERS, rules));
    short.chain(rules).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_made() {
        let [first, second] = programs(7).unwrap();
        assert!(!first.is_empty());
        // The kernel takes no more.
        assert!(second.len() < 4096, "{}", second.len());
    }
}
