//! A cluster that lives while its file is edited: a plan shows what an edit changes, `deploy` changes just that, and pods go
//! on answering.

use std::{collections::BTreeSet, fs};

use crate::{
    bench::Bench,
    planned::{Planned, machines},
    polled::Polled,
};

/// What an edit of the file does.
struct Edit {
    what: &'static str,
    from: String,
    to: String,
    /// The machines on which something changes.
    machines: &'static [usize],
    /// What the plan says, without the machines' numbers.
    planned: Vec<String>,
    /// Whether it says more.
    and_more: bool,
}

impl Edit {
    fn and_more(mut self) -> Self {
        self.and_more = true;
        self
    }

    /// What of a plan is not expected.
    fn unexpected(&self, planned: &Planned) -> Vec<String> {
        let mut unexpected = Vec::new();
        let machines = machines(&planned.tasks);
        if machines != self.machines {
            unexpected.push(format!("concerns machines {machines:?}"));
        }
        let lines = planned.lines.iter();
        let said: BTreeSet<_> = lines.map(|line| line.split_once(' ').unwrap().1).collect();
        let expected: BTreeSet<_> = self.planned.iter().map(String::as_str).collect();
        if !expected.is_subset(&said) || !self.and_more && said != expected {
            unexpected.push(format!("says {:#?}", planned.lines));
        }
        unexpected
    }
}

impl Bench {
    /// Edits the file, and brings the cluster there. Gives what is otherwise than it should be.
    fn edit(&self, edit: &Edit) -> Vec<String> {
        let text = fs::read_to_string(self.file()).unwrap();
        assert!(text.contains(&edit.from), "{}: {text}", edit.what);
        fs::write(self.file(), text.replacen(&edit.from, &edit.to, 1)).unwrap();
        let planned = self.planned(self.file());
        let mut otherwise = edit.unexpected(&planned);
        otherwise.extend(self.does(self.file(), &planned));
        for one in &mut otherwise {
            one.insert_str(0, &format!("{}: ", edit.what));
            eprintln!("{one}");
        }
        println!("{}: done", edit.what);
        otherwise
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_the_file() {
    let bench = Bench::new("t-change", 3, |text| {
        format!("{text}  loadbalance:\n    - {{name: nginx, type: pkg}}\n")
    })
    .await;
    bench
        .bring_scripts(&[("prejoin", "true\n"), ("postjoin", "true\n")])
        .await;
    bench.bring_package("nginx").await;
    let before = bench.snapshots().await;
    bench.hatchery(0, "deploy");
    let (first, worker) = (&bench.machine(0).name, &bench.machine(2).name);
    let polled = Polled::begin(&bench, 1).await;

    let here = |number: usize| {
        let machine = bench.machine(number);
        format!(
            "  - {{name: {}, ip: {}, port: 22, arch: amd64}}\n",
            machine.name, machine.address
        )
    };
    let balancer = |number: usize| {
        let machine = bench.machine(number);
        format!(
            "loadbalance: {{name: {}, ip: {}, port: 22, arch: amd64, bind-port: 8443}}\n",
            machine.name, machine.address
        )
    };
    let runtime = "  - name: container-engine\n    extra-args: {\"--log-level\": warn}\n";
    let labelled = here(2).replace("ip:", "labels: {rack: left}, ip:");
    let tainted = labelled.replace("ip:", "taints: ['story=told:NoSchedule'], ip:");
    let masters = format!("masters:\n{}workers:\n", here(0));
    let edit = |what, from: &str, to: &str, machines, planned: &[&str]| Edit {
        what,
        from: from.to_owned(),
        to: to.to_owned(),
        machines,
        planned: planned.iter().map(|line| (*line).to_owned()).collect(),
        and_more: false,
    };
    let node = format!("changed node {worker}");
    let gone = format!("gone node {worker}");
    let no_node = format!("gone node {first}");
    let names = "apiserver-cert-sans: {dnsnames: [api.story.test]}\n";
    let endpoint = format!("apiserver-endpoint: {first}:6443\n");
    let certificate = "changed certificate /etc/kubernetes/pki/apiserver.crt";
    let kubelet = "changed unit kubelet.service";
    let service = "changed file /etc/systemd/system/kubelet.service";
    let clients = [
        "changed file /etc/kubernetes/kubelet.conf",
        "changed file /etc/kubernetes/kube-proxy.conf",
        "changed certificate /etc/kubernetes/pki/admin.crt",
        "changed file /etc/kubernetes/pki/admin.server",
        kubelet,
        "changed unit kube-proxy.service",
        "changed DaemonSet kube-flannel/flannel",
    ];
    let containerd = [
        "changed file /etc/systemd/system/containerd.service",
        "changed unit containerd.service",
    ];
    let edits = [
        edit("a label", &here(2), &labelled, &[], &[&node]),
        // A kubelet that registers anew would bring its taints along.
        edit(
            "a taint",
            &labelled,
            &tainted,
            &[2],
            &[&node, kubelet, service],
        ),
        edit(
            "neither",
            &tainted,
            &here(2),
            &[2],
            &[&node, kubelet, service],
        ),
        edit(
            "a name of the API",
            "service:\n",
            &format!("{names}service:\n"),
            &[0],
            &[certificate, "changed unit kube-apiserver.service"],
        ),
        edit(
            "an argument of kubelets",
            "      \"--image-gc-high",
            "      \"--max-pods\": 99\n      \"--image-gc-high",
            &[0, 1, 2],
            &[service, kubelet],
        ),
        edit(
            "another endpoint",
            "service:\n",
            &format!("{endpoint}service:\n"),
            &[0, 1, 2],
            &clients,
        ),
        edit("the former endpoint", &endpoint, "", &[0, 1, 2], &clients),
        edit(
            "a mirror",
            "service:\n",
            "registry-mirrors: [http://mirror.story.test:5000]\nservice:\n",
            &[0, 1, 2],
            &["new file /etc/containerd/certs.d/docker.io/hosts.toml"],
        )
        .and_more(),
        edit(
            "no mirror",
            "registry-mirrors: [http://mirror.story.test:5000]\n",
            "",
            &[0, 1, 2],
            &["gone file /etc/containerd/certs.d/docker.io/hosts.toml"],
        )
        .and_more(),
        edit(
            "an argument of the runtime",
            "config-extra-args:\n",
            &format!("config-extra-args:\n{runtime}"),
            &[0, 1, 2],
            &containerd,
        ),
        edit(
            "the runtime as it was",
            runtime,
            "",
            &[0, 1, 2],
            &containerd,
        ),
        edit(
            "a load balancer",
            "service:\n",
            &format!("{}service:\n", balancer(1)),
            &[0, 1, 2],
            &["new file /etc/kubernetes/kube-nginx.conf", kubelet],
        )
        .and_more(),
        edit(
            "the load balancer elsewhere",
            &balancer(1),
            &balancer(2),
            &[0, 1, 2],
            &[
                "new file /etc/kubernetes/kube-nginx.conf",
                "gone file /etc/kubernetes/kube-nginx.conf",
                kubelet,
            ],
        )
        .and_more(),
        edit(
            "no load balancer",
            &balancer(2),
            "",
            &[0, 1, 2],
            &["gone file /etc/kubernetes/kube-nginx.conf", kubelet],
        )
        .and_more(),
        edit(
            "a master that runs no pods",
            &format!("{masters}{}", here(0)),
            &masters,
            &[0],
            &["gone unit kubelet.service", &no_node],
        )
        .and_more(),
        edit(
            "a master that runs pods again",
            &masters,
            &format!("{masters}{}", here(0)),
            &[0],
            &["new file /etc/systemd/system/kubelet.service", kubelet],
        )
        .and_more(),
        edit(
            "a script less",
            "      - {name: prejoin.sh, type: shell, schedule: prejoin, timeout: 20s}\n",
            "",
            &[0, 1, 2],
            &["gone script prejoin-prejoin.sh"],
        )
        .and_more(),
        edit("a worker less", &here(2), "", &[2], &[&gone]).and_more(),
    ];
    let otherwise: Vec<_> = edits.iter().flat_map(|one| bench.edit(one)).collect();
    assert_eq!(otherwise, [""; 0]);
    bench.inside(2, "[ ! -e /var/lib/hatchery ]").await;

    // An addon comes and goes with the file that names it.
    let addon = |kind| {
        let planned = bench.planned(bench.file());
        let expected = format!("API {kind} Deployment default/story");
        assert_eq!(planned.lines, BTreeSet::from([expected]));
        assert_eq!(bench.does(bench.file(), &planned), [""; 0]);
    };
    bench.bring_addons(&[("story.yaml", "[pause]")]);
    addon("new");
    bench.kubectl("get deployment story").await;
    bench.bring_addons(&[]);
    addon("gone");
    let left = bench.kubectl("get deployments -o name").await;
    assert_eq!(left, "deployment.apps/web\n");

    polled.end(&bench).await;
    bench.hatchery(0, "cleanup --yes");
    bench.assert_as_before(&before).await;
}
