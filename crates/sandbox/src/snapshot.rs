//! Everything about a machine that a later user could notice, for tests that compare before and after.

use std::collections::{BTreeMap, BTreeSet};

use crate::{docker, lab::Machine};

/// Left out, because they are not ours: what is in memory only (`/run`, `/tmp`, `/proc`, `/sys`, `/dev`), logs, caches, and
/// what a package manager keeps for itself: its database and lists, the library cache, the users it made, and the state of
/// package-made timers; `/root/.rpmdb` is rpm's database where Debian's rpm stands in for a distribution's own. The engine that the
/// machines of the sandbox run in makes rules of its own for 127.0.0.11. Directories are compared without their times, which any change below them moves.
const WALK: &str = r#"
set -e
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log -o -path /var/cache \
  -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/rpm -o -path /var/lib/dnf -o -path /usr/lib/sysimage/rpm \
  -o -path /var/lib/systemd/timers -o -path /var/lib/systemd/random-seed -o -path /var/lib/systemd/deb-systemd-helper-enabled \
  -o -path /etc/ld.so.cache -o -path /var/lib/ucf -o -path '*/.cache' -o -path /root/.rpmdb \
  -o -name '.hatchery-boot*' \) -prune -o -printf '%y %m %U:%G %p\t%l\t' \( -type f -printf '%T@ %s\n' -o -printf '\n' \)
echo == sums
find /etc /opt /srv /usr/local /usr/lib/systemd /var/lib /root /home -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/rpm \
  -o -path /var/lib/dnf -o -path /etc/ld.so.cache -o -path /var/lib/systemd -o -path /root/.rpmdb \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
echo == units
systemctl list-unit-files --no-legend --no-pager | tr -s ' '
systemctl list-units --all --type=service --no-legend --no-pager --plain | awk '{print $1, $2, $3}' | grep -v 'not-found\|@\|user-\|session-\|systemd-\(tmpfiles\|journal\|update\|random\)\|apt-daily\|dpkg-db\|e2scrub\|fstrim\|logrotate\|man-db\|motd' || true
systemctl show theirs.service -p ExecStart -p ActiveState | sed 's/start_time.*//'
echo == packages
{ dpkg-query -W -f '${Package} ${Version} ${Status}\n' 2>/dev/null || rpm -qa; } | sort
echo == sysctls
sysctl -a 2>/dev/null | grep -E '^(net\.ipv[46]\.(ip_forward|conf\.(all|default|lo)|ip_local|tcp_)|net\.core\.somaxconn|kernel\.hostname|net\.unix)' | grep -v 'stable_secret\|tcp_mem\|fin_timeout_x\|tcp_fastopen_key'
echo == network
cat /etc/hosts /etc/resolv.conf; hostname
iptables-save 2>/dev/null | grep -v '^#\|127\.0\.0\.11\|^:' || true
nft list ruleset 2>/dev/null | grep -v '127\.0\.0\.11' || true
ip -o link show | sed 's/^[0-9]*: //;s/@.*//;s/:.*//' | sort
ip route | sort
echo == modules
ls /sys/module | sort
echo == mounts
cut -d ' ' -f 2,3 /proc/self/mounts | grep -v '^/run/credentials/' | sort
echo == processes
ps ax -o comm= | grep -v '^\(ps\|bash\|grep\|sort\|awk\|sed\|cut\|tr\|find\|xargs\|sshd\|sleep\|(sd-pam)\|systemd\)$' | sort -u
echo == groups
find /sys/fs/cgroup -maxdepth 3 -name 'kube*' | sort
"#;

/// What a machine was like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<String, String>);

impl Snapshot {
    /// Looks at a machine.
    ///
    /// # Errors
    /// When the machine does not run.
    pub async fn of(machine: &Machine) -> Result<Self, docker::Error> {
        let text = docker::run(&["exec", &machine.container(), "bash", "-c", WALK]).await?;
        let mut section = "files".to_owned();
        let mut found = BTreeMap::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("== ") {
                name.clone_into(&mut section);
                continue;
            }
            // Keyed by the path where there is one, so that a difference is shown as a change.
            let key = match section.as_str() {
                "files" => line
                    .splitn(4, ' ')
                    .nth(3)
                    .and_then(|rest| rest.split('\t').next()),
                "sums" => line.split_once("  ").map(|(_, path)| path),
                _ => Some(line),
            };
            found.insert(
                format!("{section} {}", key.unwrap_or(line)),
                line.to_owned(),
            );
        }
        Ok(Self(found))
    }

    /// What is not as it was, each with before and now; at most thirty.
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let keys: BTreeSet<_> = self.0.keys().chain(before.0.keys()).collect();
        keys.into_iter()
            .filter(|key| self.0.get(*key) != before.0.get(*key))
            .take(30)
            .map(|key| {
                format!(
                    "{key}\n   before {:?}\n   now    {:?}",
                    before.0.get(key),
                    self.0.get(key)
                )
            })
            .collect()
    }

    /// Nothing is otherwise than it was.
    ///
    /// # Panics
    /// When something is, or when there was nearly nothing to compare.
    pub fn assert_same(&self, before: &Self, when: &str) {
        let count = self.0.len();
        assert!(count > 3000, "a machine has more than {count} lines");
        let differences = self.differences(before);
        assert!(
            differences.is_empty(),
            "{when}:\n{}",
            differences.join("\n")
        );
    }
}
