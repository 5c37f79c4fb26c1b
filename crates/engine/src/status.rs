//! What a cluster is like at this moment: whether its API answers, its nodes, and until when its certificates last.

use std::time::Duration;

use futures::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, join_all},
    stream,
};
use hatchery_host::machine::{Machine, Managed};
use hatchery_pki::expiry;
use hatchery_spec::{Cluster, cluster::Role};
use serde::Serialize;
use time::OffsetDateTime;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    api_access::{ApiAccess, Machines},
    authorities::Authorities,
    observed::Observed,
};

/// What was found out; what could not be is left open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version that the API server says.
    pub kubernetes: Option<String>,
    /// Why the API gives no answer.
    pub silence: Option<String>,
    /// How many nodes are ready.
    pub ready: usize,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many machines answered.
    pub reached: usize,
    /// When the first certificate ends.
    #[serde(with = "time::serde::rfc3339::option")]
    pub certificates_until: Option<OffsetDateTime>,
}

/// So many machines are asked at the same time.
const PARALLEL: usize = 64;
/// After so many deadlines of a single machine nobody waits for the rest of a cluster.
const ROUNDS: u32 = 4;

/// Asks the machines and the API of a cluster. Each machine has this long, and all of them together four times as long;
/// a machine that did not get its turn by then counts as not reached.
pub(crate) fn look<'a>(
    cluster: &'a Cluster,
    machines: &'a Machines,
    authorities: Option<&'a Authorities>,
    deadline: Duration,
) -> BoxFuture<'a, Status> {
    look_at_all(cluster, machines, authorities, deadline).boxed()
}

async fn look_at_all(
    cluster: &Cluster,
    machines: &Machines,
    authorities: Option<&Authorities>,
    deadline: Duration,
) -> Status {
    let asking = ask_all(cluster, machines, deadline);
    let api = async {
        match authorities {
            None => Err("the cluster has no authorities yet".to_owned()),
            Some(authorities) => {
                let observed = Observed::default();
                let access = ApiAccess {
                    cluster,
                    machines,
                    observed: &observed,
                    authorities,
                };
                match timeout(deadline, ask(access)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(format!("no answer within {} s", deadline.as_secs())),
                }
            }
        }
    };
    let (managed, answer) = tokio::join!(asking, api);
    // Saying goodbye may take no longer.
    let goodbye: Vec<_> = machines.values().map(|one| one.disconnect()).collect();
    let goodbye = join_all(goodbye);
    let _ = timeout(Duration::from_secs(1), goodbye).await;
    let mut status = Status {
        reached: managed.len(),
        certificates_until: first_end(&managed).or_else(|| {
            let authority = authorities?;
            expiry(authority.cluster.cert_pem()).ok()
        }),
        ..Status::default()
    };
    match answer {
        Ok((version, ready, nodes)) => {
            (status.kubernetes, status.ready, status.nodes) = (Some(version), ready, nodes);
        }
        Err(reason) => status.silence = Some(reason),
    }
    status
}

/// What the machines say that answer in time. Those that nobody needs any more are let go.
async fn ask_all(cluster: &Cluster, machines: &Machines, deadline: Duration) -> Vec<Managed> {
    let questions = cluster.machines().iter();
    let questions = questions.map(|node| async move {
        let machine = machines.get(&node.name)?;
        let answer = managed(machine, deadline).await;
        // Masters lead to the API.
        if !node.is(Role::Master) {
            let _ = timeout(Duration::from_secs(1), machine.disconnect()).await;
        }
        answer
    });
    let questions: Vec<_> = questions.collect();
    let mut answers = stream::iter(questions).buffer_unordered(PARALLEL);
    let end = Instant::now() + deadline * ROUNDS;
    let mut managed = Vec::new();
    while let Ok(Some(answer)) = timeout_at(end, answers.next()).await {
        managed.extend(answer);
    }
    managed
}

async fn managed(machine: &Machine, deadline: Duration) -> Option<Managed> {
    let answer = timeout(deadline, machine.facts(deadline)).await;
    answer.ok()?.ok().map(|(_, managed)| managed)
}

/// Version, nodes that are ready, and all nodes.
async fn ask(access: ApiAccess<'_>) -> Result<(String, usize, usize), String> {
    let api = access.connect(&|_| ()).await;
    let api = api.map_err(|error| error.to_string())?;
    let version = api.client().apiserver_version().await;
    let version = version.map_err(|error| error.to_string())?.git_version;
    let nodes = api.nodes().await.map_err(|error| error.to_string())?;
    let ready = nodes.iter().filter(|node| node.is_ready()).count();
    Ok((version, ready, nodes.len()))
}

/// When the first of the certificates on machines ends.
fn first_end(managed: &[Managed]) -> Option<OffsetDateTime> {
    let resources = managed.iter().flat_map(|one| &one.resources);
    resources
        .filter_map(|resource| expiry(resource.text.as_deref()?).ok())
        .min()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures::{FutureExt as _, future::BoxFuture};
    use hatchery_host::{
        machine::ManagedResource,
        privilege::Privilege,
        transport::{self, Connection, Connector},
    };
    use hatchery_pki::{AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME, Request};
    use hatchery_spec::{Input, read};

    use super::*;

    /// Nobody answers; counts who waits for an answer.
    #[derive(Default)]
    struct Silent {
        waiting: AtomicUsize,
        peak: AtomicUsize,
        asked: AtomicUsize,
    }

    struct Way(Arc<Silent>);

    impl Connector for Way {
        fn name(&self) -> &str {
            "silent"
        }

        fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, transport::Error>> {
            struct Leave(Arc<Silent>);
            impl Drop for Leave {
                fn drop(&mut self) {
                    self.0.waiting.fetch_sub(1, Ordering::SeqCst);
                }
            }
            async move {
                self.0.asked.fetch_add(1, Ordering::SeqCst);
                let now = self.0.waiting.fetch_add(1, Ordering::SeqCst) + 1;
                self.0.peak.fetch_max(now, Ordering::SeqCst);
                let _leave = Leave(Arc::clone(&self.0));
                std::future::pending().await
            }
            .boxed()
        }
    }

    #[tokio::test]
    async fn a_large_cluster_is_asked_in_turns_and_not_for_ever() {
        let hosts: Vec<_> = (0..400)
            .map(|number| format!("{{ip: 10.0.{}.{}}}", number / 200, number % 200 + 1))
            .collect();
        let text = format!(
            "cluster-id: demo\nnetwork: {{podcidr: 10.240.0.0/12}}\nmasters: [{{ip: 10.9.9.9}}]\nworkers: [{}]\n",
            hosts.join(", ")
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        let rendered = reading.diagnostics.render(false);
        let cluster = reading.cluster.unwrap_or_else(|| panic!("{rendered}"));
        let silent = Arc::<Silent>::default();
        let machines: Machines = cluster
            .machines()
            .iter()
            .map(|node| {
                let way = Arc::new(Way(Arc::clone(&silent)));
                let nobody = crate::state::nobody(&cluster.id);
                let machine = Machine::new(way, Privilege::Root, nobody);
                (node.name.clone(), Arc::new(machine))
            })
            .collect();
        let managed = ask_all(&cluster, &machines, Duration::from_millis(40)).await;
        assert_eq!(managed.len(), 0);
        assert_eq!(silent.peak.load(Ordering::SeqCst), PARALLEL);
        // Seven turns would be needed, and there was time for four.
        let asked = silent.asked.load(Ordering::SeqCst);
        assert!(asked < machines.len(), "{asked}");
    }

    #[test]
    fn the_first_certificate_to_end_counts() {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000);
        let ca = Authority::new("kubernetes", AUTHORITY_LIFETIME, now).unwrap();
        let leaf = ca.issue(&Request::client("x"), now).unwrap();
        let resource = |text: Option<&str>| ManagedResource {
            key: hatchery_host::script::RecordKey::parse("k").unwrap(),
            kind: "file".into(),
            name: "/x.crt".into(),
            state: None,
            size: None,
            put: None,
            text: text.map(Into::into),
            owners: Vec::new(),
        };
        let managed = Managed {
            cluster: None,
            resources: vec![
                resource(None),
                resource(Some(ca.cert_pem())),
                resource(Some(&leaf.cert_pem)),
                resource(Some("no certificate")),
            ],
        };
        let end = first_end(&[Managed::default(), managed]).unwrap();
        assert!((end - (now + LEAF_LIFETIME)).abs() <= time::Duration::days(1));
        assert_eq!(first_end(&[Managed::default()]), None);
    }
}
