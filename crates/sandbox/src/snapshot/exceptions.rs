//! What may differ between two looks at a machine although nobody left anything behind: a short list, each with its
//! reason. Whatever is not named here has to be as it was.

/// How much of an entry is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// Whether it is there at all.
    Everything,
    /// What is in it; it has to be there with the same owner and mode.
    Content,
    /// When it was written; content, owner and mode have to be the same.
    Time,
}

/// A difference that is not an error, with its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exception {
    /// The section of the snapshot that it is about.
    section: &'static str,
    /// Which names in it: `*` stands for any characters, a slash among them.
    pattern: &'static str,
    left_out: LeftOut,
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "for the reader; a test asks for it")
    )]
    reason: &'static str,
}

const fn exception(
    section: &'static str,
    pattern: &'static str,
    left_out: LeftOut,
    reason: &'static str,
) -> Exception {
    Exception {
        section,
        pattern,
        left_out,
        reason,
    }
}

use LeftOut::{Content, Everything, Time};

/// The whole list. Sections are those of `walk.sh`.
#[rustfmt::skip]
const EXCEPTIONS: &[Exception] = &[
    // The machine's own records of time passing.
    exception("file", "/var/log/journal/*", Everything, "journald writes and rotates them by itself"),
    exception("file", "/run/log/journal*", Everything, "journald keeps the log here until the disk is there"),
    exception("file", "/var/log/[wb]tmp", Content, "one record for each login"),
    exception("file", "/var/log/lastlog", Content, "one record for each login"),
    exception("file", "/var/log/faillog", Content, "one record for each failed login"),
    exception("file", "/run/utmp", Content, "one record for each session"),
    exception("file", "/run/motd.dynamic", Content, "pam_motd writes it at a login, with the system's name and version"),
    exception("file", "/run/sudo*", Everything, "sudo remembers who gave a password"),
    exception("file", "/var/lib/sudo/*", Everything, "sudo remembers whom it lectured"),
    exception("file", "/var/lib/systemd/timers/*", Everything, "systemd's timers note when they last ran"),
    exception("file", "/var/lib/systemd/random-seed", Content, "written at each boot"),
    exception("file", "/dev/pts/*", Everything, "terminals of sessions"),
    // systemd's view of units that come and go.
    exception("file", "/run/systemd/units/*", Everything, "systemd's list of units that run"),
    exception("file", "/run/systemd/journal/streams/*", Everything, "one for each process that has journald as its output"),
    exception("file", "/run/systemd/journal/kernel-seqnum", Content, "counts lines of the kernel's log"),
    exception("file", "/run/systemd/transient*", Everything, "units of sessions"),
    exception("file", "/run/systemd/generator*", Time, "made anew at each daemon-reload"),
    exception("file", "/run/systemd/systemd-units-load", Time, "its time is that of the last daemon-reload"),
    exception("file", "/run/systemd/propagate/*", Everything, "one for each service with a file system of its own"),
    exception("file", "/run/systemd/incoming", Time, "where mounts for such services pass through"),
    exception("file", "/run/credentials*", Everything, "systemd's, one for each service that is being started"),
    exception("mount", "/run/credentials/*", Everything, "systemd's, one for each service that is being started"),
    exception("file", "/run/systemd/userdb/*", Time, "sockets of systemd"),
    // Package managers: which packages are there is compared by name, version and state.
    exception("file", "/var/lib/dpkg/*", Everything, "dpkg's database"),
    exception("file", "/var/lib/apt/*", Everything, "apt's lists of what repositories offer"),
    exception("file", "/var/cache/apt/*", Everything, "apt's caches"),
    exception("file", "/var/cache/debconf/*", Everything, "debconf's database and its backups"),
    exception("file", "/var/lib/ucf/*", Everything, "ucf's database of configuration files"),
    exception("file", "/var/log/apt/*", Everything, "apt's own log"),
    exception("file", "/var/log/dpkg.log*", Everything, "dpkg's own log"),
    exception("file", "/var/log/alternatives.log*", Everything, "update-alternatives' own log"),
    exception("file", "/var/lib/rpm*", Everything, "rpm's database"),
    exception("file", "/usr/lib/sysimage/rpm*", Everything, "rpm's database"),
    exception("file", "/root/.rpmdb*", Everything, "rpm's database where Debian's rpm stands in for a distribution's own"),
    exception("file", "/var/lib/dnf*", Everything, "dnf's history"),
    exception("file", "/var/cache/dnf*", Everything, "dnf's lists of what repositories offer"),
    exception("file", "/var/log/dnf*", Everything, "dnf's own log"),
    exception("file", "/var/log/hawkey.log*", Everything, "dnf's own log"),
    exception("file", "/etc/ld.so.cache", Content, "the linker's list, written when a package brings libraries"),
    exception("file", "/var/cache/ldconfig/*", Everything, "the linker's list, written when a package brings libraries"),
    exception("file", "/var/lib/systemd/deb-systemd-helper-*", Everything, "Debian's packages remember which units they enabled"),
    // Users that come and go again leave the same lines in files written anew, and copies of the last state.
    exception("file", "/etc/passwd", Time, "useradd and userdel write it anew; its lines are compared"),
    exception("file", "/etc/group", Time, "groupadd and groupdel write it anew; its lines are compared"),
    exception("file", "/etc/shadow", Time, "useradd and userdel write it anew; its lines are compared"),
    exception("file", "/etc/gshadow", Time, "groupadd and groupdel write it anew; its lines are compared"),
    exception("file", "/etc/sub[ug]id", Time, "useradd and userdel write it anew; its lines are compared"),
    exception("file", "/etc/passwd-", Everything, "the copy that useradd keeps of the last state"),
    exception("file", "/etc/group-", Everything, "the copy that groupadd keeps of the last state"),
    exception("file", "/etc/shadow-", Everything, "the copy that useradd keeps of the last state"),
    exception("file", "/etc/gshadow-", Everything, "the copy that groupadd keeps of the last state"),
    exception("file", "/etc/sub[ug]id-", Everything, "the copy that useradd keeps of the last state"),
    exception("file", "/run/adduser", Everything, "adduser's lock, which it leaves"),
    // Handles on namespaces are files without content or time of their own.
    exception("file", "/run/netns/*", Content, "the handle of a network namespace"),
    exception("file", "/run/xtables.lock", Everything, "made by iptables of the older back end whenever it is asked, also by this comparison"),
    exception("file", "/run/*.pid", Content, "the number of a process, another one after each start"),
    exception("file", "/run/*", Time, "in memory, so made anew at each boot; content, owner and mode are compared"),
    // The engine that the machines of the sandbox run in.
    exception("chain", "DOCKER_OUTPUT", Everything, "Docker's resolver for containers, 127.0.0.11"),
    exception("chain", "DOCKER_POSTROUTING", Everything, "Docker's resolver for containers, 127.0.0.11"),
    exception("rule", "*127.0.0.11*", Everything, "Docker's resolver for containers"),
    // Who looks is there too, and so are those who look after the machine.
    exception("process", "(ps|bash)", Everything, "this very comparison"),
    exception("process", "(sshd|sudo|(sd-pam)|systemd|sftp-server)", Everything, "sessions of logged-in users"),
    exception("process", "kworker*", Everything, "threads of the kernel"),
    exception("module", "(ip|nf|xt_|x_tables|libcrc32c|tunnel|udp_tunnel|vxlan|veth|bridge|stp|llc|dummy|wireguard)*", Everything, "the kernel loads them on first use, and they are those of the machine that the sandbox runs on"),
    exception("unit", "*.target *", Everything, "stays reached once a service asked for it; unit files are compared"),
    exception("unit", "*.device *", Everything, "the kernel's devices as systemd lists them"),
    exception("unit", "(user-|session-|user@|run-user-)*", Everything, "sessions of logged-in users"),
    exception("unit", "run-credentials-*", Everything, "systemd's, one for each service that is being started"),
    exception("unit", "* not-found *", Everything, "only named by another unit; unit files are compared"),
    exception("unit", "(apt-daily|dpkg-db|e2scrub|fstrim|logrotate|man-db|motd)*", Everything, "timers of the distribution"),
    exception("unit", "systemd-(tmpfiles|journal|update|random|hostnamed|timedated)*", Everything, "started by others or by time, and ends by itself"),
    exception("control-group", "*/(system.slice|init.scope)*", Everything, "services, which systemd puts below a controller when a neighbour needs it; units are compared"),
    exception("control-group", "*.mount", Everything, "mounts, which systemd treats like services; they are compared"),
    exception("control-group", "*/(user|session)-*", Everything, "sessions of logged-in users"),
    exception("control-group", "*/user.slice*", Everything, "sessions of logged-in users"),
    exception("control-group", "*/systemd-(tmpfiles|journal|update|random|hostnamed|timedated)*", Everything, "started by others or by time, and ends by itself"),
];

/// How much of this entry is left out, if anything.
pub(super) fn left_out(section: &str, name: &str) -> Option<LeftOut> {
    let mut fitting = EXCEPTIONS
        .iter()
        .filter(|one| one.section == section && matches(one.pattern, name));
    fitting.next().map(|one| one.left_out)
}

/// Whether a name is one of a pattern: `*` any characters, `[ab]` one of these, `(one|other)` one of these words.
fn matches(pattern: &str, name: &str) -> bool {
    let Some(at) = pattern.find(['*', '[', '(']) else {
        return pattern == name;
    };
    let (plain, rest) = pattern.split_at(at);
    let Some(name) = name.strip_prefix(plain) else {
        return false;
    };
    let group = |open: char, close: char| {
        let inner = rest.strip_prefix(open)?;
        inner.rsplit_once(close)
    };
    if let Some(rest) = rest.strip_prefix('*') {
        return name
            .char_indices()
            .map(|(at, _)| at)
            .chain([name.len()])
            .any(|at| matches(rest, &name[at..]));
    }
    if let Some((letters, rest)) = group('[', ']') {
        let mut letters = letters.chars();
        return letters.any(|one| {
            name.strip_prefix(one)
                .is_some_and(|name| matches(rest, name))
        });
    }
    let Some((words, rest)) = group('(', ')') else {
        return false;
    };
    let mut words = words.split('|');
    words.any(|word| {
        name.strip_prefix(word)
            .is_some_and(|name| matches(rest, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_say() {
        for (pattern, fits, others) in [
            (
                "/run/utmp",
                &["/run/utmp"][..],
                &["/run/utmp2", "/run/utm"][..],
            ),
            ("/a/*", &["/a/", "/a/b/c"], &["/a", "/b/a/"]),
            (
                "/var/log/[wb]tmp",
                &["/var/log/wtmp", "/var/log/btmp"],
                &["/var/log/xtmp"],
            ),
            (
                "(ps|sh|(sd-pam))",
                &["ps", "sh", "(sd-pam)"],
                &["psh", "sd-pam"],
            ),
            (
                "*/(user|session)-*",
                &["/x/user-0.slice", "/session-1"],
                &["/x/users"],
            ),
            (
                "*127.0.0.11*",
                &["-A OUTPUT -d 127.0.0.11/32"],
                &["127.0.0.12"],
            ),
        ] {
            assert!(fits.iter().all(|name| matches(pattern, name)), "{pattern}");
            assert!(
                !others.iter().any(|name| matches(pattern, name)),
                "{pattern}"
            );
        }
    }

    #[test]
    fn every_exception_says_why_and_leaves_the_rest() {
        for one in EXCEPTIONS {
            assert!(one.reason.len() > 10, "{one:?}");
        }
        for kept in [
            "/var/log",
            "/var/cache",
            "/run",
            "/tmp",
            "/usr",
            "/etc",
            "/var/lib",
            "/root",
        ] {
            let stray = format!("{kept}/stray");
            assert_ne!(left_out("file", &stray), Some(Everything), "{stray}");
        }
        assert_eq!(left_out("file", "/etc/passwd"), Some(Time));
        assert_eq!(left_out("user", "/etc/passwd"), None);
    }
}
