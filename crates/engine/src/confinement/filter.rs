//! The system calls that a confined program is refused.
//!
//! Landlock and namespaces keep files and the network away, as far as this kernel's know them. The filter does what
//! they leave open, on every kernel alike: sockets of any kind, new processes, other processes, owners, modes and times of
//! files, keys, and what is shared between processes of one user.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
    sock_filter,
};

use super::NotStarted;

/// Refused whatever their arguments are, where each processor has them.
const REFUSED: &[i64] = &[
    // Sockets, and the queue through which a kernel makes them without these calls. One of a pair sends to any address.
    libc::SYS_socket,
    libc::SYS_socketpair,
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
    libc::SYS_ioprio_set,
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
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
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

/// What programs ask of their own streams. Every other request is refused: drivers and file systems have many of which
/// nobody keeps a list, and some change a file that is open for reading only.
const REQUESTS: [u64; 6] = [
    libc::TCGETS,
    libc::TIOCGWINSZ,
    libc::FIONREAD,
    libc::FIONBIO,
    libc::FIOCLEX,
    libc::FIONCLEX,
];

/// These decide when another process runs and on which processor, unless their first argument is 0.
const SCHEDULING: [i64; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

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

fn programs(own_id: u32) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = |rules, errno: i32| -> Result<BpfProgram, seccompiler::BackendError> {
        // The C library's constants are positive.
        let action = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
    };
    // Their flags lie in memory, where no filter sees them: a C library then uses the older calls.
    let newest = [libc::SYS_clone3, libc::SYS_openat2];
    let newest = newest.map(|call| (call, Vec::new())).into();
    let mut programs = vec![
        filter(newest, libc::ENOSYS)?,
        filter(rules(own_id)?, libc::EPERM)?,
    ];
    if cfg!(target_arch = "x86_64") {
        programs.push(no_short_pointers());
    }
    Ok(programs)
}

/// Refuses the calls of programs with short pointers (x32), which x86-64 has beside its own: a bit in the number says so,
/// and some have numbers of their own besides, which old kernels take without the bit too.
fn no_short_pointers() -> BpfProgram {
    const SHORT_POINTERS: u32 = 0x4000_0000;
    const OWN_NUMBERS: std::ops::Range<u32> = 512..548;
    let statement = |code: u32, k: u32, jt: u8| sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let from = |number: u32, jump: u8| {
        statement(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, number, jump)
    };
    let end = |action: SeccompAction| statement(libc::BPF_RET | libc::BPF_K, u32::from(action), 0);
    vec![
        // The number is what the kernel's description of a call begins with.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        from(SHORT_POINTERS, 3),
        from(OWN_NUMBERS.end, 1),
        from(OWN_NUMBERS.start, 1),
        end(SeccompAction::Allow),
        end(SeccompAction::Errno(libc::EPERM.unsigned_abs())),
    ]
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
    for call in SCHEDULING {
        rules.insert(call, unless(0, Compare::Ne, 0)?);
    }
    // It ends with us, whatever it wants.
    let tie = u64::from(libc::PR_SET_PDEATHSIG.unsigned_abs());
    rules.insert(libc::SYS_prctl, one_of(0, &[tie])?);
    // Whoever owns a file is sent a signal of one's choice when there is something to read.
    let owners = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX].map(|call| u64::from(call.unsigned_abs()));
    rules.insert(libc::SYS_fcntl, one_of(1, &owners)?);
    rules.insert(libc::SYS_ioctl, none_of(1, &REQUESTS)?);
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

/// Calls whose argument is none of these.
fn none_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let condition = |value: &u64| Condition::new(argument, Len::Dword, Compare::Ne, *value);
    let conditions: Result<_, _> = values.iter().map(condition).collect();
    Ok(vec![SeccompRule::new(conditions?)?])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_made() {
        for program in programs(7).unwrap() {
            // The kernel takes no more.
            assert!((1..4096).contains(&program.len()), "{}", program.len());
        }
    }
}
