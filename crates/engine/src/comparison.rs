//! Compares a deploy file with the cluster that is there already, and says what cannot be done to it.
//!
//! Membership of etcd and the set of masters cannot be changed yet, and Kubernetes can only be exchanged for a later patch
//! of the same minor version. A file that asks for such a change is refused before anything is touched; workers and the
//! load balancer may come and go.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hatchery_host::script::Identity;
use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role},
    runtimes::RuntimeKind,
    value::{Name, Version},
};

use crate::{
    components::{etcd::Directories, load_balancer, runtime},
    finding::Finding,
    name_list::NameList,
    package::Release,
    preflight::Reply,
    state::{Brought, Claim, Record},
    traces::KubernetesTraces,
    versions::Versions,
};

/// What of the cluster is present on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Presence {
    /// An earlier run of this cluster began to make it an etcd member.
    pub(crate) etcd: bool,
    /// There is the data of an etcd member on it.
    pub(crate) etcd_data: bool,
    /// Where that data lies, if it is this cluster's.
    pub(crate) etcd_directories: Option<Directories>,
    /// An earlier run of this cluster began to make it a master, for which etcd has to be up.
    pub(crate) master: bool,
    /// Something of a cluster runs or lies on it, and no record says whose it is.
    pub(crate) unrecorded: bool,
    /// In what its pods run.
    pub(crate) runtime: Option<&'static RuntimeKind>,
}

/// What is present on the machines that answered.
pub(crate) type Presences = BTreeMap<Name, Presence>;

impl Presence {
    /// What a machine's own record and its facts say; nothing where it did not answer.
    pub(crate) fn new(own: &Identity, reply: &Reply) -> Option<Self> {
        let (facts, managed) = reply.as_ref().ok()?;
        let holder = managed.cluster.as_ref();
        let is_ours = holder.is_some_and(|(id, _)| id == own.cluster.as_str());
        let has_unit = |name: &str| {
            let mut resources = managed.resources.iter();
            is_ours && resources.any(|one| one.kind == "unit" && one.name == name)
        };
        let traces = KubernetesTraces::from_facts(facts);
        let mut files = traces.configuration.iter();
        let is_used = traces.etcd.is_some()
            || traces.has_active_unit()
            || files.any(|path| path == load_balancer::CONFIGURATION);
        Some(Self {
            etcd: has_unit("etcd.service"),
            etcd_data: traces.etcd.is_some(),
            etcd_directories: traces.etcd.filter(|_| is_ours),
            master: has_unit("kube-apiserver.service"),
            unrecorded: holder.is_none() && is_used,
            runtime: runtime::of_record(managed).filter(|_| is_ours),
        })
    }
}

/// Whether the control plane of a cluster was ever begun: then every etcd member had data at that time.
pub(crate) fn is_formed(remembered: &Record, present: &Presences) -> bool {
    remembered.formed || present.values().any(|one| one.master)
}

/// Everything in a file that cannot be done to the cluster as it is. `versions` are left out while they are not known, and
/// nothing is `present` before the machines were asked.
pub(crate) fn refusals(
    wanted: (&Cluster, Option<&Versions>),
    remembered: &Record,
    present: &Presences,
) -> Vec<Finding> {
    let (cluster, versions) = wanted;
    let comparison = Comparison {
        cluster,
        claims: remembered.claims(),
        present,
        formed: is_formed(remembered, present),
    };
    // Of one that never was, what is left can be made into a cluster again.
    if remembered.removing && comparison.formed {
        return vec![comparison.half_removed()];
    }
    let mut refusals = comparison.dropped();
    refusals.extend(comparison.unrecorded());
    refusals.extend(comparison.role(Role::Etcd, |one| one.etcd));
    refusals.extend(comparison.role(Role::Master, |one| one.master));
    refusals.extend(comparison.emptied_members());
    refusals.extend(comparison.moved_data());
    refusals.extend(comparison.other_runtime());
    if let (true, Some(wanted)) = (comparison.formed, versions) {
        let (reached, begun) = (remembered.versions.as_ref(), remembered.bringing.as_ref());
        // A patch that was only begun can be taken back: what was reached says what is older.
        let running = reached.or(begun);
        match running.and_then(Brought::kubernetes) {
            Some(running) => refusals.extend(comparison.kubernetes(running, wanted.kubernetes)),
            None => refusals.push(comparison.unknown_version()),
        }
        if let Some(wanted) = wanted.etcd {
            let running = running.and_then(Brought::etcd);
            let begun = begun.and_then(Brought::etcd);
            let refused = running.and_then(|running| comparison.etcd(running, wanted));
            let refused = refused.or_else(|| comparison.begun_etcd(begun?, wanted));
            refusals.extend(refused);
        }
    }
    refusals
}

struct Comparison<'a> {
    cluster: &'a Cluster,
    claims: &'a [Claim],
    present: &'a Presences,
    formed: bool,
}

impl Comparison<'_> {
    /// What is present on a machine, where it was asked and answered.
    fn shown(&self, machine: &Machine) -> Option<&Presence> {
        self.present.get(&machine.name)
    }

    fn half_removed(&self) -> Finding {
        refusal(
            "removing",
            self.claims.iter().map(|claim| claim.name.clone()).collect(),
            "cleanup was begun and is not finished there".into(),
            format!("finish it first: cleanup --id {}", self.cluster.id),
        )
    }

    /// Machines of the cluster whose own record is gone while the rest is not.
    fn unrecorded(&self) -> Option<Finding> {
        let machines = self.cluster.machines().iter();
        let lost = machines.filter(|machine| {
            self.claim(machine).0.is_some() && self.shown(machine).is_some_and(|one| one.unrecorded)
        });
        let lost: Vec<_> = lost.map(|machine| machine.name.to_string()).collect();
        (!lost.is_empty()).then(|| {
            refusal(
                "record-lost",
                lost,
                "belongs to this cluster, but its own record in /var/lib/hatchery is lost".into(),
                format!(
                    "bring that directory back from a backup of the machine, and touch nothing else there. To begin anew, \
                     cleanup --id {} removes the cluster from all machines that still know of it",
                    self.cluster.id
                ),
            )
        })
    }

    /// Claimed machines that the file does not name, or names in another way.
    fn dropped(&self) -> Vec<Finding> {
        let machines = || self.cluster.machines().iter();
        let id = &self.cluster.id;
        let mut gone = Vec::new();
        let mut refusals = Vec::new();
        for claim in self.claims {
            let mut all = self.cluster.all_machines();
            if all.any(|machine| claim.is_on(machine)) {
                continue;
            }
            let changed = if let Some(now) = machines().find(|one| one.address == claim.address) {
                format!("is called {} in the file", now.name)
            } else if let Some(now) = machines().find(|one| one.name.as_str() == claim.name) {
                format!(
                    "has the address {} in the file, and {} in the cluster",
                    now.address, claim.address
                )
            } else {
                gone.push(claim.name.clone());
                continue;
            };
            refusals.push(refusal(
                "machine-changed",
                vec![claim.name.clone()],
                changed,
                format!(
                    "write it as it was; a machine of a cluster cannot get another name or address. A worker can be removed \
                     first (delete --id {id} {}) and then join as what it is now. To begin anew, cleanup --id {id} removes \
                     the cluster from all its machines",
                    claim.name
                ),
            ));
        }
        if !gone.is_empty() {
            refusals.insert(
                0,
                refusal(
                    "machine-dropped",
                    gone,
                    "would be forgotten: part of the cluster, but not in the file".into(),
                    format!(
                        "put back what was left out; masters and etcd members cannot leave a cluster yet. To begin anew, \
                         cleanup --id {id} removes the cluster from all its machines"
                    ),
                ),
            );
        }
        refusals
    }

    /// The machines of a role are those that have it, once one of them has. `begun` says whether a machine has.
    fn role(&self, role: Role, begun: impl Fn(&Presence) -> bool) -> Vec<Finding> {
        let settled = self.formed || self.present.values().any(&begun);
        let (what, code) = match role {
            Role::Master => ("masters", "masters"),
            _ => ("etcd members", "etcd-members"),
        };
        let running = self.names_with(role);
        let (mut added, mut taken) = (Vec::new(), Vec::new());
        for machine in self.cluster.machines() {
            let shown = self.shown(machine);
            let (claim, is_other) = self.claim(machine);
            let shows = shown.is_some_and(&begun);
            let has = shows || claim.is_some_and(|claim| claim.has(role));
            match (has, machine.is(role)) {
                (false, true) if settled && !is_other => added.push(machine.name.to_string()),
                // One that does not answer may have it.
                (true, false) if settled || shown.is_none() => {
                    taken.push(machine.name.to_string());
                }
                _ => {}
            }
        }
        let remedy = format!(
            "write the {what} as they were: {}. They cannot be changed yet; new workers can be added. To begin anew, \
             cleanup --id {} removes the cluster from all its machines, with all that is in it",
            NameList(&running),
            self.cluster.id
        );
        let mut refusals = Vec::new();
        if !added.is_empty() {
            let message = format!(
                "would become {what} of a cluster that has others: {}",
                NameList(&running)
            );
            refusals.push(refusal(code, added, message, remedy.clone()));
        }
        if !taken.is_empty() {
            let message = format!("would no longer be {what}, which the cluster has them as");
            refusals.push(refusal(code, taken, message, remedy));
        }
        refusals
    }

    /// The claim on a machine; and whether another claim has its name or its address, which is a finding of its own.
    fn claim(&self, machine: &Machine) -> (Option<&Claim>, bool) {
        let claim = self.claims.iter().find(|claim| claim.is_on(machine));
        let mut others = self.claims.iter();
        let is_other = claim.is_none()
            && others
                .any(|one| one.address == machine.address || one.name == machine.name.as_str());
        (claim, is_other)
    }

    /// Members of a cluster that lives which have lost their data. One that began anew, as if the cluster did, could vote
    /// for a past that it has forgotten.
    fn emptied_members(&self) -> Option<Finding> {
        if !self.formed {
            return None;
        }
        let (mut empty, mut others_may_have_data) = (Vec::new(), false);
        for machine in self.cluster.machines() {
            let is_member = |claim: &Claim| claim.has(Role::Etcd);
            if !machine.is(Role::Etcd) || !self.claim(machine).0.is_some_and(is_member) {
                continue;
            }
            match self.shown(machine) {
                Some(shown) if !shown.etcd_data => empty.push(machine.name.to_string()),
                _ => others_may_have_data = true,
            }
        }
        if empty.is_empty() || !others_may_have_data {
            return None;
        }
        let first = self.cluster.etcds().next()?;
        Some(refusal(
            "etcd-member",
            empty,
            "is an etcd member of the cluster and has lost its data; a member cannot be made anew yet".into(),
            format!(
                "bring back {} and /var/lib/hatchery as they were on the machine. To begin anew, cleanup --id {} \
                 removes the cluster from all its machines, with all that is in it",
                Directories::wanted(self.cluster, &first.name),
                self.cluster.id
            ),
        ))
    }

    /// Members whose data lies elsewhere than the file says: they would begin with an empty database.
    fn moved_data(&self) -> Vec<Finding> {
        let mut moved: Vec<(String, Vec<String>)> = Vec::new();
        for machine in self.cluster.machines() {
            let shown = self.shown(machine);
            let found = shown.and_then(|one| one.etcd_directories.as_ref());
            let Some(found) = found.filter(|_| machine.is(Role::Etcd)) else {
                continue;
            };
            let wanted = Directories::wanted(self.cluster, &machine.name);
            if *found == wanted {
                continue;
            }
            let message = format!(
                "its etcd has its data in {found}, and the file says {wanted}, where it would begin with an empty database"
            );
            let name = machine.name.to_string();
            match moved.iter_mut().find(|(same, _)| *same == message) {
                Some((_, machines)) => machines.push(name),
                None => moved.push((message, vec![name])),
            }
        }
        let remedy = format!(
            "write ETCD_DATA_DIR and ETCD_WAL_DIR of etcd as they were; data cannot be moved yet. To begin anew, cleanup --id {} \
             removes the cluster from all its machines, with all that is in it",
            self.cluster.id
        );
        let moved = moved.into_iter();
        moved
            .map(|(message, machines)| refusal("etcd-data", machines, message, remedy.clone()))
            .collect()
    }

    /// Nodes whose pods would all end at once, and begin anew in something else.
    fn other_runtime(&self) -> Option<Finding> {
        let wanted = self.cluster.runtime.kind;
        let machines = self.cluster.machines().iter();
        let others = machines.filter_map(|machine| {
            let found = self.shown(machine)?.runtime?;
            (self.formed && machine.is(Role::Worker) && found != wanted).then_some((machine, found))
        });
        let (machines, found): (Vec<_>, Vec<_>) = others
            .map(|(machine, found)| (machine.name.to_string(), found))
            .unzip();
        let found = found.first()?.as_str();
        Some(refusal(
            "runtime",
            machines,
            format!(
                "run their pods in {found}, and the file says {}: all of them would end at once",
                wanted.as_str()
            ),
            format!("write runtime: {found}; the runtime of a cluster cannot be changed yet"),
        ))
    }

    /// An earlier release did not write it down.
    fn unknown_version(&self) -> Finding {
        refusal(
            "kubernetes-version",
            self.claims.iter().map(|claim| claim.name.clone()).collect(),
            "run a version of Kubernetes that is not recorded, and their API does not answer"
                .into(),
            format!(
                "start a kube-apiserver there, so that it can be asked; or write kubernetes-version as it is into the deploy \
                 file that is remembered of {}",
                self.cluster.id
            ),
        )
    }

    fn kubernetes(&self, running: Version, wanted: Version) -> Option<Finding> {
        let minor = |version: Version| (version.major, version.minor);
        let is_older = match (running.patch, wanted.patch) {
            (Some(running), Some(wanted)) => wanted < running,
            _ => false,
        };
        let reason = if minor(wanted) > minor(running) {
            "a cluster cannot be upgraded to another minor version yet"
        } else if minor(wanted) < minor(running) || is_older {
            "a cluster cannot go back to an older version"
        } else {
            return None;
        };
        Some(refusal(
            "kubernetes-version",
            self.claims.iter().map(|claim| claim.name.clone()).collect(),
            format!("run Kubernetes {running}, and the file brings {wanted}: {reason}"),
            format!("use packages of Kubernetes {running}, or of a later patch of it"),
        ))
    }

    /// A member that has started once with a newer minor version may have written what an older one cannot read. Whether
    /// one has is not known: the run was stopped somewhere.
    fn begun_etcd(&self, begun: Release, wanted: Release) -> Option<Finding> {
        if (wanted.major, wanted.minor) >= (begun.major, begun.minor) {
            return None;
        }
        Some(refusal(
            "etcd-version",
            self.names_with(Role::Etcd),
            format!(
                "may run etcd {begun} already, which a run that did not end began to bring, and the file brings {wanted}: \
                 data does not go back to an older minor version"
            ),
            format!("use packages of etcd {begun}, or of a later patch of it"),
        ))
    }

    fn names_with(&self, role: Role) -> Vec<String> {
        let claims = self.claims.iter().filter(|claim| claim.has(role));
        claims.map(|claim| claim.name.clone()).collect()
    }

    fn etcd(&self, running: Release, wanted: Release) -> Option<Finding> {
        let reason = if wanted < running {
            "its data cannot go back to an older version"
        } else if wanted.major != running.major || wanted.minor > running.minor + 1 {
            "its data goes from one minor version to the next only"
        } else {
            return None;
        };
        Some(refusal(
            "etcd-version",
            self.names_with(Role::Etcd),
            format!("run etcd {running}, and the file brings {wanted}: {reason}"),
            format!("use packages of etcd {running}, or of the next version"),
        ))
    }
}

fn refusal(code: &'static str, machines: Vec<String>, message: String, remedy: String) -> Finding {
    Finding {
        machines,
        ..Finding::error(code, message, remedy)
    }
}
