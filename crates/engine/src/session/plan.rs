//! From a deploy file to a plan: everything is looked at, nothing is changed.

use hatchery_host::transport::ssh::Timeouts;
use hatchery_spec::{Cluster, value::Name};
use time::OffsetDateTime;

use super::{Refusal, RefusalKind, Session, missing, wanted};
use crate::{
    api_access::{ApiAccess, Machines},
    authorities::Authorities,
    comparison::{self, Presence, Presences},
    diff::{self, Diff},
    finding::{Finding, Severity},
    observed::Observed,
    plan::{self, Plan},
    preflight::{self, AskOptions},
    state::{Record, deploy_file},
    versions::Versions,
    wanted::Wanted,
};

/// A change that can be made, and all that was found out about it.
#[derive(Debug)]
pub struct Planned {
    /// The wanted state of the cluster.
    pub wanted: Wanted,
    /// What its machines are.
    pub observed: Observed,
    /// The machines, connected where they answered.
    pub machines: Machines,
    /// What there is to say about them; no error among it.
    pub findings: Vec<Finding>,
    /// The tasks.
    pub plan: Plan,
    /// Whether the control plane was begun before.
    pub formed: bool,
}

impl Planned {
    /// The machines that are left out, since they did not answer and the others can do without.
    pub fn silent(&self) -> Vec<&Name> {
        let silent = self.observed.silent(&self.wanted.cluster);
        silent.into_iter().map(|node| &node.name).collect()
    }

    /// Ends the connections.
    pub async fn disconnect(&self) {
        let machines = self.machines.values();
        futures::future::join_all(machines.map(|machine| machine.disconnect())).await;
    }
}

impl Session {
    /// Looks at everything, and says what has to be done.
    ///
    /// # Errors
    /// All reasons against the change, of the first kind that there is.
    pub async fn plan(&self, cluster: &Cluster) -> Result<Planned, Refusal> {
        // What is known without asking is said without asking.
        if self.record.as_ref().is_some_and(|one| one.formed) {
            self.compare(cluster, None, &Presences::new())?;
            self.compare_balancer(cluster).await?;
        }
        let machines = self.machines(cluster.all_machines(), &Timeouts::default())?;
        let options = AskOptions {
            parallel: self.settings.parallel,
            stay: true,
            ..AskOptions::default()
        };
        let asking = preflight::ask(&machines, options, |_, _| ());
        let opening = wanted::open(cluster.clone(), self.base.clone(), self.environment.clone());
        let (observed, opened) = tokio::join!(asking, opening);
        let present = cluster.machines().iter().filter_map(|node| {
            let reply = observed.reply(&node.name)?;
            Some((node.name.clone(), Presence::new(&self.identity, reply)?))
        });
        let present: Presences = present.collect();
        self.compare(cluster, None, &present)?;
        let formed = self
            .record
            .as_ref()
            .is_some_and(|one| comparison::is_formed(one, &present));
        let mut findings = self.check(cluster, &observed, formed)?;
        let opened = opened.map_err(Refusal::file)?;
        let installations = opened
            .installations(cluster, &observed)
            .map_err(Refusal::file)?;
        let manifests = opened.manifests(cluster).await.map_err(Refusal::file)?;
        let offered = wanted::ask_repositories(&machines, &installations, &observed)
            .await
            .map_err(Refusal::file)?;
        let versions =
            wanted::resolve(cluster, opened.versions(), offered).map_err(Refusal::file)?;
        self.compare(cluster, Some(&versions), &present)?;
        let wanted = Wanted {
            images: wanted::images(cluster, installations.values()),
            cluster: cluster.clone(),
            versions,
            installations,
            manifests,
        };
        let mut plan = plan::make(&wanted, &observed, OffsetDateTime::now_utc())?;
        plan.notes.splice(..0, opened.unknown_versions());
        let lacking = preflight::check_images(&wanted, &plan, &machines, &observed).await;
        if !lacking.is_empty() {
            findings.splice(..0, lacking);
            return Err(Refusal::new(RefusalKind::Machines, findings));
        }
        Ok(Planned {
            wanted,
            observed,
            machines,
            findings,
            plan,
            formed,
        })
    }

    /// What running a plan would change. `authorities` are those of the cluster, or some that a new one could have; the API
    /// is asked where `is_new` is false.
    ///
    /// # Errors
    /// The first machine that gives no answer.
    pub async fn diff(
        &self,
        planned: &Planned,
        authorities: &Authorities,
        is_new: bool,
    ) -> Result<Diff, diff::Error> {
        let access = ApiAccess {
            cluster: &planned.wanted.cluster,
            machines: &planned.machines,
            observed: &planned.observed,
            authorities,
        };
        diff::look(&planned.plan, access, !is_new, self.settings.parallel).await
    }

    /// The findings about machines, as long as none of them prevents the change.
    fn check(
        &self,
        cluster: &Cluster,
        observed: &Observed,
        formed: bool,
    ) -> Result<Vec<Finding>, Refusal> {
        let answers = cluster.machines().iter();
        let answers = answers.filter_map(|node| Some((node, observed.reply(&node.name)?)));
        let answers: Vec<_> = answers.collect();
        let mut findings = preflight::check_machines(cluster, &self.identity, &answers);
        let claims = self.record.as_ref().map(Record::claims);
        let needed = missing::needed(cluster, observed, formed, claims.unwrap_or_default());
        let is_needed = needed.is_some();
        if let Some(needed) = needed {
            // Behind the reasons why it did not answer.
            let errors = findings.iter();
            let errors = errors.take_while(|one| one.severity == Severity::Error);
            findings.insert(errors.count(), needed);
        }
        // A machine that is left out keeps nobody else waiting.
        let is_left_out = |name: &String| {
            !is_needed && Name::parse(name).is_ok_and(|name| observed.is_silent(&name))
        };
        let mut all = findings.iter();
        let is_fatal = all.any(|finding| {
            finding.severity == Severity::Error && !finding.machines.iter().all(is_left_out)
        });
        match is_fatal {
            true => Err(Refusal::new(RefusalKind::Machines, findings)),
            false => Ok(findings),
        }
    }

    /// Refuses another port for a load balancer that serves: it would leave the former one at once, and nodes follow a few at a
    /// time.
    async fn compare_balancer(&self, cluster: &Cluster) -> Result<(), Refusal> {
        let refused = |finding| Err(Refusal::new(RefusalKind::Cluster, vec![finding]));
        let files = match deploy_file::clusters(self.store()).await {
            Ok(files) => files,
            Err(error) => {
                let remedy = error.remedy().unwrap_or_default();
                return refused(Finding::error("state", error.to_string(), remedy));
            }
        };
        match files.first().and_then(|former| other_port(former, cluster)) {
            Some(finding) => refused(finding),
            None => Ok(()),
        }
    }

    /// Refuses what cannot be done to the cluster as it is remembered and as its machines show it.
    fn compare(
        &self,
        cluster: &Cluster,
        versions: Option<&Versions>,
        present: &Presences,
    ) -> Result<(), Refusal> {
        let Some(remembered) = &self.record else {
            return Ok(());
        };
        let refusals = comparison::refusals((cluster, versions), remembered, present);
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(Refusal::new(RefusalKind::Cluster, refusals)),
        }
    }
}

fn other_port(former: &Cluster, wanted: &Cluster) -> Option<Finding> {
    let (former, wanted) = (former.load_balancer()?, wanted.load_balancer()?);
    let is_same = former.machine.address == wanted.machine.address;
    if !is_same || former.bind_port == wanted.bind_port {
        return None;
    }
    Some(Finding {
        machines: vec![wanted.machine.name.to_string()],
        ..Finding::error(
            "load-balancer-port",
            format!(
                "serves all nodes at port {}, and would leave it for {} before they follow",
                former.bind_port, wanted.bind_port
            ),
            "keep bind-port, or move the load balancer to another machine with the new port",
        )
    })
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    fn cluster(balancer: &str) -> Cluster {
        let text = format!(
            "cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: [{{name: w0, ip: 10.0.0.2}}]\n{balancer}"
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        reading.cluster.unwrap()
    }

    #[test]
    fn a_balancer_that_serves_keeps_its_port() {
        let one = cluster("loadbalance: {name: lb, ip: 10.0.0.9, bind-port: 8443}\n");
        let other_port_there = cluster("loadbalance: {name: lb, ip: 10.0.0.9, bind-port: 9443}\n");
        let other_machine = cluster("loadbalance: {name: lb2, ip: 10.0.0.8, bind-port: 9443}\n");
        let none = cluster("");
        let finding = other_port(&one, &other_port_there).unwrap();
        assert_eq!(finding.machines, ["lb"]);
        assert!(finding.message.contains("port 8443"), "{finding}");
        for (former, wanted) in [
            (&one, &one),
            (&one, &other_machine),
            (&one, &none),
            (&none, &one),
        ] {
            assert!(other_port(former, wanted).is_none());
        }
    }
}
