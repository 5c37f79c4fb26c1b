//! The closed list of what can be done to a machine.
//!
//! An operation is data: it says what a resource should be, not what to do. Whether it is so already, how to
//! make it so and how to put the original back is known to the machine's script (`script/prelude/`), so that
//! looking, doing and undoing are one piece of code. Values are checked when they are made; past that they are
//! known to be safe words for every tool on the machine.

mod packages;
mod values;

use std::{net::IpAddr, time::Duration};

use ipnet::IpNet;

pub use self::{
    packages::{PackageFile, PackageName, PackageSource, Packages},
    values::{Mode, Port, Protocol, UnitName, ValueError},
};
use crate::{
    content::Content,
    path::{MachinePath, Word},
};

/// The wanted state of one resource of a machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operation {
    /// A file with these bytes.
    File(File),
    Directory(Directory),
    /// A symbolic link.
    Link(Link),
    /// No file and no link at this path.
    Absent(MachinePath),
    /// A unit of systemd.
    Unit(Unit),
    /// Packages, installed together.
    Packages(Packages),
    /// A kernel parameter, now; a [`File`] makes it last.
    Sysctl(Sysctl),
    /// A kernel module, loaded now; a [`File`] makes it last.
    Module(Word),
    /// A line in `/etc/hosts`.
    HostsEntry(HostsEntry),
    /// The machine's own name.
    Hostname(Word),
    /// A port that firewalld or ufw lets through, when one of them is active.
    Firewall(Firewall),
    /// A network whose packets firewalld accepts wherever they come in and go out, when it is active: that of pods.
    TrustedNetwork(IpNet),
    /// A user of the system's own, with a group of the same name.
    User(User),
    /// Container images in the store of a runtime.
    Images(Images),
    /// A step of its own, with its own check and its own way back.
    Script(Script),
}

/// Owner and mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Permission bits.
    pub mode: Mode,
    /// A user of the machine.
    pub owner: Word,
    /// A group of the machine.
    pub group: Word,
}

impl Access {
    /// Of root, with these permission bits.
    pub fn root(mode: u16) -> Result<Self, ValueError> {
        let root = || Word::new("root").map_err(|_| ValueError::new("user", "root"));
        Ok(Self {
            mode: Mode::new(mode)?,
            owner: root()?,
            group: root()?,
        })
    }
}

/// See [`Operation::File`]. Missing directories above it are made, and recorded as ours.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct File {
    pub path: MachinePath,
    pub content: Content,
    pub access: Access,
}

/// See [`Operation::Directory`].
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Directory {
    pub path: MachinePath,
    pub access: Access,
    /// Whether what appears in it later belongs to us: then undo empties it of everything that was not there
    /// before. Otherwise undo removes the directory only when it is empty.
    pub contents_are_ours: bool,
}

/// See [`Operation::Link`].
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Link {
    pub path: MachinePath,
    /// What it points to, as written into the link.
    pub target: String,
}

/// See [`Operation::Unit`].
#[derive(Clone, Debug)]
pub struct Unit {
    /// Such as `sshd.service`.
    pub name: UnitName,
    /// Whether it starts with the machine; `None` leaves that alone.
    pub enabled: Option<bool>,
    /// Whether it runs; `None` leaves that alone.
    pub running: Option<bool>,
    /// Files of the same task that ask for a restart when they change.
    pub restart_on: Vec<MachinePath>,
}

/// See [`Operation::Sysctl`].
#[derive(Clone, Debug)]
pub struct Sysctl {
    name: String,
    value: String,
}

impl Sysctl {
    /// Such as `net.ipv4.ip_forward` and `1`. A name with a slash is taken as a path below `/proc/sys`.
    pub fn new(name: impl Into<String>, value: &str) -> Result<Self, ValueError> {
        let name = name.into();
        let fits = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
            && !name.contains("..")
            && !name.starts_with(['.', '/']);
        if !fits {
            return Err(ValueError::new("sysctl", &name));
        }
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if value.chars().any(char::is_control) {
            return Err(ValueError::new("sysctl value", &value));
        }
        Ok(Self { name, value })
    }

    /// The name of the kernel parameter, such as `net.ipv4.ip_forward`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value, words separated by single spaces.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Its path below `/proc/sys`.
    pub(crate) fn path(&self) -> String {
        if self.name.contains('/') {
            self.name.clone()
        } else {
            self.name.replace('.', "/")
        }
    }
}

/// See [`Operation::HostsEntry`].
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HostsEntry {
    pub address: IpAddr,
    pub names: Vec<Word>,
}

impl HostsEntry {
    /// The line as it stands in the file.
    pub(crate) fn line(&self) -> String {
        let names: Vec<_> = self.names.iter().map(Word::as_str).collect();
        format!("{} {} # hatchery", self.address, names.join(" "))
    }
}

/// See [`Operation::Firewall`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firewall {
    /// Which port or range.
    pub port: Port,
    /// Of which protocol.
    pub protocol: Protocol,
    /// Where others reach the machine: firewalld opens the port in the zone of the interface that has this address. In its
    /// default zone where this is not known.
    pub address: Option<IpAddr>,
}

/// See [`Operation::User`]. One that is there already, or that a package brings, is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name, and the group's.
    pub name: Word,
    /// Where the user's data is, as written into the list of users; it is not made.
    pub home: MachinePath,
}

/// What keeps container images, and the shell commands by which it is spoken to. Each is a text for `sh -c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageStore {
    /// What it is called in messages and in the machine's record: one word, the same in all releases.
    pub name: &'static str,
    /// Prints the names of all images, a line each. Fails when the store does not answer, without waiting long.
    pub list: &'static str,
    /// Loads the archive `$1`.
    pub load: &'static str,
    /// Removes the image `$1`; whether that succeeds does not matter. The record keeps it, for whichever release undoes it.
    pub remove: &'static str,
}

/// See [`Operation::Images`].
#[derive(Clone, Debug)]
pub struct Images {
    /// The runtime that they are loaded into.
    pub store: ImageStore,
    /// The archive, as `docker save` writes it.
    pub archive: Content,
    references: Vec<String>,
}

impl Images {
    /// The images of an archive by their full references, as the store lists them.
    pub fn new(
        store: ImageStore,
        archive: Content,
        references: Vec<String>,
    ) -> Result<Self, ValueError> {
        for reference in &references {
            let fits = !reference.is_empty()
                && reference
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b));
            if !fits {
                return Err(ValueError::new("image reference", reference));
            }
        }
        Ok(Self {
            store,
            archive,
            references,
        })
    }

    /// What it brings.
    pub fn references(&self) -> &[String] {
        &self.references
    }
}

/// See [`Operation::Script`]. The texts are run by `sh -c` as root, in a machine's plain environment; they
/// stand in the task's script, so no secret may be in them.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it is for, unique on the machine.
    pub name: Word,
    /// Succeeds when there is nothing to do.
    pub check: String,
    /// Makes it so.
    pub apply: String,
    /// Puts it back; may be empty.
    pub undo: String,
    /// For each of the three.
    pub deadline: Duration,
}

impl Operation {
    /// What it is about, in a user's words.
    pub fn title(&self) -> String {
        match self {
            Self::File(file) => format!("file {}", file.path),
            Self::Directory(directory) => format!("directory {}", directory.path),
            Self::Link(link) => format!("link {}", link.path),
            Self::Absent(path) => format!("no file {path}"),
            Self::Unit(unit) => format!("unit {}", unit.name),
            Self::Packages(packages) => format!("packages {packages}"),
            Self::Sysctl(sysctl) => format!("sysctl {}", sysctl.name),
            Self::Module(name) => format!("module {name}"),
            Self::HostsEntry(entry) => format!("hosts entry {}", entry.address),
            Self::Hostname(name) => format!("hostname {name}"),
            Self::Firewall(wall) => format!("open port {}/{}", wall.port, wall.protocol),
            Self::TrustedNetwork(network) => format!("trusted network {network}"),
            Self::User(user) => format!("user {}", user.name),
            Self::Images(images) => format!("images {}", images.references.join(" ")),
            Self::Script(script) => format!("step {}", script.name),
        }
    }
}
