//! The order of etcd members and masters: all at once where nothing lives yet, one by one where a restart would be felt.

use hatchery_pki::expiry;
use hatchery_spec::{
    cluster::{CoreDns, Machine, Role},
    value::Name,
};

use super::{Addon, Component, Concurrency, Edges, Error, Lane, Maker, TaskId};
use crate::{
    components::{control_plane, coredns, etcd},
    observed::{API_SERVER, ETCD, KUBELET},
    owner::Owner,
};

impl<'a> Maker<'a> {
    /// Members that do not run start together, since they wait for each other; it takes nothing from those that run.
    /// Afterwards these follow one by one.
    pub(super) fn etcd(&mut self) -> Result<(), Error> {
        let members = self.present(|node| node.is(Role::Etcd)).into_iter();
        let lost = self.has_lost_its_quorum();
        let (running, stopped): (Vec<_>, Vec<_>) = members.partition(|node| {
            let name = &node.name;
            self.observed.runs(name, ETCD) && !(lost && self.has_ended_certificates(name))
        });
        // None begins before all have their programs.
        let prepared: Vec<_> = stopped
            .iter()
            .flat_map(|node| self.prepared(&node.name))
            .collect();
        let mut begun = Vec::new();
        for node in stopped {
            self.add(node, Owner::Etcd, &prepared, &[etcd::resources])?;
            self.graph.last_runs(Concurrency::Together);
            begun.extend(self.tasks_of(Owner::Etcd, &node.name));
        }
        for node in running {
            let needs = self.prepared(&node.name);
            self.add(node, Owner::Etcd, &needs, &[etcd::resources])?;
            self.graph.last_comes_after(&begun);
            self.graph.last_runs(Concurrency::OneByOne(Lane::Etcd));
        }
        Ok(())
    }

    /// Whether too few members have certificates that hold. Those that run may still hear each other over connections of
    /// before, but one that is restarted reaches none: all of them need new ones together.
    fn has_lost_its_quorum(&self) -> bool {
        let members = self.present(|node| node.is(Role::Etcd));
        let ended = members
            .iter()
            .filter(|node| self.has_ended_certificates(&node.name));
        let count = self.wanted.cluster.etcds().len();
        count - ended.count() <= count / 2
    }

    fn has_ended_certificates(&self, machine: &Name) -> bool {
        let managed = self.observed.managed(machine);
        let resources = managed.into_iter().flat_map(|managed| &managed.resources);
        let mut certificates = resources.filter(|one| one.name.starts_with(etcd::DIR));
        certificates.any(|one| {
            let end = one.text.as_deref().map(expiry);
            end.is_some_and(|end| end.is_ok_and(|end| end <= self.now))
        })
    }

    /// The masters that others wait for. In a new cluster that is one: one API server fills the empty database, several
    /// would wait for each other. It begins as soon as etcd does, since everybody waits for it.
    pub(super) fn first_masters(&mut self) -> Result<(), Error> {
        let etcd = self.all(Owner::Etcd, Role::Etcd);
        if !self.api_lives() {
            if let Some(node) = self.masters().first() {
                self.master(node, &Edges::needs(etcd))?;
            }
            return Ok(());
        }
        let masters = self.masters().into_iter();
        let (running, stopped): (Vec<_>, Vec<_>) =
            masters.partition(|node| self.observed.runs(&node.name, API_SERVER));
        let mut before = etcd;
        for node in &stopped {
            self.master(node, &Edges::on(true, before.clone()))?;
        }
        before.extend(
            stopped
                .iter()
                .flat_map(|node| self.tasks_of(Owner::Master, &node.name)),
        );
        for node in running {
            self.master(node, &Edges::on(true, before.clone()))?;
            self.graph
                .last_runs(Concurrency::OneByOne(Lane::ControlPlane));
        }
        Ok(())
    }

    /// Those beside the first of a new cluster.
    pub(super) fn other_masters(&mut self, addons: &[Addon]) -> Result<(), Error> {
        if self.api_lives() {
            return Ok(());
        }
        let up = self.api_server().needs;
        let api: Vec<_> = addons
            .first()
            .map(|addon| addon.applied)
            .into_iter()
            .collect();
        for node in self.masters().into_iter().skip(1) {
            let etcd = Edges::needs(self.all(Owner::Etcd, Role::Etcd));
            let own = self.tasks_of(Owner::Worker, &node.name);
            let after = [up.clone(), api.clone(), own].concat();
            self.master(node, &etcd.and(Edges::on(true, after)))?;
        }
        Ok(())
    }

    /// The lane of the services on a machine that others cannot all do without at once.
    pub(super) fn lane(&self, machine: &Name) -> Option<Lane> {
        let services = [
            (ETCD, Lane::Etcd),
            (API_SERVER, Lane::ControlPlane),
            (KUBELET, Lane::Workers),
        ];
        let mut services = services.into_iter();
        services
            .find(|(unit, _)| self.observed.runs(machine, unit))
            .map(|(_, lane)| lane)
    }

    fn masters(&self) -> Vec<&'a Machine> {
        self.present(|node| node.is(Role::Master))
    }

    fn master(&mut self, node: &Machine, edges: &Edges) -> Result<(), Error> {
        let needs = [self.prepared(&node.name), edges.needs.clone()].concat();
        let mut parts: Vec<Component> = vec![control_plane::resources];
        if self.wanted.cluster.dns.coredns == CoreDns::Binary {
            parts.push(coredns::resources);
        }
        self.add(node, Owner::Master, &needs, &parts)?;
        self.graph.last_comes_after(&edges.after);
        Ok(())
    }

    /// What leads to the API: the first master of a new cluster; where some answer already, all have to be through.
    pub(super) fn api_server(&self) -> Edges {
        let masters = self.masters();
        let tasks: Vec<TaskId> = masters
            .iter()
            .flat_map(|node| self.tasks_of(Owner::Master, &node.name))
            .collect();
        match self.api_lives() {
            true => Edges::on(true, tasks),
            false => Edges::needs(tasks.into_iter().take(1).collect()),
        }
    }

    /// Whether an API server of the cluster runs.
    pub(super) fn api_lives(&self) -> bool {
        let masters = self.masters();
        masters
            .iter()
            .any(|node| self.observed.runs(&node.name, API_SERVER))
    }
}
