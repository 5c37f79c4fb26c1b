//! Programs that must be there, or that something in the file brings.

use hatchery_host::package_format::DEB;
use hatchery_spec::cluster::{Item, KubeProxyMode, Role};

use super::{
    Severity::{self, Error, Warning},
    subject::Subject,
};
use crate::finding::Findings;

/// A program, the packages that have it for dpkg and for rpm, and what becomes of a machine without it.
struct Program {
    name: &'static str,
    packages: [&'static str; 2],
    severity: Severity,
    used_for: &'static str,
}

const fn program(
    name: &'static str,
    packages: [&'static str; 2],
    severity: Severity,
    used_for: &'static str,
) -> Program {
    Program {
        name,
        packages,
        severity,
        used_for,
    }
}

/// On every machine, for every change.
const ALWAYS: [Program; 4] = [
    program("tar", ["tar", "tar"], Error, "every change"),
    program(
        "flock",
        ["util-linux", "util-linux-core"],
        Error,
        "every change",
    ),
    program(
        "sha256sum",
        ["coreutils", "coreutils"],
        Error,
        "every change",
    ),
    program("systemctl", ["systemd", "systemd"], Error, "every service"),
];

const WORKER: [Program; 4] = [
    program(
        "mount",
        ["mount", "util-linux"],
        Error,
        "the kubelet's volumes",
    ),
    program(
        "conntrack",
        ["conntrack", "conntrack-tools"],
        Warning,
        "kube-proxy to end stale connections",
    ),
    program(
        "socat",
        ["socat", "socat"],
        Warning,
        "'kubectl port-forward' with some runtimes",
    ),
    program("ip", ["iproute2", "iproute"], Warning, "pod networks"),
];

const IPTABLES: Program = program(
    "iptables",
    ["iptables", "iptables"],
    Error,
    "Services and pod networks",
);
const IPSET: Program = program(
    "ipset",
    ["ipset", "ipset"],
    Error,
    "kube-proxy in mode ipvs",
);
const NFT: Program = program(
    "nft",
    ["nftables", "nftables"],
    Error,
    "kube-proxy in mode nftables",
);

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // A machine has some of them, or it did not tell.
    if !subject.facts.programs.is_empty() {
        programs(subject, findings);
        package_manager(subject, findings);
    }
}

fn programs(subject: &Subject<'_>, findings: &mut Findings) {
    let mut needed: Vec<&Program> = ALWAYS.iter().collect();
    if subject.is(Role::Worker) {
        needed.extend(&WORKER);
        needed.extend(match subject.cluster.kube_proxy.mode {
            KubeProxyMode::Iptables => vec![&IPTABLES],
            KubeProxyMode::Ipvs => vec![&IPTABLES, &IPSET],
            KubeProxyMode::Nftables => vec![&NFT],
        });
    }
    for program in needed {
        if subject.facts.programs.contains_key(program.name) || is_brought(subject, program) {
            continue;
        }
        let package = match subject.facts.package_manager {
            Some(manager) if *manager.format == DEB => program.packages[0],
            _ => program.packages[1],
        };
        let remedy = match program.severity {
            _ if is_always(program) => format!("install {package} there"),
            _ => format!("install {package} there, or add it to the packages in the file"),
        };
        let what = format!(
            "has no program {}, needed for {}",
            program.name, program.used_for
        );
        subject.say(findings, (program.severity, "program"), what, remedy);
    }
}

fn is_always(program: &Program) -> bool {
    ALWAYS.iter().any(|one| one.name == program.name)
}

/// Whether a package of the file has the program. What every change needs cannot be brought by one.
fn is_brought(subject: &Subject<'_>, program: &Program) -> bool {
    let brings = |item: &Item| match item {
        Item::Repo { name } | Item::Pkg { name } => program.packages.contains(&name.as_str()),
        Item::Bin { name, .. } | Item::Binary { name, .. } => name == program.name,
        _ => false,
    };
    let mut roles = subject.node.roles.iter();
    !is_always(program) && roles.any(|role| subject.cluster.packages.for_role(*role).any(brings))
}

fn package_manager(subject: &Subject<'_>, findings: &mut Findings) {
    let items = subject
        .node
        .roles
        .iter()
        .flat_map(|role| subject.cluster.packages.for_role(*role));
    let (mut files, mut repositories) = (false, false);
    for item in items {
        files |= matches!(item, Item::Pkg { .. });
        repositories |= matches!(item, Item::Repo { .. });
    }
    let manager = subject.facts.package_manager;
    if manager.is_none() && (files || repositories) {
        subject.say(
            findings,
            (Error, "package-manager"),
            "has no package manager that is known (apt, dnf, yum, rpm), and the file lists packages for it",
            "use items of type bin, file or dir instead, or another distribution",
        );
    } else if manager.is_some_and(|one| !one.has_repositories()) && repositories {
        subject.say(
            findings,
            (Error, "package-manager"),
            "has rpm but neither dnf nor yum, and the file lists packages of type repo for it",
            "install dnf or yum there, or bring the packages in the archive (type pkg)",
        );
    }
}
