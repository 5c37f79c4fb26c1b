//! Which machines a file takes out of a cluster that has them.

use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role},
};

use crate::state::{Claim, deploy_file::claimed_machine};

/// The machines that were claimed for a cluster and that its file no longer names, as earlier files say how they are reached.
/// Only workers and load balancers can leave; masters, etcd members, and machines that merely got another name or address
/// are not among them.
pub(super) fn leaving(wanted: &Cluster, claims: &[Claim], earlier: &[Cluster]) -> Vec<Machine> {
    let stays = |claim: &&Claim| {
        let mut machines = wanted.machines().iter();
        machines.any(|one| one.address == claim.address || one.name.as_str() == claim.name)
    };
    let may_leave = |claim: &&Claim| !claim.has(Role::Master) && !claim.has(Role::Etcd);
    let leaving = claims
        .iter()
        .filter(|claim| !stays(claim))
        .filter(may_leave);
    leaving
        .filter_map(|claim| claimed_machine(claim, earlier).cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::slice;

    use hatchery_spec::{Input, read};

    use super::*;

    fn cluster(workers: &str) -> Cluster {
        let text = format!(
            "cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: [{workers}]\n"
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        reading.cluster.unwrap()
    }

    #[test]
    fn workers_leave_when_an_earlier_file_says_how_they_are_reached() {
        let first = cluster("{name: w0, ip: 10.0.0.2}, {name: w1, ip: 10.0.0.3, user: ops}");
        let claims = Claim::on_all(&first);
        let leave = |wanted: &Cluster, earlier: &[Cluster]| {
            let machines = leaving(wanted, &claims, earlier);
            let machines = machines.into_iter();
            machines
                .map(|one| format!("{} {}", one.name, one.access.user))
                .collect::<Vec<_>>()
        };
        let fewer = cluster("{name: w0, ip: 10.0.0.2}");
        assert_eq!(leave(&first, slice::from_ref(&first)), [""; 0]);
        assert_eq!(leave(&fewer, slice::from_ref(&first)), ["w1 ops"]);
        // The file in between named it no more, and that run did not come to its end.
        assert_eq!(leave(&fewer, &[fewer.clone(), first.clone()]), ["w1 ops"]);
        assert_eq!(leave(&fewer, slice::from_ref(&fewer)), [""; 0]);
        // A machine with another name or address is not one that leaves.
        let renamed = cluster("{name: w0, ip: 10.0.0.2}, {name: w9, ip: 10.0.0.3}");
        let moved = cluster("{name: w0, ip: 10.0.0.2}, {name: w1, ip: 10.0.0.9}");
        for changed in [renamed, moved] {
            assert_eq!(leave(&changed, slice::from_ref(&first)), [""; 0]);
        }
    }

    #[test]
    fn masters_and_members_do_not_leave() {
        let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.4}]\n\
            etcds: [{name: m0, ip: 10.0.0.1}, {name: e1, ip: 10.0.0.5}]\n";
        let first = read(Input::private("deploy.yaml", text.as_bytes()));
        let first = first.cluster.unwrap();
        assert_eq!(leaving(&cluster(""), &Claim::on_all(&first), &[first]), []);
    }
}
