//! What only shows when machines are seen together, or when they do not answer.

use super::*;

#[test]
fn a_machine_of_another_cluster_gives_that_alone() {
    let mut facts = facts_of(DEBIAN);
    facts.arch = Some(facts::Arch::Arm64);
    let theirs = Managed {
        cluster: Some(("c2".into(), "other".into())),
        ..Managed::default()
    };
    let found = judged("", "m0", facts, theirs);
    let [finding] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((finding.severity, finding.code), (Bad, "held"));
    assert_eq!(finding.message, "is held by another cluster, other (c2)");
}

#[test]
fn a_namesake_is_another_cluster_and_perhaps_forgotten_here() {
    let theirs = Managed {
        cluster: Some(("c2".into(), "demo".into())),
        ..Managed::default()
    };
    let found = judged("", "m0", facts_of(DEBIAN), theirs);
    assert_eq!(found[0].message, "is held by another cluster, demo (c2)");
    let remedy = found[0].remedy.as_deref().unwrap();
    assert!(
        remedy.contains("--home") && remedy.contains("backup"),
        "{remedy}"
    );
}

#[test]
fn machines_that_did_not_answer_are_told_together() {
    let cluster = cluster("");
    let refused = |host: &str| -> Reply {
        Err(Error::Transport {
            source: transport::Error::Authentication {
                host: host.into(),
                user: "root".into(),
                tried: vec!["password (refused)".into()],
                offered: vec!["password".into()],
            },
        })
    };
    let late = Err(Error::Deadline {
        host: "b0".into(),
        step: "facts".into(),
        after: Duration::from_secs(20),
    });
    let replies = [refused("m0"), refused("w0"), late];
    let answers: Vec<_> = cluster.machines().iter().zip(&replies).collect();
    let found = check_machines(&cluster, &own(), &answers);
    let shown: Vec<_> = found
        .iter()
        .map(|f| (f.code, f.machines.join(" "), f.message.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (
                "login",
                "m0 w0".into(),
                "does not let root in: tried password (refused); it offers password"
            ),
            ("no-answer", "b0".into(), "did not answer within 20 s"),
        ]
    );
    assert!(
        found
            .iter()
            .all(|finding| finding.severity == Bad && finding.remedy.is_some())
    );
}

/// What is found of master and worker together.
fn pair(change: impl Fn(&mut Facts, &mut Facts)) -> Vec<(Severity, &'static str, String, String)> {
    let cluster = cluster("");
    let (mut one, mut other) = (facts_of(DEBIAN), facts_of(RPM));
    other.names.hostname = Some("machine-2".into());
    other.identity.boot_id = Some("0".repeat(36));
    change(&mut one, &mut other);
    let replies = [
        Ok((one, Managed::default())),
        Ok((other, Managed::default())),
    ];
    let answers: Vec<_> = cluster.machines().iter().zip(&replies).collect();
    let found = check_machines(&cluster, &own(), &answers);
    let found = found
        .into_iter()
        .filter(|f| !["container", "capabilities", "program"].contains(&f.code));
    found
        .map(|f| (f.severity, f.code, f.machines.join(" "), f.message))
        .collect()
}

#[test]
fn machines_that_share_what_they_must_not() {
    assert_eq!(pair(|_, _| ()), []);
    let one = |change: &dyn Fn(&mut Facts, &mut Facts), severity, code| {
        let found = pair(change);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].0, found[0].1, found[0].2.as_str()),
            (severity, code, "m0 w0")
        );
    };
    one(
        &|a, b| b.identity.machine_id.clone_from(&a.identity.machine_id),
        Warning,
        "machine-id",
    );
    one(
        &|a, b| b.names.hostname.clone_from(&a.names.hostname),
        Warning,
        "hostname",
    );
    let mac = |a: &mut Facts, b: &mut Facts| {
        let mac = a.interfaces.as_ref().unwrap()[1].mac.clone();
        b.interfaces.as_mut().unwrap()[1].mac = mac;
    };
    one(&mac, Warning, "mac");
    let uuid = |a: &mut Facts, b: &mut Facts| {
        for facts in [a, b] {
            facts.confinement.container = None;
            facts.identity.product_uuid = Some("1".repeat(36));
        }
    };
    one(&uuid, Warning, "product-uuid");
    let same = |a: &mut Facts, b: &mut Facts| {
        b.identity = a.identity.clone();
        mac(a, b);
    };
    one(&same, Bad, "same-machine");
}

#[test]
fn clocks() {
    let clock = |seconds: i64| {
        Some(Clock {
            ahead_micros: seconds * 1_000_000,
            uncertainty_micros: 100_000,
            zone_minutes: None,
        })
    };
    let set =
        |one: i64, other: i64| pair(move |a, b| (a.clock, b.clock) = (clock(one), clock(other)));
    let told = |found: Vec<(Severity, &'static str, String, String)>| -> Vec<(Severity, String)> {
        found
            .into_iter()
            .map(|(severity, _, machines, message)| (severity, format!("{machines} {message}")))
            .collect()
    };
    assert_eq!(set(2, -2), []);
    assert_eq!(
        told(set(4, -4)),
        [(Warning, "m0 w0 have clocks 7 s apart".into())]
    );
    assert_eq!(
        told(set(10, 0)),
        [(
            Warning,
            "m0 has a clock 10 s ahead of this machine's".into()
        )]
    );
    assert_eq!(
        told(set(0, -7200)),
        [(Bad, "w0 has a clock 2 h behind this machine's".into())]
    );
    assert_eq!(set(300, 300).len(), 1, "said once of both");
}
