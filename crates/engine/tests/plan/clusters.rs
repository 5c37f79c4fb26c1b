//! What is planned for clusters of each shape and each dialect.

use std::{fs, path::Path};

use hatchery_engine::{
    package::Installation,
    plan::{ApiWork, Concurrency, Lane, Plan, Work},
    wanted::Wanted,
};
use hatchery_host::machine::{Managed, ManagedResource};
use hatchery_pki::{AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME, Request};
use hatchery_spec::{
    Cluster, Input,
    cluster::{Machine, Role},
    inventory,
};
use time::Duration;

use super::{ground, text};

fn planned(text: &str) -> Plan {
    plan_of(&ground::cluster(text))
}

fn plan_of(cluster: &Cluster) -> Plan {
    let plan = ground::plan(
        cluster,
        &ground::versions("1.37.0"),
        &ground::real_machine(),
    );
    hold(&plan);
    plan
}

/// What is true of every plan: tasks stand behind what they need, and no machine has two tasks of one name.
fn hold(plan: &Plan) {
    let mut titles = std::collections::BTreeSet::new();
    for (number, task) in plan.tasks.iter().enumerate() {
        assert!(
            task.needs.iter().chain(&task.after).all(|id| id.0 < number),
            "{task} needs what comes later"
        );
        assert!(titles.insert(task.to_string()), "{task} twice");
    }
}

const NETWORK: &str = "network: {plugin: flannel}\nruntime: containerd\n";

#[test]
fn one_master_and_one_worker() {
    let plan = planned(&format!(
        "cluster-id: small\n{NETWORK}masters: [{{name: m0, ip: 192.168.0.1}}]\n\
         workers: [{{name: w0, ip: 192.168.0.2}}]\n"
    ));
    insta::assert_snapshot!(text::short(&plan));
}

#[test]
fn everything_on_one_machine() {
    let plan = planned(&format!(
        "cluster-id: one\n{NETWORK}service: {{dns: {{corednstype: pod}}}}\n\
         masters: [{{name: m0, ip: 192.168.0.1}}]\nworkers: [{{name: m0, ip: 192.168.0.1}}]\n"
    ));
    insta::assert_snapshot!(text::short(&plan));
    // Pods have nowhere else to go.
    let nodes: Vec<_> = plan
        .tasks
        .iter()
        .filter_map(|task| match &task.work {
            Work::Api(ApiWork::Node(node)) => Some(node),
            _ => None,
        })
        .collect();
    assert!(!nodes.is_empty() && nodes.iter().all(|node| node.taints.is_empty()));
}

const HIGHLY_AVAILABLE: &str = "cluster-id: ha
runtime: containerd
network: {plugin: flannel}
loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}
masters:
- {name: m0, ip: 192.168.0.1}
- {name: m1, ip: 192.168.0.2}
- {name: m2, ip: 192.168.0.3}
workers:
- {name: m0, ip: 192.168.0.1}
- {name: m1, ip: 192.168.0.2}
- {name: m2, ip: 192.168.0.3}
- {name: w0, ip: 192.168.0.4}
- {name: w1, ip: 192.168.0.5}
";

#[test]
fn highly_available() {
    insta::assert_snapshot!(text::short(&planned(HIGHLY_AVAILABLE)));
}

#[test]
fn etcd_on_machines_of_its_own() {
    let plan = planned(&format!(
        "cluster-id: apart\n{NETWORK}masters: [{{name: m0, ip: 192.168.0.1}}]\n\
         workers: [{{name: w0, ip: 192.168.0.2}}]\n\
         etcds: [{{name: e0, ip: 192.168.0.3}}, {{name: e1, ip: 192.168.0.4}}, {{name: e2, ip: 192.168.0.5}}]\n"
    ));
    insta::assert_snapshot!(text::short(&plan));
}

#[test]
fn masters_that_run_no_pods() {
    let plan = planned(&format!(
        "cluster-id: apart\n{NETWORK}masters: [{{name: m0, ip: 192.168.0.1}}, {{name: m1, ip: 192.168.0.2}}]\n\
         workers: [{{name: w0, ip: 192.168.0.3, labels: {{disk: ssd}}, taints: ['gpu=yes:NoSchedule']}}]\n"
    ));
    insta::assert_snapshot!(text::short(&plan));
}

#[test]
fn no_workers_at_all() {
    let plan = planned(&format!(
        "cluster-id: masters\n{NETWORK}masters: [{{name: m0, ip: 192.168.0.1}}]\nworkers: []\n"
    ));
    insta::assert_snapshot!(text::short(&plan));
}

#[test]
fn both_families_of_addresses() {
    let plan = planned(
        "cluster-id: dual\nruntime: containerd\nmasters: [{name: m0, ip: 'fd00::1'}]\n\
         workers: [{name: w0, ip: 'fd00::2'}]\n\
         service: {cidr: 'fd00:1::/112,10.32.0.0/16'}\n\
         network: {plugin: flannel, podcidr: 'fd00:2::/56,10.244.0.0/16'}\n",
    );
    insta::assert_snapshot!(text::short(&plan));
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    fs::read_to_string(path).unwrap()
}

/// Runtimes have tests of their own.
fn with_containerd(text: &str) -> String {
    text.replace("runtime: docker", "runtime: containerd")
        .replace("runtime: iSulad", "runtime: containerd")
        .replace("runtime-endpoint: unix:///var/run/isulad.sock\n", "")
}

#[test]
fn the_manuals_dialect() {
    let text = with_containerd(&example("classic.yaml"));
    insta::assert_snapshot!(text::short(&planned(&text)));
}

#[test]
fn mixed_processors_in_the_current_dialect() {
    insta::assert_snapshot!(text::short(&planned(&example("offline.yaml"))));
}

#[test]
fn packages_of_repositories() {
    let text = with_containerd(&example("online.yaml"));
    insta::assert_snapshot!(text::short(&planned(&text)));
}

#[test]
fn an_inventory() {
    let (hosts, vars) = (
        example("inventory/hosts.yml"),
        example("inventory/group_vars.yml"),
    );
    let reading = inventory::read(inventory::Files {
        hosts: Input::private("hosts.yml", hosts.as_bytes()),
        vars: Some(Input::private("group_vars.yml", vars.as_bytes())),
        id: None,
    });
    let said = reading.diagnostics.render(false);
    let cluster = reading.cluster.unwrap_or_else(|| panic!("{said}"));
    insta::assert_snapshot!(text::short(&plan_of(&cluster)));
}

/// The user's scripts: in their time, on the machines of their role, with nothing secret.
#[test]
fn scripts_of_the_user() {
    let plan = planned(&format!(
        "cluster-id: small\n{NETWORK}masters: [{{name: m0, ip: 192.168.0.1}}]\nworkers: [{{name: w0, ip: 192.168.0.2}}]\n\
         install:\n  package-source: {{srcpath: {{amd64: /opt/a.tar.gz}}}}\n  addition:\n    master:\n\
         \x20   - {{name: 'sub dir/odd name.sh', type: shell, schedule: prejoin}}\n\
         \x20   - {{name: 'save.sh,more.sh', type: shell, schedule: precleanup, timeout: 1m}}\n\
         \x20   - {{name: last.sh, type: shell, schedule: postcleanup}}\n\
         \x20   worker: [{{name: hello.sh, type: shell, schedule: postjoin}}]\n"
    ));
    // Each task and what of it is about scripts.
    let text = text::full(&plan);
    let (tasks, contents) = text.split_once("=== ").unwrap();
    let tasks = tasks
        .lines()
        .filter(|line| line.starts_with('#') || line.contains("/hooks/") || line.contains("step "));
    let contents = contents.split("\n=== ").filter(|part| {
        let name = part.lines().next().unwrap_or_default();
        ["join", "cleanup"].iter().any(|word| name.contains(word))
    });
    let shown: Vec<_> = tasks.chain(contents).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// The plan for a cluster of which one machine did not answer, and the titles of the tasks that are gone with it.
fn without(name: &str) -> (Plan, Vec<String>) {
    let cluster = ground::cluster(HIGHLY_AVAILABLE);
    let (versions, facts) = (ground::versions("1.37.0"), ground::real_machine());
    let observed = ground::observed(&cluster, &facts, &[]);
    let present = cluster.machines().iter();
    let present = present.filter(|node| node.name.as_str() != name);
    let wanted = Wanted {
        installations: present
            .map(|node| (node.name.clone(), Installation::default()))
            .collect(),
        cluster: cluster.clone(),
        versions,
        manifests: Vec::new(),
        images: Vec::new(),
    };
    let plan = hatchery_engine::plan::make(&wanted, &observed, ground::NOW).unwrap();
    hold(&plan);
    let gone = planned(HIGHLY_AVAILABLE).tasks.into_iter();
    let gone = gone
        .map(|task| task.to_string())
        .filter(|title| plan.tasks.iter().all(|other| other.to_string() != *title))
        .collect();
    (plan, gone)
}

#[test]
fn a_machine_that_did_not_answer_is_left_out() {
    let (plan, gone) = without("w1");
    assert_eq!(
        gone,
        [
            "w1: prepare",
            "w1: pods",
            "w1: runtime",
            "w1: worker",
            "w1: node ready"
        ]
    );
    assert!(!text::short(&plan).contains("w1"));
}

#[test]
fn without_the_first_master_the_second_one_leads_to_the_api() {
    let (plan, gone) = without("m0");
    assert!(
        gone.iter().all(|title| title.starts_with("m0: ")),
        "{gone:?}"
    );
    let find = |title: &str| plan.tasks.iter().position(|task| task.to_string() == title);
    let second = find("m1: master").unwrap();
    let api = &plan.tasks[find("API ready").unwrap()];
    assert_eq!(
        api.needs.iter().map(|id| id.0).collect::<Vec<_>>(),
        [second]
    );
}

#[test]
fn without_the_load_balancer_nobody_waits_for_nodes() {
    let (plan, gone) = without("lb");
    let expected = ["lb: prepare", "lb: load-balancer"];
    let (gone, waits): (Vec<_>, Vec<_>) = gone
        .into_iter()
        .partition(|title| title.starts_with("lb: "));
    assert_eq!(gone, expected);
    assert_eq!(waits.len(), 6, "{waits:?}");
    assert!(
        waits.iter().all(|title| title.ends_with(" ready")),
        "{waits:?}"
    );
    assert!(plan.notes[0].contains("without the load balancer lb"));
}

/// What machines have of ours on which these services run, except on some.
fn running(cluster: &Cluster, stopped: &[&str]) -> Vec<Managed> {
    let unit = |name: &str, machine: &Machine| {
        let is_stopped = stopped.contains(&machine.name.as_str());
        let state = if is_stopped {
            "inactive,enabled"
        } else {
            "active,enabled"
        };
        ManagedResource {
            key: hatchery_host::script::RecordKey::parse("k").unwrap(),
            kind: "unit".into(),
            name: name.into(),
            state: Some(state.into()),
            size: None,
            put: None,
            text: None,
            owners: Vec::new(),
        }
    };
    let managed = |machine: &Machine| {
        let mut resources = Vec::new();
        if machine.is(Role::Etcd) {
            resources.push(unit("etcd.service", machine));
        }
        if machine.is(Role::Master) {
            resources.push(unit("kube-apiserver.service", machine));
        }
        Managed {
            cluster: None,
            resources,
        }
    };
    cluster.machines().iter().map(managed).collect()
}

fn planned_for(stopped: &[&str]) -> Plan {
    planned_of(HIGHLY_AVAILABLE, stopped)
}

fn planned_of(text: &str, stopped: &[&str]) -> Plan {
    let cluster = ground::cluster(text);
    let managed = running(&cluster, stopped);
    planned_from(&cluster, &managed)
}

fn planned_from(cluster: &Cluster, managed: &[Managed]) -> Plan {
    let (versions, facts) = (ground::versions("1.37.0"), ground::real_machine());
    let plan = ground::plan_for(cluster, &versions, &facts, managed);
    hold(&plan);
    plan
}

/// A member that is restarted with a new certificate hears nothing from members whose own have ended.
#[test]
fn members_whose_certificates_have_ended_get_new_ones_together() {
    let cluster = ground::cluster(HIGHLY_AVAILABLE);
    let authority = Authority::new("etcd-ca", AUTHORITY_LIFETIME, ground::NOW).unwrap();
    let lane = Concurrency::OneByOne(Lane::Etcd);
    for (ended, expected) in [
        (0, [lane; 3]),
        // The others are a majority.
        (1, [lane; 3]),
        (2, [Concurrency::Together, Concurrency::Together, lane]),
        (3, [Concurrency::Together; 3]),
    ] {
        let mut managed = running(&cluster, &[]);
        for (place, one) in managed.iter_mut().take(3).enumerate() {
            let begin = match place < ended {
                true => ground::NOW - Duration::days(366),
                false => ground::NOW - Duration::days(30),
            };
            let request = Request::server_and_client("member").with_lifetime(LEAF_LIFETIME);
            let leaf = authority.issue(&request, begin).unwrap();
            one.resources.push(ManagedResource {
                key: hatchery_host::script::RecordKey::parse("k").unwrap(),
                kind: "file".into(),
                name: "/etc/kubernetes/pki/etcd/peer.crt".into(),
                state: None,
                size: None,
                put: None,
                text: Some(leaf.cert_pem),
                owners: Vec::new(),
            });
        }
        let plan = planned_from(&cluster, &managed);
        let members = plan.tasks.iter();
        let members = members.filter(|task| task.title == "etcd");
        let mut found: Vec<_> = members
            .map(|task| (task.to_string(), task.concurrency))
            .collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let found: Vec<_> = found.into_iter().map(|(_, how)| how).collect();
        assert_eq!(found, expected, "{ended}");
    }
}

/// Only what waits for what.
fn order(plan: &Plan) -> String {
    let text = text::short(plan);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    lines.join("\n")
}

#[test]
fn a_cluster_that_lives_is_changed_one_machine_after_the_other() {
    insta::assert_snapshot!(order(&planned_for(&[])));
    // When it is made, nobody waits for a turn.
    let made = planned(HIGHLY_AVAILABLE);
    assert!(
        made.tasks
            .iter()
            .all(|task| !task.concurrency.is_one_by_one())
    );
    let together = made
        .tasks
        .iter()
        .filter(|task| task.concurrency == Concurrency::Together);
    assert_eq!(together.count(), 3);
}

/// What a package's script does to the service is done to one machine at a time.
#[test]
fn packages_come_to_running_members_one_by_one() {
    let install = "install: {etcd: [{name: etcd, type: repo}], kubernetes-master: [{name: kubernetes-master, type: repo}]}\n";
    let of_repository = format!("{HIGHLY_AVAILABLE}{install}");
    let separate = of_repository.clone() + "etcds: [{name: e0, ip: 192.168.0.6}]\n";
    for (text, stopped, lane) in [
        (&of_repository, &[][..], Some(Lane::Etcd)),
        (&of_repository, &["m0"][..], None),
        (&separate, &[][..], Some(Lane::ControlPlane)),
    ] {
        let plan = planned_of(text, stopped);
        let of = |title: &str| {
            let mut tasks = plan.tasks.iter();
            let task = tasks.find(|task| task.to_string() == title)?;
            Some(task.concurrency)
        };
        assert_eq!(
            of("m0: packages"),
            lane.map(Concurrency::OneByOne),
            "{text}"
        );
        assert_eq!(of("m0: prepare"), Some(Concurrency::Free), "{text}");
        assert_eq!(of("w0: packages"), None);
    }
}

#[test]
fn packages_come_to_running_nodes_a_few_at_a_time() {
    let install = "install: {kubernetes-worker: [{name: kubernetes-node, type: repo}]}\n";
    let text = format!("{HIGHLY_AVAILABLE}{install}");
    let cluster = ground::cluster(&text);
    for (state, lane) in [
        ("active,enabled", Some(Lane::Workers)),
        ("inactive,enabled", None),
    ] {
        let mut managed = running(&cluster, &[]);
        for (machine, managed) in cluster.machines().iter().zip(&mut managed) {
            if machine.is(Role::Worker) {
                managed.resources.push(ManagedResource {
                    key: hatchery_host::script::RecordKey::parse("k").unwrap(),
                    kind: "unit".into(),
                    name: "kubelet.service".into(),
                    state: Some(state.into()),
                    size: None,
                    put: None,
                    text: None,
                    owners: Vec::new(),
                });
            }
        }
        let plan = planned_from(&cluster, &managed);
        let mut tasks = plan.tasks.iter();
        let packages = tasks.find(|task| task.to_string() == "w0: packages");
        assert_eq!(
            packages.map(|task| task.concurrency),
            lane.map(Concurrency::OneByOne),
            "{state}"
        );
    }
}

#[test]
fn members_and_masters_that_do_not_run_come_before_the_others_are_restarted() {
    let plan = planned_for(&["m1"]);
    let find = |title: &str| {
        let mut tasks = plan.tasks.iter();
        tasks.position(|task| task.to_string() == title).unwrap()
    };
    let task = |title: &str| &plan.tasks[find(title)];
    let after = |title: &str| task(title).after.iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(task("m1: etcd").concurrency, Concurrency::Together);
    assert_eq!(task("m1: master").concurrency, Concurrency::Free);
    for member in ["m0: etcd", "m2: etcd"] {
        let lane = Concurrency::OneByOne(Lane::Etcd);
        assert_eq!(task(member).concurrency, lane, "{member}");
        assert_eq!(after(member), [find("m1: etcd")], "{member}");
    }
    for master in ["m0: master", "m2: master"] {
        let lane = Concurrency::OneByOne(Lane::ControlPlane);
        assert_eq!(task(master).concurrency, lane, "{master}");
        assert!(after(master).contains(&find("m1: master")), "{master}");
    }
    // When none runs, none can be restarted one by one: they wait for each other.
    let plan = planned_for(&["m0", "m1", "m2"]);
    assert!(
        plan.tasks
            .iter()
            .all(|task| !task.concurrency.is_one_by_one())
    );
}
