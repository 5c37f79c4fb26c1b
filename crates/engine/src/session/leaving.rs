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

/// Why a machine is part of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It was claimed as a master or etcd member, and these do not leave.
    ControlPlane,
    /// The latest file names it.
    Named {
        /// Under this name.
        machine: String,
    },
}

/// Why a machine is part of a cluster; nothing when it has left it.
pub(super) fn part(latest: &Cluster, claims: &[Claim], machine: &Machine) -> Option<Part> {
    let is_needed = |claim: &Claim| claim.has(Role::Master) || claim.has(Role::Etcd);
    let mut claims = claims.iter();
    if claims.any(|claim| claim.address == machine.address && is_needed(claim)) {
        return Some(Part::ControlPlane);
    }
    let mut machines = latest.machines().iter();
    let named = machines.find(|one| one.address == machine.address)?;
    Some(Part::Named {
        machine: named.name.to_string(),
    })
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
    fn a_machine_has_left_when_the_latest_file_does_not_name_it() {
        let first = cluster("{name: w0, ip: 10.0.0.2}, {name: w1, ip: 10.0.0.3}");
        let claims = Claim::on_all(&first);
        let fewer = cluster("{name: w0, ip: 10.0.0.2}");
        let part = |latest: &Cluster, name: &str| {
            let machine = first
                .machines()
                .iter()
                .find(|one| one.name.as_str() == name);
            part(latest, &claims, machine.unwrap())
        };
        let named = |machine: &str| {
            Some(Part::Named {
                machine: machine.into(),
            })
        };
        assert_eq!(part(&fewer, "w1"), None);
        assert_eq!(part(&fewer, "w0"), named("w0"));
        assert_eq!(part(&first, "w1"), named("w1"));
        let renamed = cluster("{name: w9, ip: 10.0.0.3}");
        assert_eq!(part(&renamed, "w1"), named("w9"));
        assert_eq!(part(&fewer, "m0"), Some(Part::ControlPlane));
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
