//! What the kernel can do: modules, control groups, SELinux.

use hatchery_host::facts::{CgroupVersion, ModuleState, SelinuxMode};
use hatchery_spec::cluster::{KubeProxyMode, Role};

use super::{
    Severity::{Error, Warning},
    subject::Subject,
};
use crate::{components::network_plugin, finding::Findings};

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.is(Role::Worker) {
        modules(subject, findings);
        cgroups(subject, findings);
    }
    selinux(subject, findings);
}

fn modules(subject: &Subject<'_>, findings: &mut Findings) {
    let mut needed = vec![
        (
            "br_netfilter",
            "Services reached from pods of the same machine",
        ),
        ("overlay", "container images"),
        ("nf_conntrack", "Services"),
        ("veth", "pod networks"),
    ];
    if subject.cluster.kube_proxy.mode == KubeProxyMode::Ipvs {
        let ipvs = ["ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh"];
        needed.extend(ipvs.map(|module| (module, "kube-proxy in mode ipvs")));
    }
    if let Some(plugin) = network_plugin::for_cluster(subject.cluster) {
        let modules = plugin.modules().iter();
        needed.extend(modules.map(|module| (*module, plugin.name())));
    }
    for (module, used_for) in needed {
        if subject.facts.modules.get(module) == Some(&ModuleState::Missing) {
            subject.say(
                findings,
                (Error, "module"),
                format!("has no kernel module {module}, needed for {used_for}"),
                "install the kernel's modules there (linux-modules-extra, kernel-modules), or another kernel",
            );
        }
    }
}

fn cgroups(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cgroups) = &subject.facts.cgroups else {
        return;
    };
    let mut needed = vec!["cpu", "cpuset", "memory", "pids"];
    if cgroups.version != CgroupVersion::V2 {
        needed.extend(["cpuacct", "devices"]);
        // Before control groups had a controller for it, nobody could miss it.
        needed.retain(|name| *name != "pids");
    }
    needed.retain(|name| !cgroups.controllers.contains(*name));
    if !needed.is_empty() && !cgroups.controllers.is_empty() {
        subject.say(
            findings,
            (Error, "cgroup-controllers"),
            format!(
                "has no control group for {}, without which the kubelet does not start",
                needed.join(", ")
            ),
            "boot it with 'cgroup_enable=memory cgroup_enable=cpuset' on the kernel's command line",
        );
    }
    let version = subject.cluster.kubernetes_version;
    if let Some(version) = version.filter(|version| version.at_least(35))
        && cgroups.version != CgroupVersion::V2
    {
        subject.say(
            findings,
            (Warning, "cgroup-v1"),
            format!(
                "has control groups v1, which Kubernetes {version} tolerates only when configured to"
            ),
            "the kubelet is configured so; it is better to boot with 'systemd.unified_cgroup_hierarchy=1'",
        );
    }
}

fn selinux(subject: &Subject<'_>, findings: &mut Findings) {
    let enforcing = |mode| mode == SelinuxMode::Enforcing;
    if subject
        .facts
        .selinux
        .as_ref()
        .is_some_and(|selinux| enforcing(selinux.mode))
    {
        subject.say(
            findings,
            (Warning, "selinux"),
            "has SELinux enforcing: programs from an archive may not be allowed to run as services",
            "install the policy for containers there (container-selinux), or set SELINUX=permissive in /etc/selinux/config and run 'setenforce 0'",
        );
    }
}
