//! What others left on a machine, or run there: Kubernetes and container runtimes.

use hatchery_host::facts::Unit;
use hatchery_spec::{cluster::Role, name_list::NameList, runtimes::RuntimeKind};

use super::{
    Severity::{Error, Note, Warning},
    subject::Subject,
};
use crate::{components::runtime, finding::Findings, traces::KubernetesTraces};

/// Runtimes that no cluster has, where they run as services.
const OTHERS: [(&str, &str); 1] = [("crio", "CRI-O")];

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.ours {
        return;
    }
    kubernetes(subject, findings);
    if subject.is(Role::Worker) {
        runtimes(subject, findings);
    }
}

fn kubernetes(subject: &Subject<'_>, findings: &mut Findings) {
    let traces = KubernetesTraces::from_facts(subject.facts);
    if is_eggos(&traces) {
        subject.say(
            findings,
            (Error, "eggo"),
            "is part of a cluster that eggo, the program in Go, has made; Hatchery cannot take such a cluster over",
            "leave the machine to eggo and make the new cluster of other machines; or save what is in the old one, remove it \
             with that eggo (eggo cleanup --id ID, where /etc/eggo/ID is), and deploy then",
        );
        return;
    }
    let active = traces.units.iter().filter(|(_, unit)| unit.is_active());
    let active: Vec<_> = active.map(|(name, _)| name.as_str()).collect();
    if !active.is_empty() {
        subject.say(
            findings,
            (Error, "kubernetes"),
            format!("runs another Kubernetes: {}", active.join(", ")),
            "remove that cluster from the machine first (kubeadm reset, k3s-uninstall.sh, …)",
        );
        return;
    }
    let etcd = "/var/lib/etcd".to_owned();
    if subject.is(Role::Etcd) && traces.data.contains(&etcd) {
        subject.say(
            findings,
            (Error, "etcd-data"),
            "has the data of another etcd in /var/lib/etcd",
            "keep what you need of it, then empty the directory",
        );
    }
    let left = traces.configuration.iter().chain(&traces.data);
    let left: Vec<_> = left
        .map(String::as_str)
        .filter(|path| *path != etcd || !subject.is(Role::Etcd))
        .collect();
    if !left.is_empty() {
        subject.say(
            findings,
            (Warning, "kubernetes"),
            format!("has files of an earlier Kubernetes: {}", NameList(&left)),
            "remove them there, unless you know that they do no harm",
        );
    }
}

/// Whether eggo made a cluster of the machine, by the names of its files. Many files of ours have the same names; these
/// tell them apart also where our own record is lost.
fn is_eggos(traces: &KubernetesTraces) -> bool {
    let has = |name: &str| {
        let mut paths = traces.configuration.iter();
        paths.any(|path| path.strip_prefix("/etc/kubernetes/") == Some(name))
    };
    let node = has("kubelet-bootstrap.kubeconfig");
    // kubeadm's masters run from manifests, and ours have a policy for the audit.
    let master = has("controller-manager.conf")
        && has("encryption-config.yaml")
        && !has("manifests/kube-apiserver.yaml")
        && !has("audit-policy.yaml");
    let load_balancer = has("kube-nginx.conf");
    node || master || load_balancer
}

fn runtimes(subject: &Subject<'_>, findings: &mut Findings) {
    let wanted = subject.cluster.runtime.kind;
    let found = &subject.facts.runtimes;
    for one in found {
        let runs = one.unit.as_ref().is_some_and(Unit::is_active);
        let version = one
            .version
            .as_deref()
            .map_or_else(String::new, |version| format!(" {version}"));
        let kind = runtime::of_found(&one.kind);
        let mut others = OTHERS.iter();
        let other = others.find(|(other, _)| *other == one.kind);
        let Some(name) = kind
            .map(RuntimeKind::as_str)
            .or(other.map(|(_, name)| *name))
        else {
            continue;
        };
        let is_part = runtime::is_brought(&one.kind, found.iter().map(|other| &*other.kind));
        if kind == Some(wanted) {
            subject.say(
                findings,
                (Note, "runtime"),
                format!("has {name}{version} already"),
                "",
            );
        } else if runs && !is_part {
            subject.say(
                findings,
                (Warning, "runtime"),
                format!(
                    "runs {name}{version} beside {}, which the cluster uses",
                    wanted.as_str()
                ),
                format!(
                    "stop and disable {name} there if nothing needs it: both write firewall rules"
                ),
            );
        }
    }
}
