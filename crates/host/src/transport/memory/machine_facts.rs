//! The facts of a machine in memory: the answer of a real one, edited.

use std::{fmt::Write as _, time::SystemTime};

use super::world::World;

/// The answer to the script of [`crate::facts::script()`], section by section. What a task changes is reported as it then is.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    sections: Vec<(String, String)>,
}

const REAL: &str = include_str!("../../facts/answers/debian.txt");
const BOUNDARY: &str = "12b492cb-47a9-4b5b-a69c-b2fb0789fcd7";

impl MachineFacts {
    /// A Debian 12 server on amd64: two processors, 24 GiB of memory, one disk, no traces of a cluster.
    pub fn debian() -> Self {
        let mark = format!("\n{BOUNDARY} ");
        let section = |text: &str| {
            let (name, body) = text.split_once('\n').unwrap_or((text, ""));
            (name.to_owned(), body.to_owned())
        };
        let sections = REAL.split(&mark).skip(1).map(section);
        let mut facts = Self {
            sections: sections.filter(|(name, _)| name != "end").collect(),
        };
        // The real one was a container with traces of a cluster.
        facts.remove_line("values", "container ");
        facts.remove_line("paths", "/.dockerenv");
        facts.remove_line("systemd", "Virtualization=");
        facts.set_section("entries", "");
        facts.set_section("directories", "");
        facts.set_section("proxies", "");
        facts.set_section(
            "mounts",
            "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
             30 25 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw\n",
        );
        facts.set_section(
            "file-systems",
            "4096 66053021 14811003 16777216 16226772 /\n",
        );
        facts.with_value(
            "cgroup-controllers",
            "cpuset cpu io memory hugetlb pids rdma misc",
        )
    }

    /// With another line of the section `values`, such as `kernel` or `machine-id`.
    #[must_use]
    pub fn with_value(mut self, name: &str, value: &str) -> Self {
        self.remove_line("values", &format!("{name} "));
        let _ = writeln!(self.section_mut("values"), "{name} {value}");
        self
    }

    /// With a whole section in the words of the script.
    #[must_use]
    pub fn with_section(mut self, name: &str, body: &str) -> Self {
        self.set_section(name, body);
        self
    }

    /// As `uname -m` prints it: `x86_64`, `aarch64`.
    #[must_use]
    pub fn with_machine(self, machine: &str) -> Self {
        self.with_value("machine", machine)
    }

    /// Sets the number of processors, at least one.
    #[must_use]
    pub fn with_cpus(self, count: u32) -> Self {
        self.with_value("cpus", &format!("0-{}", count.saturating_sub(1)))
    }

    /// Sets the bytes of memory, most of them free.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        let total = bytes / 1024;
        let free = total / 10 * 9;
        self.with_section(
            "memory",
            &format!("MemTotal: {total} kB\nMemAvailable: {free} kB\n"),
        )
    }

    /// With a program that listens on a TCP port of all addresses.
    #[must_use]
    pub fn with_listener(mut self, port: u16, program: &str) -> Self {
        let inode = 3_000_000 + u32::from(port);
        let _ = writeln!(
            self.section_mut("sockets"),
            "/proc/net/tcp: 9: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0",
        );
        let _ = writeln!(
            self.section_mut("socket-owners"),
            "{inode} {} {program}",
            1000 + u32::from(port)
        );
        self
    }

    fn section_mut(&mut self, name: &str) -> &mut String {
        let known = self.sections.iter().position(|(known, _)| known == name);
        let place = known.unwrap_or_else(|| {
            self.sections.push((name.into(), String::new()));
            self.sections.len() - 1
        });
        &mut self.sections[place].1
    }

    fn set_section(&mut self, name: &str, body: &str) {
        body.clone_into(self.section_mut(name));
    }

    fn remove_line(&mut self, section: &str, beginning: &str) {
        let body = self.section_mut(section);
        let stays = |line: &&str| !line.starts_with(beginning);
        *body = body.split_inclusive('\n').filter(stays).collect();
    }

    pub(super) fn section(&self, name: &str) -> &str {
        let found = self.sections.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, body)| body)
    }

    /// Path below `/proc/sys` and value, words separated by single spaces.
    pub(super) fn sysctls(&self) -> impl Iterator<Item = (&str, String)> {
        self.section("sysctls").lines().filter_map(|line| {
            let (path, value) = line.strip_prefix("/proc/sys/")?.split_once(':')?;
            Some((path, value.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
    }

    pub(super) fn answer(&self, world: &World, now: SystemTime) -> String {
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let clock = format!("{}.{:09} +0000\n", now.as_secs(), now.subsec_nanos());
        let text = |path: &str| {
            let bytes = world.files.bytes(path);
            bytes
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                .unwrap_or_default()
        };
        let mut answer = format!("hatchery-facts 1 {BOUNDARY}\n");
        for (name, body) in &self.sections {
            let told = match name.as_str() {
                "clock-begin" | "clock-end" => clock.clone(),
                "values" => values(body, &world.hostname, text("/etc/hostname").trim()),
                "hosts" => text("/etc/hosts"),
                "sysctls" => self.told_sysctls(world),
                "units" => units(body, world),
                _ => body.clone(),
            };
            let _ = write!(answer, "\n{BOUNDARY} {name}\n{told}");
        }
        let _ = write!(answer, "\n{BOUNDARY} end\n");
        answer
    }

    fn told_sysctls(&self, world: &World) -> String {
        let told = self.sysctls().filter_map(|(path, _)| {
            let value = world.sysctl(path)?;
            Some(format!("/proc/sys/{path}:{value}\n"))
        });
        told.collect()
    }
}

fn values(body: &str, hostname: &str, static_hostname: &str) -> String {
    let told = body.lines().map(|line| match line.split_once(' ') {
        Some(("hostname", _)) => format!("hostname {hostname}\n"),
        Some(("static-hostname", _)) => format!("static-hostname {static_hostname}\n"),
        _ => format!("{line}\n"),
    });
    told.collect()
}

/// Units that the machine has now are reported as they are; of the others what the recorded facts say.
fn units(body: &str, world: &World) -> String {
    let told = body.split("\n\n").map(|block| {
        let name = block.lines().find_map(|line| line.strip_prefix("Id="));
        match name.filter(|name| world.has_unit(name)) {
            Some(name) => format!(
                "Id={name}\nLoadState=loaded\nActiveState={}\nFragmentPath=/etc/systemd/system/{name}\nUnitFileState={}",
                world.unit(name).active_word(),
                world.unit_file_state(name),
            ),
            None => block.trim_end_matches('\n').to_owned(),
        }
    });
    told.collect::<Vec<_>>().join("\n\n") + "\n"
}
