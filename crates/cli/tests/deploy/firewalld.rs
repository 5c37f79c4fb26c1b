//! firewalld on the machines of a cluster, as distributions of the rpm kind have it.

use std::{fs, path::Path};

use hatchery_sandbox::lab::Machine;

use crate::{bench::Bench, workload};

/// The machine's interface is in a zone that is not the default one. cloud-init would be there too.
const BEGIN: &str = "systemctl start firewalld && mkdir -p /etc/cloud/cloud.cfg.d && \
    for p in '' --permanent; do firewall-cmd -q $p --zone=internal --change-interface=eth0; done";
/// What acts, what stays, and what is written down. The chains of a zone are made when it is first used and stay until
/// firewalld reads its configuration again.
const STATE: &str = "firewall-cmd --list-all-zones; firewall-cmd --permanent --list-all-zones; firewall-cmd -q --reload; \
     nft list ruleset | sed '/127\\.0\\.0\\.11/d'; find /etc/firewalld -type f | sort | xargs sha256sum";

/// How it is on each machine before anything is deployed.
pub(crate) struct Before(Vec<String>);

pub(crate) async fn begin(bench: &Bench) -> Before {
    let mut states = Vec::new();
    for number in 0..bench.lab.machines.len() {
        bench.inside(number, BEGIN).await;
        bench.inside(number, STATE).await;
        states.push(bench.inside(number, STATE).await);
    }
    Before(states)
}

/// Pods on machines of a cluster that the first machine leads reach each other in every way, also when firewalld has read its
/// configuration again; and nothing was opened in the default zone.
pub(crate) async fn lets_pods_through(bench: &Bench, machines: &[&Machine], image: &str) {
    workload::begin(bench, machines, image).await;
    reach_each_other(bench, machines).await;
    for machine in machines {
        let number = bench
            .lab
            .machines
            .iter()
            .position(|one| one.name == machine.name);
        let number = number.unwrap();
        bench.inside(number, "firewall-cmd -q --reload").await;
        let open = bench
            .inside(number, "firewall-cmd --zone=public --list-ports")
            .await;
        assert_eq!(open.trim(), "");
        let cloud = bench
            .inside(number, "cat /etc/cloud/cloud.cfg.d/99-hatchery.cfg")
            .await;
        assert!(cloud.contains("manage_etc_hosts: false"), "{cloud}");
    }
    reach_each_other(bench, machines).await;
}

/// A port that the file opens on workers, and closes again.
pub(crate) async fn a_port_opens_and_closes(bench: &Bench, file: &Path, machines: &[usize]) {
    let list = "firewall-cmd --zone=internal --list-ports; firewall-cmd --permanent --zone=internal --list-ports";
    let closed = fs::read_to_string(file).unwrap();
    let open = format!("{closed}open-ports: {{worker: [{{port: 8123}}]}}\n");
    for (text, says, count) in [(&open, "new open port", 2), (&closed, "gone open port", 0)] {
        fs::write(file, text).unwrap();
        let lines = machines.iter();
        let lines = lines.map(|number| format!("{number} {says} 8123/tcp"));
        bench.follows(says, file, &lines.collect());
        for number in machines {
            let ports = bench.inside(*number, list).await;
            assert_eq!(ports.matches("8123/tcp").count(), count, "{ports}");
        }
    }
}

/// Inside of the cluster, and from the second machine, which is not in it: the control machine is kept away by the bastion.
async fn reach_each_other(bench: &Bench, machines: &[&Machine]) {
    workload::reach_each_other(bench, machines, "cluster.local").await;
    for url in workload::node_ports(bench, machines).await {
        let ask = format!("curl -sf --max-time 5 {url}");
        let answer = bench.eventually(1, &ask).await;
        assert!(answer.starts_with("trial-"), "{url}: {answer}");
    }
}

/// After cleanup.
pub(crate) async fn is_as_it_was(bench: &Bench, before: &Before) {
    for (number, before) in before.0.iter().enumerate() {
        let now = bench.inside(number, STATE).await;
        assert!(now == *before, "{number}: {before}\n--- now\n{now}");
    }
}
