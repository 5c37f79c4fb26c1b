//! A task of two hundred operations of every kind.

use std::{path::Path, time::Duration};

use hatchery_host::{
    content::Content,
    operation::{
        Access, Directory, File, Firewall, HostsEntry, Link, Mode, Operation, PackageFile,
        PackageName, PackageSource, Packages, Port, Protocol, Script, Sysctl, Unit, UnitName, User,
    },
    path::MachinePath,
    task::Task,
};
use hatchery_sandbox::{fixtures, settings::System};

use crate::lab::word;

fn path(text: &str) -> MachinePath {
    MachinePath::new(text).unwrap()
}

fn file(at: &str, content: String, mode: u16) -> Operation {
    Operation::File(File {
        path: path(at),
        content: Content::bytes(content.into_bytes()),
        access: Access::root(mode).unwrap(),
    })
}

fn directory(at: &str, ours: bool) -> Operation {
    Operation::Directory(Directory {
        path: path(at),
        access: Access::root(0o750).unwrap(),
        contents_are_ours: ours,
    })
}

fn unit(name: &str, file: &str) -> Operation {
    Operation::Unit(Unit {
        name: UnitName::new(name).unwrap(),
        enabled: Some(true),
        running: Some(true),
        restart_on: vec![path(file)],
    })
}

fn package_file(directory: &Path, name: &str) -> PackageFile {
    let found = std::fs::read_dir(directory).unwrap().find_map(|entry| {
        let entry = entry.unwrap().file_name().into_string().unwrap();
        entry.starts_with(name).then_some(entry)
    });
    let found = found.unwrap_or_else(|| panic!("no {name} in {}", directory.display()));
    PackageFile::new(&found, Content::file(&directory.join(&found)).unwrap()).unwrap()
}

/// Two hundred operations; another flavour wants other contents of the same things.
pub(crate) async fn two_hundred(system: System, flavour: &str) -> Task {
    let packages = fixtures::ensure(&["packages-new"])
        .await
        .unwrap()
        .path("packages-new");
    let from = packages.join(if system == System::Debian {
        "apt"
    } else {
        "dnf"
    });
    let mut operations = vec![
        // Two from the repository, and two from files of which one needs the other.
        Operation::Packages(Packages {
            source: PackageSource::Repository(vec![
                PackageName::new("socat").unwrap(),
                PackageName::new("cri-tools").unwrap(),
            ]),
        }),
        Operation::Packages(Packages {
            source: PackageSource::Files(vec![
                package_file(&from, "libnetfilter_queue"),
                package_file(&from, "libnetfilter_cttimeout"),
            ]),
        }),
        directory("/srv/data", true),
        directory("/var/lib/ours", true),
        directory("/opt/ours/empty", false),
        Operation::Link(Link {
            path: path("/etc/theirs/dangling"),
            target: format!("elsewhere-{flavour}"),
        }),
        Operation::Link(Link {
            path: path("/etc/theirs/to-directory"),
            target: "10.conf".into(),
        }),
        Operation::Absent(path("/etc/theirs/9.conf")),
        Operation::Absent(path("/etc/theirs/never-there")),
        file(
            "/etc/systemd/system/theirs.service",
            format!("[Service]\nExecStart=/bin/sleep 1000{}\n", flavour.len()),
            0o644,
        ),
        unit("theirs.service", "/etc/systemd/system/theirs.service"),
        Operation::Module(word("overlay")),
        Operation::Hostname(word("renamed")),
        Operation::Script(Script {
            name: word("marker"),
            check: "test -e /opt/marker".into(),
            apply: "echo 'it'\\''s made' >/opt/marker".into(),
            undo: "rm -f /opt/marker".into(),
            deadline: Duration::from_secs(10),
        }),
        Operation::Firewall(Firewall {
            port: Port::range(30000, 32767).unwrap(),
            protocol: Protocol::Tcp,
            address: None,
        }),
        Operation::User(User {
            name: word("ours"),
            home: path("/var/lib/ours-data"),
        }),
        Operation::Directory(Directory {
            path: path("/var/lib/ours-data"),
            access: Access {
                mode: Mode::new(0o700).unwrap(),
                owner: word("ours"),
                group: word("ours"),
            },
            contents_are_ours: true,
        }),
    ];
    for (name, value) in [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv4.ip_local_port_range", "20000 60000"),
        ("net.ipv4.conf.all.rp_filter", "2"),
        ("net.core.somaxconn", "1234"),
        ("net.ipv4.tcp_keepalive_time", "601"),
    ] {
        operations.push(Operation::Sysctl(Sysctl::new(name, value).unwrap()));
    }
    for number in 1..=3 {
        let at = format!("/etc/systemd/system/ours-{number}.service");
        let text = format!(
            "[Unit]\nDescription={flavour}\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
        );
        operations.push(file(&at, text, 0o644));
        operations.push(unit(&format!("ours-{number}.service"), &at));
    }
    for number in 1..=10 {
        operations.push(Operation::HostsEntry(HostsEntry {
            address: format!("10.9.0.{number}").parse().unwrap(),
            names: vec![
                word(&format!("node-{number}")),
                word(&format!("node-{number}.example.com")),
            ],
        }));
    }
    for number in 1..=8 {
        // What is there is replaced; of two of them only the mode changes.
        let text = if number > 6 {
            format!("theirs {number}\n")
        } else {
            format!("ours {flavour} {number}\n")
        };
        operations.push(file(&format!("/etc/theirs/{number}.conf"), text, 0o600));
    }
    for number in operations.len()..200 {
        let size = 10 + (number * 7919) % 20_000;
        let text = format!("{flavour} {number} ").repeat(size / 10);
        let at = match number % 4 {
            0 => format!("/etc/ours/deep/{}/file {number}", number % 5),
            1 => format!("/usr/local/bin/ours-{number}"),
            2 => format!("/var/lib/ours/{number}.state"),
            _ => format!("/opt/ours/it's-{number}.conf"),
        };
        operations.push(file(&at, text, if number % 4 == 1 { 0o755 } else { 0o640 }));
    }
    Task::new(word("worker"), operations).unwrap()
}
