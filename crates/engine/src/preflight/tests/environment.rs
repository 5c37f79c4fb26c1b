//! What is on a machine beside us, and what it can reach.

use super::*;

fn listener(port: u16, address: &str, process: &str) -> Listener {
    Listener {
        protocol: Protocol::Tcp,
        address: address.parse::<IpAddr>().unwrap(),
        port,
        processes: vec![Process {
            pid: 7,
            name: process.into(),
        }],
    }
}

#[test]
fn ports_that_others_have() {
    let listens = |port, address: &'static str, process: &'static str| {
        move |f: &mut Facts| {
            f.listeners
                .as_mut()
                .unwrap()
                .push(listener(port, address, process));
        }
    };
    finds(
        "",
        Bad,
        "port",
        "needs port 6443/tcp (kube-apiserver), which java has",
        listens(6443, "0.0.0.0", "java"),
    );
    finds(
        "",
        Bad,
        "port",
        "needs ports 10250/tcp (kubelet), 10256/tcp (kube-proxy), which java has",
        |f| {
            listens(10250, "0.0.0.0", "java")(f);
            listens(10256, "::", "java")(f);
        },
    );
    finds(
        "",
        Bad,
        "port",
        "2379",
        listens(2379, "10.201.1.11", "etcd"),
    );
    assert_eq!(
        after("", listens(2379, "10.8.8.8", "etcd")),
        [],
        "etcd listens on the machine's own addresses"
    );
    finds(
        "",
        Warning,
        "port",
        "53/tcp (coredns), which systemd-resolve has",
        listens(53, "127.0.0.53", "systemd-resolve"),
    );
    assert_eq!(
        after("", listens(8443, "0.0.0.0", "java")),
        [],
        "another machine balances the load"
    );

    let mut facts = facts_of(DEBIAN);
    listens(6443, "::", "kube-apiserver")(&mut facts);
    listens(10257, "::", "kube-controller")(&mut facts);
    let ours = Managed {
        cluster: Some(("c1".into(), "demo".into())),
        ..Managed::default()
    };
    let found = judged("", "m0", facts.clone(), ours.clone());
    assert!(
        found.iter().all(|finding| finding.severity == Note),
        "{found:#?}"
    );
    listens(10250, "::", "java")(&mut facts);
    assert_eq!(judged("", "m0", facts, ours)[0].code, "port");
}

#[test]
fn programs_and_package_managers() {
    let without = |name: &'static str| {
        move |f: &mut Facts| {
            f.programs.remove(name);
        }
    };
    finds("", Bad, "program", "no program flock", without("flock"));
    finds(
        "",
        Bad,
        "program",
        "no program iptables",
        without("iptables"),
    );
    finds(
        "",
        Warning,
        "program",
        "no program conntrack",
        without("conntrack"),
    );
    let brings = "install: {kubernetes-worker: [{name: 'conntrack-tools,socat', type: repo}]}";
    assert_eq!(after(brings, without("conntrack")), []);
    assert_eq!(
        after("", |f| f.programs.clear()),
        [],
        "a machine that did not tell"
    );
    finds(brings, Bad, "package-manager", "no package manager", |f| {
        f.package_manager = None;
    });
    finds(brings, Bad, "package-manager", "neither dnf nor yum", |f| {
        f.package_manager = Some(&hatchery_host::package_manager::RPM);
    });
}

#[test]
fn networks() {
    let server = |text: &str| vec![text.parse::<IpAddr>().unwrap()];
    finds("", Warning, "resolver", "names itself", |f| {
        f.resolver.as_mut().unwrap().nameservers = server("127.0.0.53");
    });
    finds("", Note, "resolver", "behind it", |f| {
        let resolver = f.resolver.as_mut().unwrap();
        resolver.nameservers = server("127.0.0.53");
        resolver.upstream = Some(server("10.0.0.2"));
    });
    finds("", Warning, "resolver", "no server", |f| {
        f.resolver.as_mut().unwrap().nameservers.clear();
    });
    finds("", Note, "firewall", "firewalld", |f| {
        f.firewalls.firewalld = Some(Firewall { active: Some(true) });
    });
    finds("", Note, "firewall", "ufw", |f| {
        f.firewalls.ufw = Some(Firewall { active: Some(true) });
    });
    finds("", Warning, "proxy", "no no_proxy", |f| {
        f.proxies = vec!["HTTPS_PROXY".into()];
    });
    finds("", Note, "proxy", "HTTPS_PROXY, no_proxy", |f| {
        f.proxies = vec!["HTTPS_PROXY".into(), "no_proxy".into()];
    });
    finds("", Bad, "address", "10.201.1.11", |f| {
        f.interfaces.as_mut().unwrap()[1].addresses[0].address = "192.168.7.7".parse().unwrap();
    });
    finds(
        "network: {podcidr: 10.77.0.0/16}",
        Bad,
        "network-overlap",
        "10.77.3.0/24 on eth0, which overlaps 10.77.0.0/16 of the pods",
        |f| {
            f.interfaces.as_mut().unwrap()[1].addresses.push(Address {
                address: "10.77.3.1".parse().unwrap(),
                prefix: 24,
            });
        },
    );
    assert_eq!(after("", |f| f.interfaces = None), []);
}

#[test]
fn the_classic_dialect_renames_machines() {
    let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.201.1.11}]\nnodes: [{name: m0, ip: 10.201.1.11}]\n";
    let cluster = read(Input::private("deploy.yaml", text.as_bytes()))
        .cluster
        .unwrap();
    let reply = Ok((facts_of(DEBIAN), Managed::default()));
    let found = check_machines(&cluster, &own(), &[(&cluster.machines()[0], &reply)]);
    let note = found
        .iter()
        .find(|finding| finding.code == "hostname")
        .unwrap();
    assert_eq!(note.message, "will be renamed to m0; now it is machine-1");
}

#[test]
fn a_cluster_that_eggo_made_is_refused_with_the_ways_out() {
    let has = |names: &'static [&'static str]| {
        move |f: &mut Facts| {
            let path = |name: &&str| format!("/etc/kubernetes/{name}");
            f.entries = names.iter().map(path).collect();
        }
    };
    let of_eggo: [&'static [&'static str]; 3] = [
        &["kubelet-bootstrap.kubeconfig", "kubelet_config.yaml", "pki"],
        &[
            "admin.conf",
            "controller-manager.conf",
            "encryption-config.yaml",
            "manifests/coredns.yaml",
        ],
        &["kube-nginx.conf"],
    ];
    for names in of_eggo {
        finds(
            "",
            Bad,
            "eggo",
            "that eggo, the program in Go, has made",
            has(names),
        );
        let found = after("", has(names));
        let remedy = found[0].remedy.as_deref().unwrap_or_default();
        assert!(remedy.contains("eggo cleanup --id"), "{remedy}");
        assert!(remedy.contains("other machines"), "{remedy}");
    }
    let of_others: [&'static [&'static str]; 2] = [
        // kubeadm's, with Secrets encrypted.
        &[
            "admin.conf",
            "controller-manager.conf",
            "encryption-config.yaml",
            "manifests/kube-apiserver.yaml",
        ],
        // Ours, on a machine that lost its record.
        &[
            "controller-manager.conf",
            "encryption-config.yaml",
            "audit-policy.yaml",
            "kubelet_config.yaml",
        ],
    ];
    for names in of_others {
        finds(
            "",
            Warning,
            "kubernetes",
            "files of an earlier Kubernetes",
            has(names),
        );
    }
}

#[test]
fn traces_of_others() {
    let unit = Unit {
        active: Some(ActiveState::Active),
        enablement: None,
        path: None,
    };
    let active = unit.clone();
    finds("", Bad, "kubernetes", "kubelet.service", move |f| {
        f.units
            .as_mut()
            .unwrap()
            .insert("kubelet.service".into(), active);
    });
    finds("", Bad, "etcd-data", "/var/lib/etcd", |f| {
        f.entries = vec!["/var/lib/etcd/member".into()];
    });
    finds(
        "",
        Warning,
        "kubernetes",
        "/etc/kubernetes/d, /etc/kubernetes/e and 2 more",
        |f| {
            f.entries = ["a", "b", "c", "d", "e", "f", "g"]
                .map(|name| format!("/etc/kubernetes/{name}"))
                .into();
        },
    );
    let runtime = |kind: &str| Runtime {
        kind: kind.to_owned(),
        path: "/usr/bin/x".into(),
        version: Some("1.6.20".into()),
        unit: Some(unit.clone()),
        socket: None,
    };
    finds("", Note, "runtime", "containerd 1.6.20 already", |f| {
        f.runtimes = vec![runtime("containerd")];
    });
    finds(
        "",
        Warning,
        "runtime",
        "runs CRI-O 1.6.20 beside containerd",
        |f| f.runtimes = vec![runtime("crio")],
    );
    assert_eq!(after("", |f| f.runtimes = vec![runtime("podman")]), []);
}
