//! What `walk.sh` printed, as entries that can be compared one by one.

use std::collections::BTreeMap;

use super::exceptions::{LeftOut, left_out};

/// Entries being collected.
#[derive(Default)]
struct Entries {
    all: BTreeMap<String, String>,
    /// The chain or the block of nft that the following lines are part of.
    within: Option<String>,
    table: String,
}

/// Each thing by its section and name, without what may differ.
pub(super) fn entries(text: &str) -> BTreeMap<String, String> {
    let mut entries = Entries::default();
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            section = name;
            entries.within = None;
            if name == "end" {
                entries.all.insert("end".to_owned(), String::new());
            }
            continue;
        }
        match section.split_once(' ').unwrap_or((section, "")) {
            ("file", _) => entries.file(line),
            ("sum", _) => entries.sum(line),
            ("chain", back_end) => entries.chain(back_end, line),
            ("nft", _) => entries.nft(line),
            ("link", _) => entries.link(line),
            // Named by their first word, so that a change is shown as one.
            (kind @ ("user" | "group"), _) => {
                let name = line.split(':').next().unwrap_or(line);
                entries.add(kind, name, line.to_owned());
            }
            _ => entries.add(section, line, String::new()),
        }
    }
    entries.forget_unused_tables();
    entries.all
}

impl Entries {
    fn add(&mut self, section: &str, name: &str, value: String) {
        if left_out(section, name) == Some(LeftOut::Everything) {
            return;
        }
        let key = format!("{section} {name}");
        // Several of a kind, such as mounts on top of each other, count. Processes come and go in numbers.
        let mut unique = key.clone();
        let mut number = 2;
        while section != "process" && self.all.contains_key(&unique) {
            unique = format!("{key} ({number})");
            number += 1;
        }
        self.all.insert(unique, value);
    }

    /// Kind, mode, owner, size, time, path and target, with tabs between.
    fn file(&mut self, line: &str) {
        let fields: Vec<_> = line.splitn(7, '\t').collect();
        let [kind, mode, owner, size, time, path, target] = fields[..] else {
            return self.add("file", line, String::new());
        };
        let value = match (kind, left_out("file", path)) {
            ("f", Some(LeftOut::Content)) => format!("file {mode} {owner}"),
            ("f", Some(LeftOut::Time)) => format!("file {mode} {owner} {size} bytes"),
            ("f", _) => format!("file {mode} {owner} {size} bytes of {time}"),
            ("d", _) => format!("directory {mode} {owner}"),
            ("l", _) => format!("link {owner} to {target}"),
            _ => format!("{kind} {mode} {owner}"),
        };
        self.add("file", path, value);
    }

    /// As `sha256sum` says it.
    fn sum(&mut self, line: &str) {
        let Some((sum, path)) = line.split_once("  ") else {
            return;
        };
        if left_out("file", path) == Some(LeftOut::Content) {
            return;
        }
        if let Some(value) = self.all.get_mut(&format!("file {path}")) {
            value.push_str(", sha256 ");
            value.push_str(sum);
        }
    }

    /// A line of `iptables-save`: a chain is its policy and its rules in their order.
    fn chain(&mut self, back_end: &str, line: &str) {
        if let Some(table) = line.strip_prefix('*') {
            table.clone_into(&mut self.table);
            return self.add("table", &format!("{back_end} {table}"), String::new());
        }
        if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split(' ');
            let (name, policy) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if left_out("chain", name).is_none() {
                let name = format!("{back_end} {} {name}", self.table);
                self.add("chain", &name, policy.to_owned());
            }
        } else if let Some(rule) = line.strip_prefix("-A ")
            && left_out("rule", rule).is_none()
            && let Some((name, rule)) = rule.split_once(' ')
            && let Some(chain) = self
                .all
                .get_mut(&format!("chain {back_end} {} {name}", self.table))
        {
            chain.push_str("; ");
            chain.push_str(rule);
        }
    }

    /// A table of the older back end stays in the kernel once anybody has asked for it, `iptables -L` included. Where its
    /// own chains let everything pass it is as good as none.
    fn forget_unused_tables(&mut self) {
        let legacy = |name: &str| name.contains("tables-legacy ");
        self.all.retain(|name, value| {
            let unused =
                name.starts_with("table ") || name.starts_with("chain ") && value == "ACCEPT";
            !(legacy(name) && unused)
        });
    }

    /// A line of nft's own list: a table has blocks, a block has lines.
    fn nft(&mut self, line: &str) {
        let words = line.trim();
        let opened = words.strip_suffix('{').map(str::trim_end);
        match (line.starts_with('\t'), opened) {
            (false, Some(table)) => {
                table.clone_into(&mut self.table);
                self.add("nft", table, String::new());
            }
            (true, Some(block)) if !line.starts_with("\t\t") => {
                let name = block.rsplit(' ').next().unwrap_or(block);
                self.within = None;
                if left_out("chain", name).is_none() {
                    let name = format!("{} {block}", self.table);
                    self.add("nft", &name, String::new());
                    self.within = Some(format!("nft {name}"));
                }
            }
            _ if words.is_empty() || words == "}" || left_out("rule", words).is_some() => {}
            _ => {
                let within = self.within.as_ref();
                if let Some(block) = within.and_then(|key| self.all.get_mut(key)) {
                    block.push_str("; ");
                    block.push_str(words);
                }
            }
        }
    }

    /// A line of `ip -o -d link`: name, flags and kind. Its kind is the first word behind what all devices have.
    fn link(&mut self, line: &str) {
        let (name, rest) = line.split_once(':').unwrap_or((line, ""));
        let name = name.split('@').next().unwrap_or(name);
        let after = |word: &str| {
            let mut words = rest.split_whitespace().skip_while(|one| *one != word);
            words.nth(1).unwrap_or("-").to_owned()
        };
        let flags = rest.split_whitespace().next().unwrap_or("").to_owned();
        let kind = rest
            .split_once("addrgenmode")
            .map_or("", |(before, _)| before);
        let kind = kind
            .rsplit('\\')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .next();
        let value = format!(
            "{flags} mtu {} master {} kind {}",
            after("mtu"),
            after("master"),
            kind.unwrap_or("-")
        );
        self.add("link", name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_told_by_name() {
        let text = "== file
f\t755\t0:0\t12\t1.5\t/usr/bin/a\t
d\t755\t0:0\t4096\t2.5\t/usr\t
l\t777\t0:0\t3\t3.5\t/bin\tusr/bin
f\t664\t0:43\t99\t3.5\t/var/log/wtmp\t
f\t664\t0:43\t99\t3.5\t/var/log/journal/x\t
f\t644\t0:0\t99\t3.5\t/etc/passwd\t
== sum
aa  /usr/bin/a
bb  /var/log/wtmp
cc  /etc/passwd
== mount
/a tmpfs
/a tmpfs
== chain iptables-nft
*nat
:OUTPUT ACCEPT [7:9]
:DOCKER_OUTPUT - [0:0]
:KUBE-X - [0:0]
-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT
-A OUTPUT -j KUBE-X
-A OUTPUT -j ACCEPT
COMMIT
== chain iptables-legacy
*filter
:INPUT ACCEPT [1:2]
:FORWARD DROP [1:2]
COMMIT
== nft
table ip nat {
\tchain DOCKER_OUTPUT {
\t\tip daddr 127.0.0.11 tcp dport 53 counter dnat to 127.0.0.11:1
\t}

\tchain OUTPUT {
\t\ttype nat hook output priority -100; policy accept;
\t\tip daddr 127.0.0.11 counter jump DOCKER_OUTPUT
\t}
\tset s {
\t\ttype ipv4_addr
\t}
}
== link
cali1@if2: <BROADCAST,UP> mtu 1500 qdisc noqueue state UP mode DEFAULT\\    link/ether aa brd ff promiscuity 0 \\    veth addrgenmode eui64 numtxqueues 1
== user
root:x:0:0
== end
";
        let found: Vec<_> = entries(text)
            .into_iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        assert_eq!(
            found,
            [
                "chain iptables-legacy filter FORWARD = DROP",
                "chain iptables-nft nat KUBE-X = -",
                "chain iptables-nft nat OUTPUT = ACCEPT; -j KUBE-X; -j ACCEPT",
                "end = ",
                "file /bin = link 0:0 to usr/bin",
                "file /etc/passwd = file 644 0:0 99 bytes, sha256 cc",
                "file /usr = directory 755 0:0",
                "file /usr/bin/a = file 755 0:0 12 bytes of 1.5, sha256 aa",
                "file /var/log/wtmp = file 664 0:43",
                "link cali1 = <BROADCAST,UP> mtu 1500 master - kind veth",
                "mount /a tmpfs = ",
                "mount /a tmpfs (2) = ",
                "nft table ip nat = ",
                "nft table ip nat chain OUTPUT = ; type nat hook output priority -100; policy accept;",
                "nft table ip nat set s = ; type ipv4_addr",
                "table iptables-nft nat = ",
                "user root = root:x:0:0",
            ]
        );
    }
}
