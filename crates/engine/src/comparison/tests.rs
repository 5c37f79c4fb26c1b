//! Files against clusters that are there: what may change, and what is refused.

use hatchery_host::{facts::ConfiguredDirectory, machine::Managed};
use hatchery_spec::{Cluster, Input, cluster::Role, read, runtimes, value::Version};
use proptest::prelude::*;
use time::OffsetDateTime;

use super::{Presence, Presences};
use crate::{finding::Finding, package::Release, state::Record, versions::Versions};

fn cluster(text: &str) -> Cluster {
    let text = format!("cluster-id: lab\n{text}");
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    reading.cluster.unwrap_or_else(|| panic!("{text}"))
}

fn machines(names: &[&str]) -> String {
    let address = |name: &str| match name.split_once('@') {
        Some((name, address)) => (name.to_owned(), format!("10.0.0.{address}")),
        None => {
            let number: u32 = name[1..].parse().unwrap();
            let kind = name.as_bytes()[0];
            (name.to_owned(), format!("10.0.{kind}.{}", number + 1))
        }
    };
    let machines = names.iter().map(|name| {
        let (name, ip) = address(name);
        format!("{{name: {name}, ip: {ip}}}")
    });
    format!("[{}]", machines.collect::<Vec<_>>().join(", "))
}

/// Masters are etcd members unless others are named: `m0 m1 / w0 w1 / e0`.
fn file(text: &str) -> Cluster {
    let mut parts = text.split('/').map(|part| {
        let names: Vec<_> = part.split_whitespace().collect();
        machines(&names)
    });
    let mut next = || parts.next();
    let (masters, workers) = (next().unwrap(), next().unwrap_or("[]".into()));
    let etcds = next().map_or_else(String::new, |etcds| format!("etcds: {etcds}\n"));
    cluster(&format!("masters: {masters}\nworkers: {workers}\n{etcds}"))
}

fn versions(kubernetes: &str, etcd: &str) -> Versions {
    Versions {
        kubernetes: Version::parse(kubernetes).unwrap(),
        containerd: None,
        etcd: Release::parse(etcd).ok(),
        coredns: None,
    }
}

/// The record of a cluster that is up.
fn up(cluster: &Cluster) -> Record {
    let mut record = begun(cluster);
    record.reach();
    record
}

/// The record of a cluster whose machines were claimed.
fn begun(cluster: &Cluster) -> Record {
    let mut record = Record::new(&cluster.id, OffsetDateTime::UNIX_EPOCH).unwrap();
    record.claim(cluster.machines());
    record.begin(&versions("1.37.1", "3.6.4"));
    record
}

/// What is found when these are present on the machines of the wanted cluster, in its order.
fn refusals(
    wanted: (&Cluster, Option<&Versions>),
    remembered: &Record,
    present: &[Option<Presence>],
) -> Vec<Finding> {
    let names = wanted
        .0
        .machines()
        .iter()
        .map(|machine| machine.name.clone());
    let present = names
        .zip(present)
        .filter_map(|(name, one)| Some((name, one.clone()?)));
    super::refusals(wanted, remembered, &Presences::from_iter(present))
}

const NOTHING: Presence = Presence {
    etcd: false,
    etcd_data: false,
    etcd_directories: None,
    master: false,
    unrecorded: false,
    runtime: None,
};

/// What the machines of `made` show in the order of `wanted`; others are bare.
fn seen(made: &Cluster, wanted: &Cluster) -> Vec<Option<Presence>> {
    let machines = wanted.machines().iter().map(|machine| {
        let same = |one: &&hatchery_spec::cluster::Machine| {
            (&one.name, one.address) == (&machine.name, machine.address)
        };
        let is = |role| {
            made.machines()
                .iter()
                .find(same)
                .is_some_and(|one| one.is(role))
        };
        Some(Presence {
            etcd: is(Role::Etcd),
            etcd_data: is(Role::Etcd),
            master: is(Role::Master),
            ..NOTHING
        })
    });
    machines.collect()
}

/// Codes with their machines.
fn told(refusals: &[Finding]) -> Vec<String> {
    let told = refusals.iter().map(|one| {
        assert!(one.remedy.as_ref().is_some_and(|remedy| !remedy.is_empty()));
        format!("{}: {}", one.code, one.machines.join(" "))
    });
    told.collect()
}

#[test]
fn the_runtime_of_a_cluster_stays() {
    let made = file("m0 / m0 w0");
    let mut record = begun(&made);
    let mut observed = seen(&made, &made);
    let wanted = made.runtime.kind;
    let found = |record: &Record, observed: &[Option<Presence>]| {
        told(&refusals((&made, None), record, observed))
    };
    for machine in observed.iter_mut().flatten() {
        machine.runtime = Some(wanted);
    }
    record.formed = true;
    assert_eq!(found(&record, &observed), [""; 0]);
    let mut all = runtimes::ALL.into_iter();
    let other = all.find(|kind| *kind != wanted).unwrap();
    for machine in observed.iter_mut().flatten() {
        machine.runtime = Some(other);
    }
    assert_eq!(found(&record, &observed), ["runtime: m0 w0"]);
    // Of one that never was, all can be another one.
    record.formed = false;
    for machine in observed.iter_mut().flatten() {
        (machine.master, machine.etcd) = (false, false);
    }
    assert!(
        !found(&record, &observed)
            .iter()
            .any(|one| one.starts_with("runtime"))
    );
}

#[test]
fn what_is_refused_of_a_cluster_that_is_up() {
    let table: [(&str, &str, &[&str]); 17] = [
        ("m0 / w0", "m0 / w0", &[]),
        ("m0 / w0", "m0 / w0 w1 w2", &[]),
        ("m0 / w0", "m0 / m0 w0", &[]),
        // Another order is the same cluster.
        ("m0 m1 m2 / w0 w1", "m2 m0 m1 / w1 w0", &[]),
        ("m0", "m0 m1 m2", &["etcd-members: m1 m2", "masters: m1 m2"]),
        (
            "m0 / w0",
            "m0 w0 / w0",
            &["etcd-members: w0", "masters: w0"],
        ),
        (
            "m0 / w0",
            "m0 / w0 / e0",
            &["etcd-members: e0", "etcd-members: m0"],
        ),
        (
            "m0 / w0 / e0",
            "m0 / w0 / e0 e1 e2",
            &["etcd-members: e1 e2"],
        ),
        ("m0 / w0 / e0", "m0 m1 / w0 / e0", &["masters: m1"]),
        ("m0 / w0 / e0", "m0 / w0 / e0 w0", &["etcd-members: w0"]),
        ("m0 / w0 w1", "m0 / w0", &["machine-dropped: w1"]),
        ("m0 m1 m2", "m0", &["machine-dropped: m1 m2"]),
        (
            "m0 m1 m2 / w0",
            "m0 m1 / m2 w0",
            &["etcd-members: m2", "masters: m2"],
        ),
        (
            "m0 m1 m2",
            "m0 m1 m3",
            &["machine-dropped: m2", "etcd-members: m3", "masters: m3"],
        ),
        // Name and address are one.
        ("m0 / w0@77", "m0 / w1@77", &["machine-changed: w0"]),
        ("m0 / w0@77", "m0 / w0@78", &["machine-changed: w0"]),
        ("m0@50", "m1@50", &["machine-changed: m0"]),
    ];
    for (made, wanted, expected) in table {
        let (made, wanted) = (file(made), file(wanted));
        let record = up(&made);
        for observed in [Vec::new(), seen(&made, &wanted)] {
            let refusals = refusals((&wanted, None), &record, &observed);
            assert_eq!(told(&refusals), expected, "{refusals:#?}");
        }
    }
}

#[test]
fn reasons_name_machines_and_what_can_be_done() {
    let refusals = refusals((&file("m0 m1 m2"), None), &up(&file("m0")), &[]);
    assert_eq!(
        refusals[0].message,
        "would become etcd members of a cluster that has others: m0"
    );
    let remedy = refusals[0].remedy.as_deref().unwrap();
    assert!(
        remedy.starts_with("write the etcd members as they were: m0."),
        "{remedy}"
    );
    assert!(remedy.contains("cleanup --id lab"), "{remedy}");
}

#[test]
fn versions_stay_in_their_minor_version() {
    let table: [(&str, &str, &[&str]); 11] = [
        ("1.37.1", "3.6.4", &[]),
        ("1.37.2", "3.6.4", &[]),
        ("1.37", "3.6.4", &[]),
        ("1.37.0", "3.6.4", &["kubernetes-version: m0 w0"]),
        ("1.38.0", "3.6.4", &["kubernetes-version: m0 w0"]),
        ("1.39.0", "3.6.4", &["kubernetes-version: m0 w0"]),
        ("1.36.9", "3.6.4", &["kubernetes-version: m0 w0"]),
        ("1.37.1", "3.7.0", &[]),
        ("1.37.1", "3.8.0", &["etcd-version: m0"]),
        ("1.37.1", "3.6.3", &["etcd-version: m0"]),
        (
            "1.36.0",
            "3.4.1",
            &["kubernetes-version: m0 w0", "etcd-version: m0"],
        ),
    ];
    let made = file("m0 / w0");
    for (kubernetes, etcd, expected) in table {
        let wanted = versions(kubernetes, etcd);
        let found = refusals((&made, Some(&wanted)), &up(&made), &[]);
        assert_eq!(told(&found), expected, "{kubernetes} {etcd}: {found:#?}");
        // Before there is a control plane, nothing of the old version is worth keeping.
        let found = refusals((&made, Some(&wanted)), &begun(&made), &[None, None]);
        assert_eq!(told(&found), [""; 0]);
    }
    let jump = versions("1.39.0", "3.6.4");
    let found = refusals((&made, Some(&jump)), &up(&made), &[]);
    assert!(
        found[0]
            .message
            .starts_with("run Kubernetes 1.37.1, and the file brings 1.39.0")
    );
    let mut unknown = up(&made);
    unknown.versions = None;
    let found = refusals((&made, Some(&jump)), &unknown, &[]);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].message.contains("that is not recorded"),
        "{found:?}"
    );
}

/// 1.37.1 with etcd 3.6.4 ran; a run that brought something else was stopped somewhere.
#[test]
fn a_run_that_was_stopped_leaves_the_way_back_and_the_way_on() {
    const KUBERNETES: &[&str] = &["kubernetes-version: m0 w0"];
    const ETCD: &[&str] = &["etcd-version: m0"];
    let table: [(&str, &str, &str, &str, &[&str]); 18] = [
        ("1.37.2", "3.6.4", "1.37.1", "3.6.4", &[]),
        ("1.37.2", "3.6.4", "1.37.2", "3.6.4", &[]),
        ("1.37.5", "3.6.4", "1.37.3", "3.6.4", &[]),
        ("1.37.2", "3.6.4", "1.37.3", "3.6.4", &[]),
        ("1.37.2", "3.6.4", "1.37", "3.6.4", &[]),
        ("1.37.2", "3.6.4", "1.37.0", "3.6.4", KUBERNETES),
        ("1.37.2", "3.6.4", "1.38.0", "3.6.4", KUBERNETES),
        ("1.37.2", "3.6.4", "1.36.9", "3.6.4", KUBERNETES),
        // Patches of etcd read each other's data.
        ("1.37.2", "3.6.5", "1.37.1", "3.6.4", &[]),
        ("1.37.2", "3.6.5", "1.37.2", "3.6.5", &[]),
        ("1.37.2", "3.6.5", "1.37.1", "3.6.3", ETCD),
        ("1.37.2", "3.6.5", "1.37.1", "3.7.0", &[]),
        ("1.37.2", "3.7.0", "1.37.1", "3.6.4", ETCD),
        ("1.37.2", "3.7.0", "1.37.1", "3.7.0", &[]),
        ("1.37.2", "3.7.1", "1.37.2", "3.7.0", &[]),
        ("1.37.2", "3.7.0", "1.37.2", "3.7.2", &[]),
        // Some members may still run what was reached.
        ("1.37.2", "3.7.0", "1.37.2", "3.8.0", ETCD),
        (
            "1.37.2",
            "3.7.0",
            "1.37.0",
            "3.6.4",
            &["kubernetes-version: m0 w0", "etcd-version: m0"],
        ),
    ];
    let made = file("m0 / w0");
    for (kubernetes, etcd, wanted_kubernetes, wanted_etcd, expected) in table {
        let mut record = up(&made);
        record.begin(&versions(kubernetes, etcd));
        let wanted = versions(wanted_kubernetes, wanted_etcd);
        let found = refusals((&made, Some(&wanted)), &record, &[]);
        let case = format!("{kubernetes} {etcd} → {wanted_kubernetes} {wanted_etcd}");
        assert_eq!(told(&found), expected, "{case}: {found:#?}");
    }
    let mut record = up(&made);
    record.begin(&versions("1.37.2", "3.7.0"));
    let back = versions("1.37.1", "3.6.4");
    let found = refusals((&made, Some(&back)), &record, &[]);
    assert!(
        found[0].message.starts_with("may run etcd 3.7.0 already"),
        "{found:?}"
    );
    // Once it runs there is no way back.
    record.reach();
    let back = versions("1.37.1", "3.7.0");
    let found = refusals((&made, Some(&back)), &record, &[]);
    assert_eq!(told(&found), KUBERNETES);
    // What was never reached is compared with what was begun.
    let mut first = begun(&made);
    first.formed = true;
    let older = versions("1.37.0", "3.6.4");
    assert_eq!(
        told(&refusals((&made, Some(&older)), &first, &[])),
        KUBERNETES
    );
}

/// What lies there is the cluster's own, not another's that somebody may remove.
#[test]
fn a_machine_that_lost_its_record_is_told_by_that() {
    let made = file("m0 m1 m2 / w0");
    let mut observed = seen(&made, &made);
    observed[1] = Some(Presence {
        etcd_data: true,
        unrecorded: true,
        ..NOTHING
    });
    let found = refusals((&made, None), &up(&made), &observed);
    assert_eq!(told(&found), ["record-lost: m1"]);
    // Nobody's machine is judged by preflight.
    let other = file("m0 m1 m2 / w0 w1");
    let mut observed = seen(&made, &other);
    observed[4] = Some(Presence {
        unrecorded: true,
        ..NOTHING
    });
    let found = refusals((&other, None), &up(&made), &observed);
    assert_eq!(told(&found), [""; 0]);
}

#[test]
fn a_cluster_that_is_being_made_goes_on_with_the_same_file() {
    let made = file("m0 m1 m2 / w0");
    let bare = vec![Some(NOTHING); 4];
    let mut one_has_data = bare.clone();
    one_has_data[0] = Some(Presence {
        etcd: true,
        etcd_data: true,
        ..NOTHING
    });
    for observed in [&bare, &one_has_data] {
        assert_eq!(
            told(&refusals((&made, None), &begun(&made), observed)),
            [""; 0]
        );
    }
    // While no machine has become a member, the members may still be others; after that not.
    let other = file("m0 / m1 m2 w0");
    assert_eq!(
        told(&refusals((&other, None), &begun(&made), &bare)),
        [""; 0]
    );
    let found = refusals((&other, None), &begun(&made), &one_has_data);
    assert_eq!(told(&found), ["etcd-members: m1 m2"]);
    // One that does not answer may have become one.
    let mut silent = bare.clone();
    silent[2] = None;
    let found = refusals((&other, None), &begun(&made), &silent);
    assert_eq!(told(&found), ["etcd-members: m2", "masters: m2"]);
    // What was claimed has to be named, whatever became of it.
    let found = refusals((&file("m0"), None), &begun(&made), &bare[..1]);
    assert_eq!(told(&found), ["machine-dropped: m1 m2 w0"]);
}

#[test]
fn a_control_plane_that_was_begun_is_a_cluster_although_nobody_remembers_it() {
    let made = file("m0 / w0");
    let wanted = file("m0 m1 m2 / w0");
    let observed = seen(&made, &wanted);
    let found = refusals((&wanted, None), &begun(&made), &observed);
    assert_eq!(told(&found), ["etcd-members: m1 m2", "masters: m1 m2"]);
}

#[test]
fn a_member_that_lost_its_data_does_not_begin_anew() {
    let made = file("m0 m1 m2 / w0");
    let mut observed = seen(&made, &made);
    observed[1] = Some(NOTHING);
    let found = refusals((&made, None), &up(&made), &observed);
    assert_eq!(told(&found), ["etcd-member: m1"]);
    // Those that do not answer may have theirs.
    let all_but = |silent: Option<Presence>| vec![Some(NOTHING), silent, Some(NOTHING), None];
    let found = refusals((&made, None), &up(&made), &all_but(None));
    assert_eq!(told(&found), ["etcd-member: m0 m2"]);
    // Where nobody has data there is nothing to be harmed.
    let found = refusals((&made, None), &up(&made), &all_but(Some(NOTHING)));
    assert_eq!(told(&found), [""; 0]);
    // A member that does not answer is not an emptied one.
    let mut observed = seen(&made, &made);
    observed[1] = None;
    assert_eq!(
        told(&refusals((&made, None), &up(&made), &observed)),
        [""; 0]
    );
}

/// The directories of data and write-ahead log in a machine's configuration.
type Configured = Option<(&'static str, Option<&'static str>)>;

/// What a machine says that has a member's data, and an earlier run of the cluster on it.
fn with_data_in(own: &Record, directories: Configured) -> Option<Presence> {
    let answer = include_bytes!("../../../host/src/facts/answers/debian.txt");
    let now = std::time::SystemTime::now();
    let mut facts = hatchery_host::facts::parse(answer, now, now).unwrap();
    facts.entries = vec!["/var/lib/etcd/default.etcd/member".to_owned()];
    let (data, wal) = directories.unzip();
    let settings = [("ETCD_DATA_DIR", data), ("ETCD_WAL_DIR", wal.flatten())];
    let settings = settings.into_iter().filter_map(|(name, path)| {
        let path = path?.to_owned();
        let is_used = name == "ETCD_DATA_DIR";
        Some((name.to_owned(), ConfiguredDirectory { path, is_used }))
    });
    facts.directories = settings.collect();
    let managed = Managed {
        cluster: Some((own.uid().to_owned(), "lab".to_owned())),
        resources: Vec::new(),
    };
    Presence::new(&own.identity(), &Ok((facts, managed)))
}

#[test]
fn a_member_that_has_data_keeps_its_directories() {
    let usual = "/var/lib/etcd/default.etcd";
    let table: [(&str, Configured, bool); 16] = [
        ("", None, true),
        ("", Some((usual, None)), true),
        ("ETCD_DATA_DIR: /var/lib/etcd/default.etcd/", None, true),
        ("ETCD_DATA_DIR: default.etcd", None, true),
        ("ETCD_DATA_DIR: /srv/etcd", None, false),
        ("ETCD_DATA_DIR: /srv/etcd", Some((usual, None)), false),
        ("ETCD_DATA_DIR: /srv/etcd", Some(("/srv/etcd/", None)), true),
        ("data_dir: /srv/etcd/", Some(("/srv/etcd", None)), true),
        ("", Some(("/srv/etcd", None)), false),
        ("ETCD_WAL_DIR: /wal", Some((usual, None)), false),
        ("ETCD_WAL_DIR: /wal/", Some((usual, Some("/wal"))), true),
        ("ETCD_WAL_DIR: /wal", Some((usual, Some("/other"))), false),
        ("", Some((usual, Some("/wal"))), false),
        ("ETCD_WAL_DIR: ''", Some((usual, None)), true),
        (
            "",
            Some((usual, Some("/var/lib/etcd/default.etcd/member/wal"))),
            true,
        ),
        ("ETCD_QUOTA_BACKEND_BYTES: '1'", Some((usual, None)), true),
    ];
    for (arguments, found, is_same) in table {
        let wanted = cluster(&format!(
            "masters: {}\nconfig-extra-args: [{{name: etcd, extra-args: {{{arguments}}}}}]\n",
            machines(&["m0", "m1", "m2"])
        ));
        // The data is somebody's, whether or not the API ever answered.
        for record in [up(&wanted), begun(&wanted)] {
            let there = with_data_in(&record, found);
            let observed = [there.clone(), None, there];
            let refusals = refusals((&wanted, None), &record, &observed);
            let expected: &[&str] = if is_same { &[] } else { &["etcd-data: m0 m2"] };
            assert_eq!(
                told(&refusals),
                expected,
                "{arguments} {found:?}: {refusals:#?}"
            );
        }
    }
    let wanted = cluster(
        "masters: [{name: m0, ip: 10.0.0.1}]\nconfig-extra-args: [{name: etcd, extra-args: {ETCD_DATA_DIR: /srv/etcd}}]\n",
    );
    let record = up(&wanted);
    let observed = [with_data_in(&record, None)];
    let text = &refusals((&wanted, None), &record, &observed)[0].message;
    assert_eq!(
        text,
        "its etcd has its data in /var/lib/etcd/default.etcd, and the file says /srv/etcd, where it would begin with an \
         empty database"
    );
}

#[test]
fn what_cleanup_began_it_has_to_finish() {
    let made = file("m0 m1 m2 / w0 w1");
    let mut record = up(&made);
    record.removing = true;
    record.release(|claim| ["m1", "w0"].contains(&claim.name.as_str()));
    let found = refusals((&made, None), &record, &[]);
    assert_eq!(told(&found), ["removing: m1 w0"]);
    // One that only its machines tell to be a cluster is one.
    let mut begun = begun(&made);
    begun.begin_removal();
    let found = refusals((&made, None), &begun, &seen(&made, &made));
    assert_eq!(told(&found), ["removing: m0 m1 m2 w0 w1"]);
    // One that never was can be made of what is left.
    let bare = vec![Some(NOTHING); 5];
    assert_eq!(told(&refusals((&made, None), &begun, &bare)), [""; 0]);
    // Without masters and members there is no cluster any more: another one may be made.
    record.release(|claim| claim.name == "w0");
    let found = refusals((&file("m0 / w0"), None), &record, &[]);
    assert_eq!(told(&found), [""; 0]);
    let found = refusals((&file("m0"), None), &record, &[]);
    assert_eq!(told(&found), ["machine-dropped: w0"]);
}

/// Names of one kind, such as `m0 m3`.
fn names(kind: &'static str, least: usize) -> impl Strategy<Value = String> {
    prop::collection::btree_set(0_u32..6, least..6).prop_map(move |numbers| {
        let names: Vec<_> = numbers
            .iter()
            .map(|number| format!("{kind}{number}"))
            .collect();
        names.join(" ")
    })
}

/// Masters that may be workers, workers, and etcd members of their own or on the masters.
fn any_file() -> impl Strategy<Value = String> {
    let etcds = prop::option::of(names("e", 1));
    (names("m", 1), any::<bool>(), names("w", 0), etcds).prop_map(
        |(masters, too, workers, etcds)| {
            let also = if too { masters.as_str() } else { "" };
            let etcds = etcds.map_or_else(String::new, |etcds| format!(" / {etcds}"));
            format!("{masters} / {also} {workers}{etcds}")
        },
    )
}

fn members(cluster: &Cluster) -> Vec<String> {
    let mut names: Vec<_> = cluster.etcds().map(|one| one.name.to_string()).collect();
    names.sort();
    names
}

proptest! {
    #[test]
    fn a_file_that_only_adds_workers_is_never_refused(made in any_file(), more in names("x", 0)) {
        let mut parts: Vec<_> = made.split(" / ").map(str::to_owned).collect();
        // Also machines that are there already.
        parts[1] += &format!(" {more}");
        let (made, wanted) = (file(&made), file(&parts.join(" / ")));
        let current = versions("1.37.1", "3.6.4");
        for observed in [Vec::new(), seen(&made, &wanted)] {
            let found = refusals((&wanted, Some(&current)), &up(&made), &observed);
            prop_assert!(found.is_empty(), "{:#?}", found);
        }
    }

    #[test]
    fn other_members_of_a_cluster_that_is_up_are_always_refused(made in any_file(), wanted in any_file()) {
        let (made, wanted) = (file(&made), file(&wanted));
        prop_assume!(members(&made) != members(&wanted));
        let observed = seen(&made, &wanted);
        // Whoever remembers it, and whoever only sees it.
        prop_assert!(!refusals((&wanted, None), &up(&made), &[]).is_empty());
        prop_assert!(!refusals((&wanted, None), &up(&made), &observed).is_empty());
        prop_assert!(!refusals((&wanted, None), &begun(&made), &observed).is_empty());
    }
}
