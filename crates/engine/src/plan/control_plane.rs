//! The order of etcd members and masters: all at once where nothing lives yet, one by one where a restart would be felt.

use hatchery_pki::expiry;
use hatchery_spec::cluster::{CoreDns, Machine, Role};

use super::{
    Addon, Concurrency, Edges, Error, Lane, Maker, Part, TaskId,
    running::{API_SERVER, ETCD, runs},
};
use crate::components::{control_plane, coredns, etcd};

impl<'a> Maker<'a> {
    /// Members that do not run start together, since they wait for each other; it takes nothing from those that run.
    /// Afterwards these follow one by one.
    pub(super) fn etcd(&mut self) -> Result<(), Error> {
        let members = self.present(|node| node.is(Role::Etcd)).into_iter();
        let lost = self.has_lost_its_quorum();
        let (running, stopped): (Vec<_>, Vec<_>) = members.partition(|(place, _)| {
            self.runs(*place, ETCD) && !(lost && self.has_ended_certificates(*place))
        });
        // None begins before all have their programs.
        let prepared: Vec<_> = stopped
            .iter()
            .flat_map(|(place, _)| self.prepared(*place))
            .collect();
        let mut begun = Vec::new();
        for (place, node) in stopped {
            self.add(place, node, "etcd", &prepared, &[etcd::resources])?;
            self.graph.last_runs(Concurrency::Together);
            begun.extend(self.of("etcd", place));
        }
        for (place, node) in running {
            let needs = self.prepared(place);
            self.add(place, node, "etcd", &needs, &[etcd::resources])?;
            self.graph.last_comes_after(&begun);
            self.graph.last_runs(Concurrency::OneByOne(Lane::Etcd));
        }
        Ok(())
    }

    /// Whether too few members have certificates that hold. Those that run may still hear each other over connections of
    /// before, but one that is restarted hears nobody: all of them need new ones together.
    fn has_lost_its_quorum(&self) -> bool {
        let members = self.present(|node| node.is(Role::Etcd));
        let ended = |(place, _): &&(usize, &Machine)| self.has_ended_certificates(*place);
        let left = self.basis.cluster.etcds().len() - members.iter().filter(ended).count();
        left <= self.basis.cluster.etcds().len() / 2
    }

    fn has_ended_certificates(&self, place: usize) -> bool {
        let managed = self.basis.managed.get(place);
        let resources = managed.into_iter().flat_map(|managed| &managed.resources);
        let mut certificates = resources.filter(|one| one.name.starts_with(etcd::DIR));
        certificates.any(|one| {
            let end = one.text.as_deref().map(expiry);
            end.is_some_and(|end| end.is_ok_and(|end| end <= self.basis.now))
        })
    }

    /// The masters that others wait for. In a new cluster that is one: one API server fills the empty database, several
    /// would wait for each other. It begins as soon as etcd does, since everybody waits for it.
    pub(super) fn first_masters(&mut self) -> Result<(), Error> {
        let etcd = self.all("etcd", Role::Etcd);
        if !self.api_lives() {
            if let Some((place, node)) = self.masters().first() {
                self.master(*place, node, &Edges::needs(etcd))?;
            }
            return Ok(());
        }
        let masters = self.masters().into_iter();
        let (running, stopped): (Vec<_>, Vec<_>) =
            masters.partition(|(place, _)| self.runs(*place, API_SERVER));
        let mut before = etcd;
        for (place, node) in &stopped {
            self.master(*place, node, &Edges::on(true, before.clone()))?;
        }
        before.extend(
            stopped
                .iter()
                .flat_map(|(place, _)| self.of("master", *place)),
        );
        for (place, node) in running {
            self.master(place, node, &Edges::on(true, before.clone()))?;
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
        for (place, node) in self.masters().into_iter().skip(1) {
            let etcd = Edges::needs(self.all("etcd", Role::Etcd));
            let after = [up.clone(), api.clone(), self.of("worker", place)].concat();
            self.master(place, node, &etcd.and(Edges::on(true, after)))?;
        }
        Ok(())
    }

    /// The lane of the services on a machine that others cannot all do without at once.
    pub(super) fn lane(&self, place: usize) -> Option<Lane> {
        let mut services = [(ETCD, Lane::Etcd), (API_SERVER, Lane::ControlPlane)].into_iter();
        services
            .find(|(unit, _)| self.runs(place, unit))
            .map(|(_, lane)| lane)
    }

    fn masters(&self) -> Vec<(usize, &'a Machine)> {
        self.present(|node| node.is(Role::Master))
    }

    fn master(&mut self, place: usize, node: &Machine, edges: &Edges) -> Result<(), Error> {
        let needs = [self.prepared(place), edges.needs.clone()].concat();
        let mut parts: Vec<Part> = vec![control_plane::resources];
        if self.basis.cluster.dns.coredns == CoreDns::Binary {
            parts.push(coredns::resources);
        }
        self.add(place, node, "master", &needs, &parts)?;
        self.graph.last_comes_after(&edges.after);
        Ok(())
    }

    /// What leads to the API: the first master of a new cluster; where some answer already, all have to be through.
    pub(super) fn api_server(&self) -> Edges {
        let masters = self.masters();
        let tasks: Vec<TaskId> = masters
            .iter()
            .flat_map(|(place, _)| self.of("master", *place))
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
            .any(|(place, _)| self.runs(*place, API_SERVER))
    }

    fn runs(&self, place: usize, unit: &str) -> bool {
        let managed = self.basis.managed.get(place);
        managed.is_some_and(|managed| runs(managed, unit))
    }
}
