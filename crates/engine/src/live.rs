//! What a cluster is like at this moment: whether its API answers, its nodes, and until when its certificates last.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use hatchery_host::{
    machine::{Machine, Managed},
    script::Identity,
    transport::ssh::Patience,
};
use hatchery_pki::expiry;
use hatchery_spec::Cluster;
use serde::Serialize;
use time::OffsetDateTime;
use tokio::time::timeout;

use crate::{
    api::Api,
    authorities::Authorities,
    reach::{self, Surroundings},
    run::Run,
};

/// What was found out; what could not be is left open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
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

/// Asks the machines and the API of a cluster, all at once, for no longer than this.
///
/// # Errors
/// What is missing on the control machine.
pub async fn look(
    cluster: &Cluster,
    identity: &Identity,
    authorities: Option<&Authorities>,
    surroundings: &Surroundings,
    deadline: Duration,
) -> Result<Live, Vec<reach::Error>> {
    let patience = Patience {
        connect: deadline,
        handshake: deadline,
        authentication: deadline,
        ..Patience::default()
    };
    let machines = reach::machines(cluster, identity, surroundings, &patience)?;
    let machines: Vec<_> = machines.into_iter().map(Arc::new).collect();
    let asking = join_all(machines.iter().map(|machine| managed(machine, deadline)));
    let api = async {
        match authorities {
            None => Err("the cluster has no authorities yet".to_owned()),
            Some(authorities) => {
                let nobody = [];
                let tell = |_| ();
                let run = Run::new(cluster, &machines, &nobody, authorities, 1, &tell);
                match timeout(deadline, ask(&run)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(format!("no answer within {} s", deadline.as_secs())),
                }
            }
        }
    };
    let (managed, answer) = tokio::join!(asking, api);
    // Saying goodbye may take no longer.
    let goodbye = join_all(machines.iter().map(|machine| machine.disconnect()));
    let _ = timeout(Duration::from_secs(1), goodbye).await;
    let managed: Vec<_> = managed.into_iter().flatten().collect();
    let mut live = Live {
        reached: managed.len(),
        certificates_until: first_end(&managed).or_else(|| {
            let authority = authorities?;
            expiry(authority.cluster.cert_pem()).ok()
        }),
        ..Live::default()
    };
    match answer {
        Ok((version, ready, nodes)) => {
            (live.kubernetes, live.ready, live.nodes) = (Some(version), ready, nodes);
        }
        Err(reason) => live.silence = Some(reason),
    }
    Ok(live)
}

async fn managed(machine: &Machine, deadline: Duration) -> Option<Managed> {
    let answer = timeout(deadline, machine.facts(deadline)).await;
    answer.ok()?.ok().map(|(_, managed)| managed)
}

/// Version, nodes that are ready, and all nodes.
async fn ask(run: &Run<'_>) -> Result<(String, usize, usize), String> {
    let api: &Api = run.api(&|_| ()).await.map_err(|error| error.to_string())?;
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
    use hatchery_host::machine::ManagedResource;
    use hatchery_pki::{AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME, Request};

    use super::*;

    #[test]
    fn the_first_certificate_to_end_counts() {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000);
        let ca = Authority::new("kubernetes", AUTHORITY_LIFETIME, now).unwrap();
        let leaf = ca.issue(&Request::client("x"), now).unwrap();
        let resource = |text: Option<&str>| ManagedResource {
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
