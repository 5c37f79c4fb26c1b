//! A cluster that goes: which machines are put back, and what is forgotten afterwards.

use std::{collections::BTreeSet, slice};

use hatchery_host::{machine::Managed, path::Word, script::Identity, transport::ssh::Timeouts};
use hatchery_spec::{
    Cluster,
    cluster::{Machine as Node, Role},
    value::Name,
};
use snafu::Snafu;

use super::{
    Control, Locked, RunError, Session,
    leaving::{self, Part},
};
use crate::{
    api_access::Machines,
    authorities,
    finding::Finding,
    name_list::NameList,
    outcome::{NotDone, Outcome, State},
    plan,
    preflight::{self, AskOptions},
    reach,
    state::{self, Claim, DeployFile, Key, Record, deploy_file, nobody},
};

/// The machines from which a cluster is to go.
#[derive(Debug)]
pub struct Removal {
    /// The file's cluster, which the others of its machines leave.
    pub cluster: Cluster,
    /// For whom they are held.
    identity: Identity,
    /// Whether anything is remembered of it.
    pub is_known: bool,
    /// The only machine that is cleaned, where the cluster stays.
    pub only: Option<Name>,
}

/// Why a cluster cannot be removed. Nothing was touched.
#[derive(Debug, Snafu)]
pub enum RemovalError {
    /// What is remembered cannot be read or written.
    #[snafu(transparent)]
    State {
        /// The store's error.
        source: state::Error,
    },
    /// Something is missing on the control machine.
    #[snafu(display("the machines cannot be reached"))]
    Reach {
        /// Everything that is missing.
        findings: Vec<Finding>,
    },
    /// Machines that no file says how to log in to.
    #[snafu(display(
        "machines belong to the cluster, and no file says how to log in to them: {machines}"
    ))]
    Lost {
        /// Their names.
        machines: String,
        /// Where the file is that is remembered.
        place: String,
    },
    /// Neither this machine nor the others know of it.
    #[snafu(display("cluster {id} is unknown, both here and on its machines"))]
    Unknown {
        /// The cluster's id.
        id: Name,
    },
    /// There are several of this name.
    #[snafu(display("the machines are held by several clusters that are called {id}: {}", ids.join(", ")))]
    Several {
        /// The id that they share in deploy files.
        id: Name,
        /// The ids that machines know them by.
        ids: Vec<String>,
    },
    /// Another run was there between the question and the lock.
    #[snafu(display("another run has changed cluster {id}"))]
    Changed {
        /// The cluster's id.
        id: Name,
    },
    /// The only machine that would be cleaned has not left the cluster.
    #[snafu(display("{machine} is part of cluster {id}: {place} names it"))]
    Member {
        /// The machine's name.
        machine: String,
        /// The cluster's id.
        id: Name,
        /// Where the file is that is remembered.
        place: String,
    },
    /// The only machine that would be cleaned is needed by the cluster that stays.
    #[snafu(display("{machine} is a master or etcd member of cluster {id}"))]
    ControlPlane {
        /// The machine's name.
        machine: String,
        /// The cluster's id.
        id: Name,
    },
}

impl RemovalError {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::State { source } => return source.remedy(),
            Self::Reach { .. } => return None,
            Self::Lost { place, .. } => {
                format!("name them in the file; the one that is remembered is {place}")
            }
            Self::Unknown { .. } => "use the --home that it was made with".to_owned(),
            Self::Several { .. } => "take the machines of all but one out of the file".to_owned(),
            Self::Changed { .. } => "run the command again".to_owned(),
            Self::Member { machine, id, .. } => {
                format!("take it out first: delete --id {id} {machine}")
            }
            Self::ControlPlane { id, .. } => {
                format!("these are cleaned only with the whole cluster: cleanup --id {id}")
            }
        })
    }
}

impl From<Vec<Finding>> for RemovalError {
    fn from(findings: Vec<Finding>) -> Self {
        Self::Reach { findings }
    }
}

impl Removal {
    /// For whom the machines are held.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The removal of one of these machines alone.
    #[must_use]
    pub fn of_machine(self, machine: Name) -> Self {
        Self {
            only: Some(machine),
            ..self
        }
    }

    /// Machines of the file that are not meant, and those on which the file says nothing of scripts.
    pub fn left_out(&self) -> BTreeSet<Name> {
        let machines = self.cluster.all_machines().map(|node| &node.name);
        let leaving = self.cluster.leaving();
        let is_left_out = |name: &&Name| match &self.only {
            Some(only) => *name != only,
            None => leaving.iter().any(|node| node.name == **name),
        };
        machines.filter(is_left_out).cloned().collect()
    }

    fn machines(&self) -> impl Iterator<Item = &Node> {
        let machines = self.cluster.all_machines();
        machines.filter(|node| self.only.as_ref().is_none_or(|only| *only == node.name))
    }

    /// The machines that are put back, and the masters of a cluster that stays.
    fn reached(&self) -> impl Iterator<Item = &Node> {
        let stays = self.only.is_some();
        let machines = self.cluster.machines().iter();
        let masters = machines.filter(move |node| stays && node.is(Role::Master));
        self.machines().chain(masters)
    }
}

impl Session {
    /// From which machines a cluster would be removed: those of the file, then those that it has claimed beside them, as
    /// remembered files say how they are reached. Machines are asked only when nothing is remembered.
    ///
    /// # Errors
    /// All reasons against it.
    pub async fn plan_removal(&self, cluster: &Cluster) -> Result<Removal, RemovalError> {
        let claims = self.record.as_ref().map(Record::claims).unwrap_or_default();
        let files = deploy_file::clusters(self.store()).await?;
        let others = beside(cluster, &files, claims).map_err(|lost| {
            let machines: Vec<_> = lost.iter().map(ToString::to_string).collect();
            RemovalError::Lost {
                machines: NameList(&machines).to_string(),
                place: self.store.place(Key::DEPLOY_FILE),
            }
        })?;
        let identity = match &self.record {
            Some(record) => record.identity(),
            None => self.holder(cluster).await?,
        };
        Ok(Removal {
            cluster: cluster.clone().with_leaving(others),
            identity,
            is_known: self.record.is_some(),
            only: None,
        })
    }

    /// The machines of a removal, not connected yet.
    ///
    /// # Errors
    /// Everything that is missing on the control machine.
    pub fn removal_machines(&self, removal: &Removal) -> Result<Machines, RemovalError> {
        let nodes = removal.reached();
        let timeouts = Timeouts::default();
        let (environment, identity) = (&self.environment, &removal.identity);
        Ok(reach::machines(
            nodes,
            self.store(),
            identity,
            environment,
            &timeouts,
        )?)
    }

    /// For whom the machines say they are held, where nothing is remembered.
    async fn holder(&self, cluster: &Cluster) -> Result<Identity, RemovalError> {
        let nobody = nobody(&self.id);
        let (environment, timeouts) = (&self.environment, Timeouts::default());
        let nodes = cluster.machines();
        let machines = reach::machines(nodes, self.store(), &nobody, environment, &timeouts)?;
        let options = AskOptions {
            parallel: self.settings.parallel,
            ..AskOptions::default()
        };
        let observed = preflight::ask(&machines, options, |_, _| ()).await;
        let managed = nodes.iter().filter_map(|node| observed.managed(&node.name));
        match holders(&self.id, managed).as_slice() {
            [] => Err(RemovalError::Unknown {
                id: self.id.clone(),
            }),
            [id] => match Word::new(id.as_str()) {
                Ok(cluster) => Ok(Identity {
                    cluster,
                    cluster_name: nobody.cluster_name,
                }),
                // No id of ours.
                Err(_) => Err(RemovalError::Several {
                    id: self.id.clone(),
                    ids: vec![id.clone()],
                }),
            },
            ids => Err(RemovalError::Several {
                id: self.id.clone(),
                ids: ids.to_vec(),
            }),
        }
    }
}

impl Locked {
    /// Whether the removal still is what was planned. Nothing is written.
    ///
    /// # Errors
    /// When another run has changed the cluster since then, or the only machine that goes is part of it.
    pub async fn check_removal(&self, removal: &Removal) -> Result<(), RemovalError> {
        self.checked(removal).await.map(drop)
    }

    /// Notes that the machines are about to be cleaned.
    ///
    /// # Errors
    /// Those of [`check_removal`](Self::check_removal), or when it cannot be written.
    pub async fn begin_removal(&mut self, removal: &Removal) -> Result<(), RemovalError> {
        let found = self.checked(removal).await?;
        if let (Some(mut record), None) = (found, &removal.only) {
            let was_removing = record.removing;
            record.begin_removal();
            self.begins_removal = record.removing && !was_removing;
            self.record = record;
            self.save().await?;
        }
        Ok(())
    }

    /// What is remembered, when the removal fits it.
    async fn checked(&self, removal: &Removal) -> Result<Option<Record>, RemovalError> {
        let found = Record::find(self.store(), &self.id).await?;
        let Ok(found) = begin_removal(found, removal, self.session.record.as_ref()) else {
            return Err(RemovalError::Changed {
                id: self.id.clone(),
            });
        };
        if let Some(record) = &found {
            self.check_that_it_left(removal, record).await?;
        }
        Ok(found)
    }

    /// A machine is cleaned alone only where the cluster does without it. The file of the removal does not tell: it may be
    /// older than the machine.
    async fn check_that_it_left(
        &self,
        removal: &Removal,
        record: &Record,
    ) -> Result<(), RemovalError> {
        if removal.only.is_none() {
            return Ok(());
        }
        let place = || self.store().place(Key::DEPLOY_FILE);
        let latest = match DeployFile::latest(self.store()).await? {
            Some(file) => file.cluster(),
            None => None,
        };
        let latest = latest.ok_or_else(|| state::Error::DeployFile { place: place() })?;
        for node in removal.machines() {
            match leaving::part(&latest, record.claims(), node) {
                None => {}
                Some(Part::Named { machine }) => {
                    return Err(RemovalError::Member {
                        machine,
                        id: self.id.clone(),
                        place: place(),
                    });
                }
                Some(Part::ControlPlane) => {
                    return Err(RemovalError::ControlPlane {
                        machine: node.name.to_string(),
                        id: self.id.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Puts the machines back. Nothing is forgotten yet.
    ///
    /// # Errors
    /// When one machine alone goes, and the authorities of the cluster that stays cannot be read.
    pub async fn remove(
        &self,
        removal: &Removal,
        machines: &Machines,
        control: Control<'_>,
    ) -> Result<Outcome, authorities::Error> {
        let all = || plan::remove(removal.machines().map(|node| &node.name));
        let (plan, authorities) = match &removal.only {
            None => (all(), None),
            Some(machine) => match self.authorities().await? {
                // Without them there never was an API.
                None => (all(), None),
                authorities => (plan::remove_returned(machine), authorities),
            },
        };
        let authorities = authorities.as_ref();
        let undoing = self.undo(&removal.cluster, &plan, machines, authorities, control);
        Ok(undoing.await)
    }

    /// Forgets a cluster of which nothing is left, or what is clean of it. Machines where nothing answers any more can be
    /// forgotten with it, or alone. Gives whether the cluster is forgotten, or the only machine without being cleaned.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn forget(
        self,
        removal: &Removal,
        outcome: &Outcome,
        forget_missing: bool,
    ) -> Result<bool, RunError> {
        let Removal { cluster, only, .. } = removal;
        self.forget_cluster(cluster, outcome, forget_missing, only.as_ref())
            .await
    }

    async fn forget_cluster(
        mut self,
        cluster: &Cluster,
        outcome: &Outcome,
        forget_missing: bool,
        only: Option<&Name>,
    ) -> Result<bool, RunError> {
        let is_gone = |one: &NotDone| forget_missing && one.is_missing;
        let is_over = outcome.state != State::Stopped && outcome.not_done.iter().all(is_gone);
        if is_over && only.is_none() {
            self.session.store.remove(self.lock).await?;
            return Ok(true);
        }
        let missing = only.filter(|_| is_over && !outcome.not_done.is_empty());
        if self.session.record.is_some() {
            self.release(cluster, &outcome.gone);
            self.release(cluster, missing.map_or(&[], slice::from_ref));
            if self.begins_removal && outcome.is_untouched() {
                // The cluster lives as before.
                self.record.removing = false;
            }
            self.save().await?;
        }
        Ok(missing.is_some())
    }

    /// Puts the machines of a cluster back that never was up. One that did not answer, in this run or in any before, has
    /// nothing of it.
    ///
    /// # Errors
    /// When it cannot be remembered.
    pub async fn roll_back(
        self,
        cluster: &Cluster,
        machines: &Machines,
        control: Control<'_>,
    ) -> Result<(Outcome, bool), RunError> {
        let claims = self.record.claims();
        let is_claimed = |node: &&Node| claims.iter().any(|claim| claim.address == node.address);
        let claimed = cluster.all_machines().filter(is_claimed);
        let plan = plan::remove(claimed.map(|node| &node.name));
        let outcome = self.undo(cluster, &plan, machines, None, control).await;
        let is_forgotten = self.forget_cluster(cluster, &outcome, false, None).await?;
        Ok((outcome, is_forgotten))
    }
}

/// The machines that a cluster has claimed beside those of a file, by a name that no other has.
///
/// # Errors
/// Claims on machines that no file says how to log in to.
fn beside<'c>(
    file: &Cluster,
    remembered: &[Cluster],
    claims: &'c [Claim],
) -> Result<Vec<Node>, Vec<&'c Claim>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut names: BTreeSet<Name> = file
        .machines()
        .iter()
        .map(|node| node.name.clone())
        .collect();
    let mut lost = Vec::new();
    for claim in claims {
        // Under whatever name: it is the same machine.
        let mut all = file.machines().iter().chain(&nodes);
        if all.any(|node| node.address == claim.address) {
            continue;
        }
        let Some(node) = deploy_file::claimed_machine(claim, remembered) else {
            lost.push(claim);
            continue;
        };
        let mut node = node.clone();
        if names.contains(&node.name) {
            let address = node.address.to_string().replace([':', '.'], "-");
            let other = format!("{:.20}-{address}", node.name.as_str());
            if let Ok(other) = Name::parse(&other) {
                node.name = other;
            }
        }
        names.insert(node.name.clone());
        nodes.push(node);
    }
    match lost.is_empty() {
        true => Ok(nodes),
        false => Err(lost),
    }
}

/// The ids of clusters of this name, as machines say that they are held by them.
fn holders<'a>(name: &Name, machines: impl IntoIterator<Item = &'a Managed>) -> Vec<String> {
    let mut ids = Vec::new();
    for (id, called) in machines.into_iter().filter_map(|one| one.cluster.as_ref()) {
        if called == name.as_str() && !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    ids
}

/// Another run was there between the question and the lock.
#[derive(Debug, PartialEq, Eq)]
struct Changed;

/// The record to be kept while machines are cleaned: what was found under the lock, as long as it is about the cluster and the
/// machines that were known before.
fn begin_removal(
    found: Option<Record>,
    removal: &Removal,
    known: Option<&Record>,
) -> Result<Option<Record>, Changed> {
    let (mut found, known) = match (found, known) {
        (None, None) if !removal.is_known => return Ok(None),
        (Some(found), Some(known)) if found.uid() == removal.identity.cluster.as_str() => {
            (found, known)
        }
        _ => return Err(Changed),
    };
    // Only where an earlier release wrote it.
    found.complete(known.claims().to_vec(), known.formed);
    let machines = || removal.cluster.all_machines();
    let is_planned = |claim: &Claim| machines().any(|node| node.address == claim.address);
    if !found.claims().iter().all(is_planned) {
        return Err(Changed);
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Arc};

    use hatchery_host::{machine::Machine, privilege::Privilege, transport::memory::Memory};
    use hatchery_spec::{Input, read};
    use time::OffsetDateTime;
    use tokio::sync::watch;

    use super::*;
    use crate::{
        reach::Environment,
        state::{Holder, Home, Stores as _},
    };

    fn lab(machines: &str) -> Cluster {
        let text = format!("cluster-id: lab\nmasters: [{machines}]\n");
        let reading = read(Input::private("x", text.as_bytes()));
        reading.cluster.unwrap()
    }

    #[test]
    fn what_was_claimed_is_cleaned_beside_what_the_file_names() {
        let made = lab("{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2, user: me, port: 2222}");
        let claims = Claim::on_all(&made);
        let others = |file: &Cluster, remembered: &[Cluster]| {
            let names = |nodes: Vec<Node>| -> Vec<String> {
                nodes.iter().map(|node| node.name.to_string()).collect()
            };
            let lost = |lost: Vec<&Claim>| -> Vec<String> {
                lost.iter().map(ToString::to_string).collect()
            };
            beside(file, remembered, &claims).map(names).map_err(lost)
        };
        let made = slice::from_ref(&made);
        assert_eq!(others(&made[0], &[]), Ok(vec![]));
        let shorter = lab("{name: m0, ip: 10.0.0.1}");
        assert_eq!(others(&shorter, made), Ok(vec!["m1".into()]));
        let lost = "m1 (me@10.0.0.2, port 2222)".to_owned();
        assert_eq!(others(&shorter, &[]), Err(vec![lost]));
        // One machine is cleaned once, whatever it is called.
        let renamed = lab("{name: m0, ip: 10.0.0.1}, {name: x1, ip: 10.0.0.2}");
        assert_eq!(others(&renamed, made), Ok(vec![]));
        let longer = lab("{name: m0, ip: 10.0.0.1}, {name: m9, ip: 10.0.0.9}");
        assert_eq!(others(&longer, made), Ok(vec!["m1".into()]));
        // And two machines are two, though they were called alike.
        let moved = lab("{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.9}");
        assert_eq!(others(&moved, made), Ok(vec!["m1-10-0-0-2".into()]));
    }

    /// A cluster of one master that is up, as it is remembered below a directory.
    async fn remembered(home: &Home) -> Cluster {
        let text = "cluster-id: lab\nmasters: [{name: m0, ip: 10.0.0.1}]\n";
        let cluster = lab("{name: m0, ip: 10.0.0.1}");
        let mut record = Record::new(&cluster.id, OffsetDateTime::UNIX_EPOCH).unwrap();
        record.claim(cluster.machines());
        record.formed = true;
        let store = home.store(&cluster.id);
        record.keep(store.as_ref()).await.unwrap();
        let file = DeployFile {
            text: text.as_bytes().to_vec(),
            variables: None,
        };
        let remembered = file.remember(&cluster, store.as_ref(), record.claims());
        remembered.await.unwrap();
        cluster
    }

    /// A session that holds the lock, for the removal of a cluster.
    async fn removing(home: &Home, cluster: &Cluster) -> (Locked, Removal) {
        let environment = Environment::new(PathBuf::new(), None, |_| None);
        let session = Session::open(Arc::new(home.clone()), &cluster.id, environment);
        let session = session.await.unwrap();
        let removal = session.plan_removal(cluster).await.unwrap();
        let holder = Holder::this_process("cleanup", OffsetDateTime::now_utc());
        (session.lock(holder).await.unwrap(), removal)
    }

    fn first_machine(cluster: &Cluster, identity: &Identity) -> Machines {
        let name = &cluster.machines()[0].name;
        let memory = Arc::new(Memory::new(name.as_str()));
        let machine = Machine::new(memory, Privilege::Root, identity.clone());
        Machines::from([(name.clone(), Arc::new(machine))])
    }

    #[tokio::test]
    async fn a_machine_that_never_answered_is_not_rolled_back() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let made = remembered(&home).await;
        let (session, removal) = removing(&home, &made).await;
        let machines = first_machine(&made, removal.identity());
        let (_stop, stop) = watch::channel(false);
        let control = Control {
            emit: &|_| (),
            stop,
        };
        let wanted = lab("{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2}");
        let rolled_back = session.roll_back(&wanted, &machines, control).await;
        let (outcome, is_forgotten) = rolled_back.unwrap();
        assert_eq!(outcome.not_done, []);
        assert!(outcome.state == State::Done && is_forgotten);
    }

    #[tokio::test]
    async fn a_removal_that_was_stopped_before_it_did_anything_leaves_a_cluster_that_lives() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let cluster = remembered(&home).await;
        let store = home.store(&cluster.id);
        let is_removing = async || {
            let record = Record::find(store.as_ref(), &cluster.id).await;
            record.unwrap().unwrap().removing
        };
        let stopped = |changes| Outcome {
            state: State::Stopped,
            not_done: Vec::new(),
            changes,
            left: 1,
            api: false,
            gone: Vec::new(),
        };
        let (_stop, stop) = watch::channel(true);
        let (mut session, removal) = removing(&home, &cluster).await;
        session.begin_removal(&removal).await.unwrap();
        assert!(is_removing().await);
        let machines = first_machine(&cluster, removal.identity());
        let control = Control {
            emit: &|_| (),
            stop,
        };
        let outcome = session.remove(&removal, &machines, control).await.unwrap();
        assert!(outcome.is_untouched());
        assert!(!session.forget(&removal, &outcome, false).await.unwrap());
        assert!(!is_removing().await);
        // Not when something was changed, and not when an earlier run did.
        for changes in [1, 0] {
            let (mut session, removal) = removing(&home, &cluster).await;
            session.begin_removal(&removal).await.unwrap();
            let outcome = stopped(changes);
            assert!(!session.forget(&removal, &outcome, false).await.unwrap());
            assert!(is_removing().await, "{changes}");
        }
    }

    #[test]
    fn a_cluster_is_known_by_what_its_machines_say() {
        let name = Name::parse("lab").unwrap();
        let found = |by: &[Option<(&str, &str)>]| {
            let held = |by: &Option<(&str, &str)>| Managed {
                cluster: by.map(|(id, name)| (id.to_owned(), name.to_owned())),
                resources: Vec::new(),
            };
            let machines: Vec<_> = by.iter().map(held).collect();
            holders(&name, &machines)
        };
        assert_eq!(found(&[None, None]), [""; 0]);
        assert_eq!(found(&[None, Some(("a1", "lab"))]), ["a1"]);
        let two = [Some(("a1", "lab")), Some(("a1", "lab"))];
        assert_eq!(found(&two), ["a1"]);
        // Another cluster's machine stays that cluster's.
        let other = [Some(("b2", "prod")), Some(("a1", "lab"))];
        assert_eq!(found(&other), ["a1"]);
        assert_eq!(found(&other[..1]), [""; 0]);
        let both = [Some(("a1", "lab")), Some(("b2", "lab"))];
        assert_eq!(found(&both), ["a1", "b2"]);
    }

    #[test]
    fn removal_begins_with_what_is_found_under_the_lock() {
        let cluster = lab("{name: m0, ip: 10.0.0.1}");
        let new = |cluster: &Cluster| {
            let mut record = Record::new(&cluster.id, OffsetDateTime::UNIX_EPOCH).unwrap();
            record.claim(cluster.machines());
            record
        };
        let known = new(&cluster);
        let removal = |is_known| Removal {
            cluster: cluster.clone(),
            identity: known.identity(),
            is_known,
            only: None,
        };
        let begin = |found, removal: &Removal, known| begin_removal(found, removal, known);
        assert_eq!(begin(None, &removal(false), None), Ok(None));
        // A deployment ended while the user was asked.
        let mut found = known.clone();
        found.formed = true;
        let begun = begin(Some(found), &removal(true), Some(&known));
        assert!(begun.unwrap().unwrap().formed);
        // A record of an earlier release is completed by what was found out before.
        let mut first = known.clone();
        first.machines = None;
        let begun = begin(Some(first), &removal(true), Some(&known));
        assert_eq!(begun.unwrap().unwrap().claims(), known.claims());
        // Machines may have been claimed in any order.
        let [one, two] = ["{name: m0, ip: 10.0.0.1}", "{name: m1, ip: 10.0.0.2}"];
        let claimed = new(&lab(&format!("{two}, {one}")));
        let both = Removal {
            cluster: lab(&format!("{one}, {two}")),
            identity: claimed.identity(),
            is_known: true,
            only: None,
        };
        let begun = begin(Some(claimed.clone()), &both, Some(&claimed));
        assert_eq!(begun, Ok(Some(claimed.clone())));
        // Other machines, or another cluster.
        let mut more = known.clone();
        more.claim(lab("{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2}").machines());
        let other = new(&cluster);
        for found in [None, Some(more), Some(other)] {
            let begun = begin(found, &removal(true), Some(&known));
            assert_eq!(begun, Err(Changed));
        }
        assert_eq!(
            begin(Some(known.clone()), &removal(false), None),
            Err(Changed)
        );
    }
}
