//! What a machine is: its processor, its first process, who we are there, what it is confined to.

use hatchery_spec::cluster::{KubeProxyMode, Role};

use super::{
    Severity::{Error, Note, Warning},
    subject::Subject,
};
use crate::finding::Findings;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    architecture(subject, findings);
    root(subject, findings);
    init(subject, findings);
    container(subject, findings);
    capabilities(subject, findings);
    kernel(subject, findings);
    cloud_init(subject, findings);
}

fn architecture(subject: &Subject<'_>, findings: &mut Findings) {
    let said = subject.node.arch.as_str();
    let Some(found) = subject
        .facts
        .arch
        .as_ref()
        .map(hatchery_host::facts::Arch::name)
    else {
        return;
    };
    if found != said {
        subject.say(
            findings,
            (Error, "architecture"),
            format!("has {found}, but the file says {said}"),
            format!("write 'arch: {found}' for it in the file"),
        );
    }
}

fn root(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.facts.root == Some(false) {
        subject.say(
            findings,
            (Error, "not-root"),
            format!("does not let {} become root", subject.node.access.user),
            "log in as root, or as a user whom sudo makes root",
        );
    }
}

fn init(subject: &Subject<'_>, findings: &mut Findings) {
    let init = &subject.facts.init;
    match (&init.systemd, &init.name) {
        (None, Some(name)) => subject.say(
            findings,
            (Error, "no-systemd"),
            format!("was not booted with systemd but with {name}"),
            "use a distribution with systemd: every part of the cluster is a unit of it",
        ),
        (Some(systemd), _) if !systemd.answers => subject.say(
            findings,
            (Error, "no-systemd"),
            "has a systemd that does not answer",
            "look with 'systemctl status' what it is doing; a reboot may help",
        ),
        (Some(systemd), _) => {
            if let Some(state) = systemd.state.as_deref()
                && ["maintenance", "stopping", "offline"].contains(&state)
            {
                subject.say(
                    findings,
                    (Error, "systemd-state"),
                    format!("is in systemd's state '{state}'"),
                    "let it boot completely, then run again",
                );
            }
        }
        (None, None) => {}
    }
}

fn container(subject: &Subject<'_>, findings: &mut Findings) {
    if let Some(kind) = &subject.facts.confinement.container {
        subject.say(
            findings,
            (Note, "container"),
            format!(
                "is a {kind} container: kernel, modules and clock belong to the machine it runs on"
            ),
            "",
        );
    }
}

fn capabilities(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(capabilities) = &subject.facts.capabilities else {
        return;
    };
    let lacking = |names: &[&'static str]| -> Vec<&'static str> {
        names
            .iter()
            .copied()
            .filter(|name| !capabilities.has(name))
            .collect()
    };
    let mut needed = vec!["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID"];
    if subject.is(Role::Worker) {
        needed.extend(["SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_CHROOT", "MKNOD"]);
    }
    let missing = lacking(&needed);
    if !missing.is_empty() {
        subject.say(
            findings,
            (Error, "capabilities"),
            format!(
                "has no right to {}, which its roles need",
                missing.join(", ")
            ),
            "give the container these capabilities, or use a real or virtual machine",
        );
    }
    if subject.is(Role::Worker) && !capabilities.has("SYS_RESOURCE") {
        subject.say(
            findings,
            (Note, "capabilities"),
            "has no right to SYS_RESOURCE: containers there get no negative OOM score",
            "",
        );
    }
}

/// kube-proxy refuses nftables on a kernel before 5.13.
fn kernel(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(release) = &subject.facts.kernel else {
        return;
    };
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return;
    };
    if !subject.is(Role::Worker) {
        return;
    }
    if subject.cluster.kube_proxy.mode == KubeProxyMode::Nftables && (major, minor) < (5, 13) {
        subject.say(
            findings,
            (Error, "kernel"),
            format!("has kernel {release}, and kube-proxy uses nftables only from 5.13 on"),
            "set kube-proxy.mode to iptables in the file, or install a newer kernel",
        );
    }
    let version = subject.cluster.kubernetes_version;
    if version.is_some_and(|version| version.at_least(32)) && (major, minor) < (4, 19) {
        subject.say(
            findings,
            (Warning, "kernel"),
            format!("has kernel {release}; Kubernetes is tested from 4.19 on"),
            "install a newer kernel",
        );
    }
}

/// What a machine was made with counts for more than the file by which we tell cloud-init to leave `/etc/hosts` alone.
fn cloud_init(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.facts.agents.cloud_init_hosts {
        subject.say(
            findings,
            (Warning, "cloud-init"),
            "has user or vendor data by which cloud-init writes /etc/hosts at every boot: the cluster's lines would be lost",
            "take manage_etc_hosts out of these data or set it to false there; or, if cloud-init has nothing more to do on the \
             machine, make an empty file /etc/cloud/cloud-init.disabled there",
        );
    }
}
