//! Which machines can be left out when they do not answer.

use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role},
};

use crate::{
    finding::Finding,
    observed::{ETCD, Observed},
    state::Claim,
};

/// What stands against going on without the machines that did not answer. The others can do without workers always; without
/// any other machine once the cluster is made, as long as etcd has a majority and there is a master. A cluster is made when
/// its control plane was begun (`formed`): before that some members may not have begun with the others, and could not be
/// told from emptied ones later. A balancer that has never been set up is needed too: all nodes would be moved to it.
pub(super) fn needed(
    cluster: &Cluster,
    observed: &Observed,
    formed: bool,
    claims: &[Claim],
) -> Option<Finding> {
    let answers = |node: &&Machine| observed.facts(&node.name).is_some();
    let members = cluster.etcds().len();
    let running = cluster
        .etcds()
        .filter(|node| has_etcd(observed, node))
        .count();
    let masters = cluster.masters().filter(answers).count();
    if formed && 2 * running > members && masters > 0 {
        return new_balancer(cluster, observed, claims);
    }
    let is_worker = |node: &Machine| node.roles.iter().all(|role| *role == Role::Worker);
    let machines = cluster.machines().iter();
    let needed = machines.filter(|node| !answers(node) && !is_worker(node));
    let needed: Vec<_> = needed.map(|node| node.name.to_string()).collect();
    if needed.is_empty() {
        return None;
    }
    let (why, remedy) = if !formed {
        (
            "a cluster is made with all its masters, etcd members and its load balancer".to_owned(),
            "make sure that it answers and run again, or take it out of the deploy file",
        )
    } else {
        (
            format!(
                "{running} of {members} etcd members and {masters} of {} masters are there; \
                 more than half of the members and one master have to be",
                cluster.masters().len()
            ),
            "make sure that it answers, and run again",
        )
    };
    Some(Finding {
        machines: needed,
        ..Finding::error("needed", format!("cannot be left out: {why}"), remedy)
    })
}

/// A load balancer that does not answer and was none of the cluster's before.
fn new_balancer(cluster: &Cluster, observed: &Observed, claims: &[Claim]) -> Option<Finding> {
    let is_balancer = |node: &&Machine| node.is(Role::LoadBalancer);
    let node = cluster.machines().iter().find(is_balancer)?;
    let served =
        |claim: &Claim| claim.address == node.address && claim.roles.contains(&Role::LoadBalancer);
    if observed.facts(&node.name).is_some() || claims.iter().any(served) {
        return None;
    }
    Some(Finding {
        machines: vec![node.name.to_string()],
        ..Finding::error(
            "needed",
            "cannot be left out: it is to become the load balancer, to which all nodes would be moved",
            "make sure that it answers and run again, or keep the former load balancer in the deploy file",
        )
    })
}

/// Whether an earlier run made the machine a member.
fn has_etcd(observed: &Observed, node: &Machine) -> bool {
    let managed = observed.managed(&node.name);
    let mut resources = managed.into_iter().flat_map(|managed| &managed.resources);
    resources.any(|resource| resource.kind == "unit" && resource.name == ETCD)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use hatchery_host::{
        facts,
        machine::{Error, Managed, ManagedResource},
    };
    use hatchery_spec::{Input, read};

    use super::*;
    use crate::preflight::Reply;

    const FILE: &str = "cluster-id: ha
loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}
masters: [{name: m0, ip: 192.168.0.1}, {name: m1, ip: 192.168.0.2}, {name: m2, ip: 192.168.0.3}]
workers: [{name: w0, ip: 192.168.0.4}]
";

    /// Machines are `silent`, `bare`, or have `etcd`.
    fn missing(file: &str, said: &str) -> Result<Vec<String>, String> {
        // A cluster in which somebody has etcd is made, unless it is said otherwise.
        missing_when(file, said, said.contains(":etcd"))
    }

    fn missing_when(file: &str, said: &str, formed: bool) -> Result<Vec<String>, String> {
        missing_beside(file, said, formed, file)
    }

    /// The machines of `claimed` are the cluster's already.
    fn missing_beside(
        file: &str,
        said: &str,
        formed: bool,
        claimed: &str,
    ) -> Result<Vec<String>, String> {
        let cluster = |file: &str| {
            let reading = read(Input::private("deploy.yaml", file.as_bytes()));
            reading.cluster.unwrap()
        };
        let claims = Claim::on_all(&cluster(claimed));
        let cluster = cluster(file);
        let facts = include_bytes!("../../../host/src/facts/answers/debian.txt");
        let facts = facts::parse(facts, UNIX_EPOCH, UNIX_EPOCH).unwrap();
        let etcd = ManagedResource {
            key: hatchery_host::script::RecordKey::parse("k").unwrap(),
            kind: "unit".into(),
            name: "etcd.service".into(),
            state: None,
            size: None,
            put: None,
            text: None,
            owners: vec!["etcd".into()],
        };
        let reply = |node: &Machine| -> Reply {
            let said = said.split(' ').find_map(|word| {
                let (name, what) = word.split_once(':')?;
                (name == node.name.as_str()).then_some(what)
            });
            let resources = match said.unwrap() {
                "silent" => {
                    return Err(Error::Deadline {
                        host: node.name.to_string(),
                        after: Duration::ZERO,
                        step: String::new(),
                    });
                }
                "etcd" => vec![etcd.clone()],
                _ => Vec::new(),
            };
            let managed = Managed {
                cluster: None,
                resources,
            };
            Ok((facts.clone(), managed))
        };
        let replies = cluster.machines().iter();
        let observed = Observed::new(replies.map(|node| (node.name.clone(), reply(node))));
        let silent = observed.silent(&cluster);
        match needed(&cluster, &observed, formed, &claims) {
            None => Ok(silent.iter().map(|node| node.name.to_string()).collect()),
            Some(finding) => {
                let machines = finding.machines.join(",");
                Err(format!("{machines}: {}", finding.message))
            }
        }
    }

    #[test]
    fn a_worker_is_left_out_at_any_time() {
        let said = "m0:bare m1:bare m2:bare w0:silent lb:bare";
        assert_eq!(missing(FILE, said).unwrap(), ["w0"]);
    }

    #[test]
    fn all_others_have_to_be_there_when_a_cluster_is_made() {
        let said = "m0:bare m1:silent m2:bare w0:silent lb:silent";
        let needed = missing(FILE, said).unwrap_err();
        assert!(
            needed.starts_with("m1,lb: cannot be left out: a cluster is made with all"),
            "{needed}"
        );
    }

    #[test]
    fn a_cluster_that_is_made_goes_on_with_a_majority() {
        let said = "m0:silent m1:etcd m2:etcd w0:bare lb:silent";
        assert_eq!(missing(FILE, said).unwrap(), ["m0", "lb"]);
        let needed = missing(FILE, "m0:silent m1:silent m2:etcd w0:silent lb:bare").unwrap_err();
        assert!(
            needed.starts_with("m0,m1: cannot be left out: 1 of 3 etcd members and 1 of 3 masters"),
            "{needed}"
        );
        // A member that was never made one is no help.
        missing(FILE, "m0:silent m1:bare m2:etcd w0:bare lb:bare").unwrap_err();
    }

    #[test]
    fn nodes_are_not_moved_to_a_balancer_that_does_not_answer() {
        let said = "m0:etcd m1:etcd m2:etcd w0:bare lb:silent";
        for other in [
            "",
            "loadbalance: {name: lb, ip: 192.168.0.8, bind-port: 8443}\n",
        ] {
            let before = FILE.replace(
                "loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}\n",
                other,
            );
            let needed = missing_beside(FILE, said, true, &before).unwrap_err();
            assert!(needed.starts_with("lb: cannot be left out"), "{needed}");
        }
        // One that serves them already takes nothing along when it is away.
        assert_eq!(missing_beside(FILE, said, true, FILE).unwrap(), ["lb"]);
    }

    #[test]
    fn a_majority_does_not_make_a_cluster_without_a_control_plane() {
        let said = "m0:silent m1:etcd m2:etcd w0:bare lb:bare";
        let needed = missing_when(FILE, said, false).unwrap_err();
        assert!(
            needed.starts_with("m0: cannot be left out: a cluster is made with all"),
            "{needed}"
        );
    }

    #[test]
    fn there_has_to_be_a_master() {
        let file = "cluster-id: ha
etcds: [{name: e0, ip: 192.168.0.1}, {name: e1, ip: 192.168.0.2}, {name: e2, ip: 192.168.0.3}]
masters: [{name: m0, ip: 192.168.0.4}]
workers: [{name: m0, ip: 192.168.0.4}]
";
        assert_eq!(
            missing(file, "e0:etcd e1:silent e2:etcd m0:bare").unwrap(),
            ["e1"]
        );
        let needed = missing(file, "e0:etcd e1:etcd e2:etcd m0:silent").unwrap_err();
        assert!(
            needed.contains("3 of 3 etcd members and 0 of 1 masters"),
            "{needed}"
        );
    }
}
