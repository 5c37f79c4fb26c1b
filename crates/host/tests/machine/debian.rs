//! Debian's own packages, whose scripts enable and start services, and leave things that no removal takes away.

use std::time::Duration;

use hatchery_host::{
    content::Content,
    machine::Machine,
    operation::{
        Access, Directory, File, Operation, PackageName, PackageSource, Packages, Unit, UnitName,
    },
    path::{MachinePath, Word},
    task::Task,
};
use hatchery_sandbox::{
    settings::{RequestedSettings, System},
    snapshot::Snapshot,
};

use crate::lab::{Bench, inside, word};

/// Somebody's own files in the places of configuration that packages bring: two with words of their own, of which we
/// replace one, and one that says what the package's says.
const THEIRS: &str = "set -e
    apt-get -qq update
    echo '# theirs' >/etc/default/nginx
    echo '# theirs' >/etc/default/docker
    mkdir /etc/nginx
    cd /tmp
    apt-get -qq download nginx-common
    dpkg-deb --fsys-tarfile nginx-common_*.deb | tar -xO ./etc/nginx/mime.types >/etc/nginx/mime.types
    rm nginx-common_*.deb";

const SERVICES: &str = "containerd docker.service docker.socket etcd nginx";

fn packages(names: &[&str]) -> Task {
    let names = names.iter().map(|name| PackageName::new(*name).unwrap());
    let packages = Packages {
        source: PackageSource::Repository(names.collect()),
    };
    Task::new(word("prepare"), vec![Operation::Packages(packages)]).unwrap()
}

fn started(name: &str) -> Operation {
    Operation::Unit(Unit {
        name: UnitName::new(name).unwrap(),
        enabled: Some(true),
        running: Some(true),
        restart_on: Vec::new(),
    })
}

/// In the place of a package's configuration.
fn written(path: &str) -> Operation {
    Operation::File(File {
        path: MachinePath::new(path).unwrap(),
        content: Content::bytes(b"# ours\n".to_vec()),
        access: Access::root(0o600).unwrap(),
    })
}

async fn undo(machine: &Machine, owners: &[Word]) {
    let limit = Duration::from_secs(300);
    let undone = machine.undo(owners, limit).await.unwrap();
    assert!(undone.left.is_empty(), "{:?}", undone.left);
    assert!(undone.kept.is_empty(), "{:?}", undone.kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn debians_services_start_when_they_are_asked_for_and_leave_nothing_behind() {
    let settings = RequestedSettings {
        system: Some(System::Debian),
        ..RequestedSettings::default()
    };
    let bench = Bench::bare("t-debian", 1, settings).await;
    let (node, machine) = (&bench.lab.machines[0], bench.machine(0));
    inside(node, THEIRS).await;
    let before = Snapshot::take(node).await.unwrap();

    let own = packages(&["containerd", "docker.io", "etcd-server", "nginx-light"]);
    assert_eq!(machine.apply(&own, &|_| ()).await.unwrap().changes(), 1);
    // None of them came up, and what keeps them from it is gone again.
    let state = format!("systemctl is-active {SERVICES} | sort | uniq -c | xargs");
    assert_eq!(inside(node, &state).await.trim(), "5 inactive");
    let open = "ss -Hltn 'sport = :80 or sport = :2379'; ls /usr/sbin/policy-rc.d 2>&1 || :";
    let told = inside(node, open).await;
    assert!(
        told.contains("No such file") && !told.contains("LISTEN"),
        "{told}"
    );

    let asked = |mode| {
        let access = Access {
            owner: word("etcd"),
            group: word("etcd"),
            ..Access::root(mode).unwrap()
        };
        let data = Directory {
            path: MachinePath::new("/var/lib/etcd").unwrap(),
            access,
            contents_are_ours: true,
        };
        let operations = vec![
            Operation::Directory(data),
            written("/etc/containerd/config.toml"),
            written("/etc/default/nginx"),
            written("/etc/nginx/mime.types"),
            started("etcd.service"),
            started("nginx.service"),
        ];
        Task::new(word("etcd"), operations).unwrap()
    };
    machine.apply(&asked(0o700), &|_| ()).await.unwrap();
    let told = inside(node, &format!("systemctl is-active {SERVICES} || :")).await;
    let expected = ["inactive", "inactive", "inactive", "active", "active"];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    inside(
        node,
        "test -d /var/lib/etcd/default/member && curl -sf -o /dev/null http://127.0.0.1/",
    )
    .await;
    let again = machine.apply(&asked(0o700), &|_| ()).await.unwrap();
    assert_eq!(again.changes(), 0);

    // A role that comes again finds files whose times of the last change are ours.
    undo(&machine, &[word("etcd")]).await;
    let told = inside(node, "cat /etc/default/nginx").await;
    assert_eq!(told, "# theirs\n");
    machine.apply(&asked(0o700), &|_| ()).await.unwrap();

    undo(&machine, &[]).await;
    let now = Snapshot::take(node).await.unwrap();
    now.assert_same(&before, "Debian's packages are gone");
    machine.disconnect().await;
}
