//! Operations that need a service of their own on the machine: a firewall, a container runtime, a package manager.

use std::{net::Ipv4Addr, time::Duration};

use hatchery_host::{
    content::{Content, Hash},
    operation::{
        Firewall, ImageStore, Images, Operation, PackageName, PackageSource, Packages, Port,
        Protocol,
    },
    task::Task,
};
use hatchery_sandbox::settings::{RequestedSettings, System};

use crate::lab::{Bench, inside, word};

const DEADLINE: Duration = Duration::from_secs(120);

/// What others reach at an address.
fn ports(address: Ipv4Addr) -> Task {
    let port = |first, last, protocol| {
        Operation::Firewall(Firewall {
            port: Port::range(first, last).unwrap(),
            protocol,
            address: Some(address.into()),
        })
    };
    let ports = vec![
        port(6443, 6443, Protocol::Tcp),
        port(8472, 8472, Protocol::Udp),
        port(30000, 32767, Protocol::Tcp),
        Operation::TrustedNetwork("10.244.0.0/16".parse().unwrap()),
    ];
    Task::new(word("worker"), ports).unwrap()
}

const CONTAINERD: ImageStore = ImageStore {
    name: "containerd",
    list: "ctr -n k8s.io images ls -q",
    load: r#"ctr -n k8s.io images import "$1""#,
    remove: r#"ctr -n k8s.io images rm "$1""#,
};

/// An archive as `docker save` writes it, with one image of one empty layer.
fn tiny_image(reference: &str) -> Content {
    let layer = vec![0; 1024];
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{{}},"rootfs":{{"type":"layers","diff_ids":["sha256:{}"]}}}}"#,
        Hash::digest(&layer).as_str()
    );
    let manifest = format!(
        r#"[{{"Config":"config.json","RepoTags":["{reference}"],"Layers":["layer.tar"]}}]"#
    );
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in [
        ("layer.tar", layer.as_slice()),
        ("config.json", config.as_bytes()),
        ("manifest.json", manifest.as_bytes()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    }
    Content::bytes(archive.into_inner().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_opened_and_closed_and_images_come_and_go() {
    let settings = RequestedSettings {
        system: Some(System::Debian),
        ..RequestedSettings::default()
    };
    let bench = Bench::new("t-services", 2, settings).await;
    tokio::join!(firewalld(&bench), ufw_and_images(&bench));
}

async fn firewalld(bench: &Bench) {
    let (node, machine) = (&bench.lab.machines[0], bench.machine(0));
    inside(node, "apt-get -qq update && apt-get -qqy install --no-install-recommends firewalld >/dev/null && systemctl enable -q --now firewalld && firewall-cmd -q --add-service=ssh").await;
    // The interface is in a zone of its own, where one port is open already, and stays so.
    inside(
        node,
        "for p in '' --permanent; do firewall-cmd -q $p --zone=work --change-interface=eth0; firewall-cmd -q $p --zone=work --add-port=8472/udp; done",
    )
    .await;
    let state = "firewall-cmd --list-all-zones; firewall-cmd --permanent --list-all-zones; find /etc/firewalld -type f | sort | xargs sha256sum";
    let before = inside(node, state).await;

    let ports = ports(node.address);
    let report = machine.apply(&ports, &|_| ()).await.unwrap();
    assert_eq!(report.changes(), 3, "{report:?}");
    // What was opened for good is what is open, also when it is read anew.
    for reload in ["true", "firewall-cmd -q --reload"] {
        for (zone, list, expected) in [
            ("work", "ports", "6443/tcp 8472/udp 30000-32767/tcp"),
            ("public", "ports", ""),
            ("trusted", "sources", "10.244.0.0/16"),
        ] {
            for way in ["", "--permanent"] {
                let ask = format!("{reload}; firewall-cmd {way} --zone={zone} --list-{list}");
                let told = inside(node, &ask).await;
                let mut told: Vec<_> = told.split_whitespace().collect();
                let mut expected: Vec<_> = expected.split_whitespace().collect();
                told.sort_unstable();
                expected.sort_unstable();
                assert_eq!(told, expected, "{ask}");
            }
        }
    }
    assert_eq!(machine.apply(&ports, &|_| ()).await.unwrap().changes(), 0);
    let undone = machine.undo(&[], DEADLINE).await.unwrap();
    assert!(undone.left.is_empty(), "{undone:?}");
    assert_eq!(inside(node, state).await, before);

    // With firewalld stopped, what is to be gone for good is gone as well.
    machine.apply(&ports, &|_| ()).await.unwrap();
    inside(node, "systemctl stop firewalld").await;
    let undone = machine.undo(&[], DEADLINE).await.unwrap();
    assert!(undone.left.is_empty(), "{undone:?}");
    inside(node, "systemctl start firewalld").await;
    assert_eq!(inside(node, state).await, before);
}

async fn ufw_and_images(bench: &Bench) {
    let (node, machine) = (&bench.lab.machines[1], bench.machine(1));
    inside(node, "apt-get -qq update && apt-get -qqy install --no-install-recommends ufw >/dev/null && ufw allow 22/tcp && ufw --force enable").await;
    let state = "ufw status; ufw show added; cat /etc/ufw/user.rules /etc/ufw/user6.rules";
    let before = inside(node, state).await;
    let ports = ports(node.address);
    assert_eq!(machine.apply(&ports, &|_| ()).await.unwrap().changes(), 3);
    let open = inside(node, "ufw status").await;
    assert!(
        open.contains("6443/tcp") && open.contains("30000:32767/tcp"),
        "{open}"
    );
    assert_eq!(machine.apply(&ports, &|_| ()).await.unwrap().changes(), 0);
    assert!(machine.undo(&[], DEADLINE).await.unwrap().left.is_empty());
    assert_eq!(inside(node, state).await, before);

    // A package manager that is busy is waited for.
    bench.furnish(node).await;
    let packages = Packages {
        source: PackageSource::Repository(
            ["containerd", "runc"]
                .map(|name| PackageName::new(name).unwrap())
                .into(),
        ),
    };
    let packages = Task::new(word("runtime"), vec![Operation::Packages(packages)]).unwrap();
    let busy = inside(
        node,
        "flock /var/lib/dpkg/lock-frontend -c 'touch /run/locked; sleep 6'",
    );
    let install = async {
        while inside(node, "test -e /run/locked && echo locked || true")
            .await
            .trim()
            != "locked"
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        machine.apply(&packages, &|_| ()).await.unwrap()
    };
    let (_, report) = tokio::join!(busy, install);
    assert_eq!(report.changes(), 1);

    inside(node, "systemd-run -q --unit=test-containerd containerd; for i in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.1; done").await;
    let reference = "example.test/tiny:1";
    let images = Images::new(CONTAINERD, tiny_image(reference), vec![reference.into()]).unwrap();
    let images = Task::new(word("worker"), vec![Operation::Images(images)]).unwrap();
    assert_eq!(machine.apply(&images, &|_| ()).await.unwrap().changes(), 1);
    let again = machine.apply(&images, &|_| ()).await.unwrap();
    assert_eq!((again.changes(), again.round_trips), (0, 1));
    assert!(
        inside(node, "ctr -n k8s.io images ls -q")
            .await
            .contains(reference)
    );
    assert!(
        machine
            .undo(&[word("worker")], DEADLINE)
            .await
            .unwrap()
            .left
            .is_empty()
    );
    assert!(
        !inside(node, "ctr -n k8s.io images ls -q")
            .await
            .contains(reference)
    );
    inside(node, "systemctl stop test-containerd").await;
    // As a power cut in the middle of unpacking leaves it: dpkg removes that only when it is forced to.
    inside(node, "sed -i '/^Package: runc$/,/^$/s/^Status: .*/Status: install reinstreq half-installed/' /var/lib/dpkg/status").await;
    assert!(machine.undo(&[], DEADLINE).await.unwrap().left.is_empty());
    inside(
        node,
        "test ! -e /usr/bin/containerd && test ! -e /usr/bin/runc && test ! -e /var/lib/hatchery",
    )
    .await;
}
