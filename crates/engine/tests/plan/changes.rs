//! A file that was edited: what a machine has of the earlier one and nobody wants any more is given up, and nothing else.

use std::collections::BTreeMap;

use hatchery_engine::{
    plan::{ApiWork, Plan, Work},
    resource::Resource,
};
use hatchery_host::{
    content::{Content, Hash},
    facts::Address,
    machine::{Managed, ManagedResource},
    operation::{Access, File, Operation},
    path::MachinePath,
    script::RecordKey,
    task::Task as HostTask,
};
use hatchery_spec::Cluster;

use crate::{ground, text};

const FILE: &str = "cluster-id: demo
runtime: containerd
network: {plugin: flannel}
loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}
masters: [{name: m0, ip: 192.168.0.1}]
workers:
- {name: m0, ip: 192.168.0.1}
- {name: w0, ip: 192.168.0.4}
- {name: w1, ip: 192.168.0.5}
open-ports:
  worker: [{port: 111, protocol: tcp}, {port: 112, protocol: udp}]
install:
  package-source: {srcpath: {amd64: packages.tar.gz}}
  addition:
    worker:
    - {name: before.sh, type: shell, schedule: prejoin, timeout: 30s}
    - {name: save.sh, type: shell, schedule: precleanup, timeout: 30s}
";

fn file(path: &MachinePath) -> Operation {
    Operation::File(File {
        path: path.clone(),
        content: Content::known(Hash::digest(b""), 0),
        access: Access::root(0o600).unwrap(),
    })
}

fn operations(resource: &Resource) -> Vec<Operation> {
    match resource {
        Resource::Operation(operation) => vec![operation.clone()],
        Resource::Secret(secret) => vec![file(&secret.path)],
        Resource::Leaf(leaf) => {
            let config = leaf.kubeconfig.as_ref().map(|config| &config.path);
            let paths = [&leaf.certificate, &leaf.key].into_iter().chain(config);
            paths.map(file).collect()
        }
    }
}

/// What the machines of a cluster have when a plan for them is done.
fn done(cluster: &Cluster, plan: &Plan) -> Vec<Managed> {
    let mut machines = BTreeMap::<_, BTreeMap<RecordKey, ManagedResource>>::new();
    for task in &plan.tasks {
        let Work::Machine {
            machine,
            owner,
            resources,
        } = &task.work
        else {
            continue;
        };
        for operation in resources.iter().flat_map(operations) {
            let (kind, name) = match &operation {
                Operation::Unit(unit) => ("unit", unit.name.to_string()),
                other => ("resource", other.title()),
            };
            let task = HostTask::new(owner.word(), vec![operation.clone()]).unwrap();
            for key in task.record_keys() {
                let known = machines.entry(machine).or_default().entry(key.clone());
                let known = known.or_insert_with(|| ManagedResource {
                    key,
                    kind: kind.into(),
                    name: name.clone(),
                    state: (kind == "unit").then(|| "active,enabled".into()),
                    size: None,
                    put: None,
                    text: None,
                    owners: Vec::new(),
                });
                let owner = owner.as_str();
                if !known.owners.iter().any(|one| one == owner) {
                    known.owners.push(owner.to_owned());
                }
            }
        }
    }
    let nodes = cluster.machines().iter();
    let managed = nodes.map(|node| Managed {
        cluster: Some(("c1".into(), "demo".into())),
        resources: machines
            .remove(&node.name)
            .unwrap_or_default()
            .into_values()
            .collect(),
    });
    managed.collect()
}

/// The plan for an edited file, on machines that have what the first one asked for.
fn edited(before: &str, after: &str) -> Plan {
    let (versions, facts) = (ground::versions("1.37.0"), ground::real_machine());
    let first = ground::cluster(before);
    let managed = done(&first, &ground::plan(&first, &versions, &facts));
    let cluster = ground::cluster(after);
    let names = |cluster: &Cluster| {
        let names = cluster.machines().iter().map(|one| one.name.to_string());
        names.collect::<Vec<_>>()
    };
    let mut known: BTreeMap<_, _> = names(&first).into_iter().zip(managed).collect();
    let gone = first.machines().iter();
    let stay = names(&cluster);
    let gone = gone.filter(|one| !stay.contains(&one.name.to_string()));
    let cluster = cluster.with_leaving(gone.cloned());
    let managed = cluster
        .all_machines()
        .map(|one| known.remove(one.name.as_str()).unwrap_or_default());
    ground::plan_for(&cluster, &versions, &facts, &managed.collect::<Vec<_>>())
}

/// What is given up, a line each, and the tasks around it.
fn given_up(plan: &Plan) -> Vec<String> {
    let short = text::short(plan);
    let goes = |title: &str| {
        [": release", ": leave", ": drain", ": delete node"]
            .iter()
            .any(|end| title.contains(end))
    };
    let mut lines = Vec::new();
    let mut inside = false;
    for line in short.lines() {
        if line.starts_with('#') {
            inside = goes(line);
            if inside {
                let title = line.split_once(' ').unwrap().1;
                lines.push(title.split("  needs").next().unwrap().to_owned());
            }
        } else if inside && !line.starts_with("  node ") {
            lines.push(line.to_owned());
        }
    }
    lines
}

#[test]
fn nothing_is_given_up_while_the_file_stays() {
    assert_eq!(given_up(&edited(FILE, FILE)), [""; 0]);
}

#[test]
fn what_the_file_no_longer_asks_for_is_given_up() {
    let without = |part: &str| {
        assert!(FILE.contains(part), "{part}");
        FILE.replace(part, "")
    };
    let port = without(", {port: 112, protocol: udp}");
    for machine in ["m0", "w0", "w1"] {
        let lines = given_up(&edited(FILE, &port));
        assert!(lines.contains(&format!("{machine}: release")), "{lines:?}");
    }
    let lines = given_up(&edited(FILE, &port));
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(lines[1], "  resource open port 112/udp of prepare");

    let script = without("    - {name: before.sh, type: shell, schedule: prejoin, timeout: 30s}\n");
    let lines = given_up(&edited(FILE, &script));
    let of_prejoin = lines.iter().filter(|line| line.ends_with(" of prejoin"));
    assert_eq!(of_prejoin.count() + 3, lines.len(), "{lines:#?}");
}

/// Scripts for the way back that are dropped must not run because they are.
#[test]
fn a_dropped_script_of_the_way_back_is_replaced_by_none() {
    let script = FILE.replace(
        "    - {name: save.sh, type: shell, schedule: precleanup, timeout: 30s}\n",
        "",
    );
    let plan = edited(FILE, &script);
    let lines = given_up(&plan);
    // The file and its directory.
    assert_eq!(lines.len(), 9, "{lines:#?}");
    assert!(
        lines[1].contains("/hooks/precleanup/save.sh of keep-precleanup"),
        "{lines:#?}"
    );
    let kept = plan
        .tasks
        .iter()
        .filter(|task| task.title == "keep-precleanup");
    assert_eq!(kept.count(), 3);
}

#[test]
fn a_worker_that_leaves_is_drained_cleaned_and_deleted() {
    let fewer = FILE.replace("- {name: w1, ip: 192.168.0.5}\n", "");
    assert_eq!(
        given_up(&edited(FILE, &fewer)),
        ["w1: drain", "w1: delete node", "w1: leave"]
    );
    // What is on the machine goes last: it alone tells that something is left to do.
    let plan = edited(FILE, &fewer);
    assert_eq!(needs(&plan, "w1: leave"), ["w1: scripts before cleanup"]);
    assert_eq!(
        needs(&plan, "w1: scripts before cleanup"),
        ["w1: delete node"]
    );
    assert_eq!(needs(&plan, "w1: delete node"), ["w1: drain"]);
    assert_eq!(needs(&plan, "w1: drain"), ["API ready"]);
    // Pods have somewhere to go before they have to.
    let other = FILE.replace("w1, ip: 192.168.0.5", "w2, ip: 192.168.0.6");
    let plan = edited(FILE, &other);
    assert_eq!(needs(&plan, "w1: drain"), ["API ready", "w2: node ready"]);
}

/// What a task waits for to succeed.
fn needs(plan: &Plan, title: &str) -> Vec<String> {
    let mut tasks = plan.tasks.iter();
    let task = tasks.find(|task| task.to_string() == title);
    let task = task.unwrap_or_else(|| panic!("no {title} in {}", text::short(plan)));
    let needs = task.needs.iter().map(|id| plan.tasks[id.0].to_string());
    needs.collect()
}

#[test]
fn dns_in_pods_is_there_before_the_service_goes() {
    let service = FILE.replace(
        "runtime:",
        "service: {dns: {corednstype: binary}}\nruntime:",
    );
    let pods = FILE.replace(
        "runtime:",
        "service: {dns: {corednstype: pod, imageversion: 1.11.1, replicas: 2}}\nruntime:",
    );
    let plan = edited(&service, &pods);
    let lines = given_up(&plan);
    assert!(
        lines.contains(&"  unit coredns.service of master".to_owned()),
        "{lines:#?}"
    );
    for task in ["m0: release", "addons no longer wanted"] {
        assert!(
            needs(&plan, task).contains(&"cluster DNS ready".to_owned()),
            "{task}"
        );
    }
    // Endpoints of pods would stay behind the Service for ever.
    let plan = edited(&pods, &service);
    let kept = plan.tasks.iter().find_map(|task| match &task.work {
        Work::Api(ApiWork::PruneAddons(wanted)) => Some(wanted),
        _ => None,
    });
    let mut kept = kept.unwrap().iter();
    assert!(kept.any(|one| one.kind == "Deployment" && one.name == "coredns"));
}

#[test]
fn a_role_that_is_taken_takes_its_things_along() {
    let no_worker = FILE.replace("- {name: m0, ip: 192.168.0.1}\n", "");
    let lines = given_up(&edited(FILE, &no_worker));
    let titles: Vec<_> = lines.iter().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(titles, ["m0: drain", "m0: delete node", "m0: release"]);
    for given in [
        "unit kubelet.service of worker",
        "unit kube-proxy.service of worker",
        "unit containerd.service of runtime",
        "resource step pods of pods",
        "resource step look-around of prepare",
        "resource open port 111/tcp of prepare",
        "resource open port 10250/tcp of prepare",
    ] {
        assert!(lines.contains(&format!("  {given}")), "{given}: {lines:#?}");
    }
    assert!(
        lines.iter().all(|line| !line.contains("kube-apiserver")),
        "{lines:#?}"
    );

    let no_balancer = FILE.replace(
        "loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}\n",
        "",
    );
    let plan = edited(FILE, &no_balancer);
    let lines = given_up(&plan);
    assert_eq!(
        lines[lines.len() - 3..],
        ["lb: drain", "lb: delete node", "lb: leave"]
    );
    // It goes when everybody knows the new endpoint.
    assert_eq!(
        needs(&plan, "lb: leave"),
        [
            "lb: delete node",
            "m0: master",
            "m0: worker",
            "w0: worker",
            "w1: worker",
            "pod network ready"
        ]
    );
    let moved = FILE.replace("lb, ip: 192.168.0.9", "lb2, ip: 192.168.0.8");
    let plan = edited(FILE, &moved);
    assert!(needs(&plan, "lb: leave").contains(&"lb2: load-balancer".to_owned()));
}

/// Whether everything that a plan makes of a machine, and every file on it, is the same in both.
fn is_unchanged(name: &str, before: &Plan, after: &Plan) -> bool {
    let of = |plan: &Plan| {
        let tasks = plan.tasks.iter();
        let own = tasks.filter(|task| task.to_string().starts_with(&format!("{name}: ")));
        let resources: Vec<_> = own
            .map(|task| (task.to_string(), text::one(task)))
            .collect();
        let files = text::rendered(plan).into_iter();
        let files: Vec<_> = files
            .filter(|file| file.name.starts_with(&format!("{name}:")))
            .collect();
        assert!(!resources.is_empty() && !files.is_empty());
        (resources, files)
    };
    of(before) == of(after)
}

#[test]
fn a_worker_more_changes_nothing_on_masters_of_its_subnet() {
    let file = FILE.replace(
        "masters: [{name: m0, ip: 192.168.0.1}]",
        "masters: [{name: m0, ip: 192.168.0.1}, {name: m1, ip: 192.168.0.2}]",
    );
    let mut facts = ground::real_machine();
    let interface = facts.interfaces.as_mut().and_then(|all| all.last_mut());
    interface.unwrap().addresses = vec![Address {
        address: "192.168.0.1".parse().unwrap(),
        prefix: 24,
    }];
    let plan = |file: &str| {
        let versions = ground::versions("1.37.0");
        ground::plan(&ground::cluster(file), &versions, &facts)
    };
    let with = |address: &str| {
        let last = "- {name: w1, ip: 192.168.0.5}\n";
        plan(&file.replace(last, &format!("{last}- {{name: w2, ip: {address}}}\n")))
    };
    let before = plan(&file);
    let inside = with("192.168.0.6");
    assert!(
        inside
            .tasks
            .iter()
            .any(|task| task.to_string() == "w2: worker")
    );
    // CoreDNS runs as a service there, and has to let those from elsewhere in.
    let outside = with("192.168.1.6");
    for master in ["m0", "m1"] {
        assert!(is_unchanged(master, &before, &inside), "{master}");
        assert!(!is_unchanged(master, &before, &outside), "{master}");
    }
}
