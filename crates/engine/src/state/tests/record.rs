//! Which cluster it is.

use super::*;
use crate::{package::Release, versions::Versions};

#[tokio::test]
async fn a_cluster_keeps_its_id_and_no_two_have_the_same() {
    let place = Place::new();
    let store = place.directory();
    assert_eq!(Record::find(&store, &name("demo")).await.unwrap(), None);
    assert!(!store.path().exists(), "looking makes nothing");
    let made = Record::find_or_make(&store, &name("demo"), now())
        .await
        .unwrap();
    let later = now() + time::Duration::DAY;
    let found = Record::find_or_make(&store, &name("demo"), later)
        .await
        .unwrap();
    assert_eq!(made, found);
    assert_eq!((found.name(), found.created()), ("demo", now()));
    let identity = found.identity();
    assert_eq!(identity.cluster.as_str(), found.uid());
    assert_eq!(identity.cluster_name.as_str(), "demo");

    let elsewhere = Place::new();
    let other = Record::find_or_make(&elsewhere.directory(), &name("demo"), now()).await;
    assert_ne!(other.unwrap().uid(), found.uid());
    let text = read(&store, Key::CLUSTER).await.unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["uid"].as_str().unwrap().len(), 32);
    assert_eq!(
        (&json["name"], &json["created"]),
        (&"demo".into(), &"2027-01-15T08:00:00Z".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_begin_at_once_make_one_cluster() {
    let place = Place::new();
    let make = |store: Directory| async move {
        let record = Record::find_or_make(&store, &name("demo"), now()).await;
        record.unwrap().uid().to_owned()
    };
    let all: Vec<_> = (0..8)
        .map(|_| tokio::spawn(make(place.directory())))
        .collect();
    let mut uids = Vec::new();
    for one in all {
        uids.push(one.await.unwrap());
    }
    uids.dedup();
    assert_eq!(uids.len(), 1);
}

#[tokio::test]
async fn what_is_damaged_or_copied_is_refused() {
    let place = Place::new();
    let store = place.directory();
    Record::find_or_make(&store, &name("demo"), now())
        .await
        .unwrap();
    let good = read(&store, Key::CLUSTER).await.unwrap();
    let file = store.path().join("cluster.json");
    for bad in [
        String::new(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"uid\": \"", "\"uid\": \"../"),
        good.replace("\"uid\": \"", "\"uid\": \"0"),
        good.replace("demo", "de mo"),
        good.replace("2027", "never"),
    ] {
        fs::write(&file, &bad).unwrap();
        for found in [
            Record::find(&store, &name("demo")).await.map(|_| ()),
            Record::find_or_make(&store, &name("demo"), now())
                .await
                .map(|_| ()),
        ] {
            let error = found.unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{bad}: {error}");
            assert!(error.to_string().contains("cluster.json"), "{error}");
        }
    }
    fs::write(&file, &good).unwrap();
    let copy = Directory::new(place.home(), &name("copy"));
    fs::create_dir(copy.path()).unwrap();
    fs::copy(&file, copy.path().join("cluster.json")).unwrap();
    let error = Record::find(&copy, &name("copy")).await.unwrap_err();
    assert!(matches!(error, Error::OtherCluster { .. }), "{error}");
    assert!(error.remedy().unwrap().contains("cluster-id demo"));
}

#[tokio::test]
async fn clusters_are_listed_by_name_with_what_is_wrong() {
    let place = Place::new();
    assert!(
        list(&Home::new(place.home().join("none")))
            .await
            .unwrap()
            .is_empty()
    );
    for one in ["beta", "alpha", "gamma"] {
        let store = Directory::new(place.home(), &name(one));
        Record::find_or_make(&store, &name(one), now())
            .await
            .unwrap();
    }
    fs::write(place.home().join("clusters/beta/cluster.json"), "{").unwrap();
    // Somebody only looked at its machines.
    let checked = Directory::new(place.home(), &name("checked"));
    checked.make().unwrap();
    fs::write(checked.path().join("known_hosts"), "").unwrap();
    fs::write(place.home().join("clusters/README"), "").unwrap();
    fs::write(place.home().join("clusters/notes"), "").unwrap();
    let listed = list(&Home::new(place.home())).await.unwrap();
    let shown: Vec<_> = listed
        .iter()
        .map(|one| (one.name.as_str(), one.record.is_ok()))
        .collect();
    assert_eq!(shown, [("alpha", true), ("beta", false), ("gamma", true)]);
}

#[test]
fn nobody_is_no_cluster() {
    let identity = nobody(&name(&"a".repeat(63)));
    let json = serde_json::json!({"uid": identity.cluster, "name": "demo", "created": "2027-01-15T08:00:00Z"});
    serde_json::from_value::<Record>(json).unwrap_err();
}

fn fleet(count: usize) -> hatchery_spec::Cluster {
    let mut text =
        "cluster-id: demo\nnetwork: {podcidr: 10.224.0.0/12}\nmasters: [{name: master-of-the-cluster, ip: 192.168.100.1}]\nworkers:\n"
            .to_owned();
    for number in 1..count {
        let (name, ip) = (
            format!("worker-with-a-rather-long-name-{number}"),
            format!("192.168.{}.{}", 101 + number / 250, 1 + number % 250),
        );
        text += &format!("  - {{name: {name}, ip: {ip}, port: 2222}}\n");
    }
    let reading = hatchery_spec::read(hatchery_spec::Input::private("x.yaml", text.as_bytes()));
    reading.cluster.unwrap()
}

#[tokio::test]
async fn a_thousand_machines_are_remembered_in_little_room() {
    let place = Place::new();
    let store = place.directory();
    let lock = store.lock(holder("deploy")).await.unwrap();
    let cluster = fleet(1000);
    let mut record = Record::new(&name("demo"), now()).unwrap();
    record.claim(cluster.machines());
    record.formed = true;
    record.save(&store, &lock).await.unwrap();
    let text = read(&store, Key::CLUSTER).await.unwrap();
    assert!(text.len() < 400 * 1024, "{}", text.len());
    let found = Record::find(&store, &name("demo")).await.unwrap().unwrap();
    assert_eq!(found, record);
    assert_eq!(found.claims(), Claim::on_all(&cluster));
    assert_eq!(
        found.claims()[999].to_string(),
        "worker-with-a-rather-long-name-999 (root@192.168.104.250, port 2222)"
    );
}

#[tokio::test]
async fn machines_are_claimed_once_and_released_when_they_are_clean() {
    let mut record = Record::new(&name("demo"), now()).unwrap();
    let cluster = fleet(4);
    record.claim(&cluster.machines()[..2]);
    record.claim(cluster.machines());
    assert_eq!(record.claims(), Claim::on_all(&cluster));
    record.formed = true;
    record.removing = true;
    record.release(|claim| claim.name.starts_with("master"));
    assert_eq!(record.claims().len(), 1);
    assert!(record.formed && record.removing);
    record.release(|_| false);
    assert_eq!(record.claims(), []);
    assert!(!record.formed && !record.removing);
}

#[tokio::test]
async fn a_record_of_the_first_form_is_completed_and_one_of_a_later_form_refused() {
    let place = Place::new();
    let store = place.directory();
    let lock = store.lock(holder("deploy")).await.unwrap();
    let file = store.path().join("cluster.json");
    let first = "{\"uid\": \"0123456789abcdef0123456789abcdef\", \"name\": \"demo\", \"created\": \"2027-01-15T08:00:00Z\"}";
    fs::write(&file, first).unwrap();
    let mut record = Record::find(&store, &name("demo")).await.unwrap().unwrap();
    assert_eq!((record.machines.as_ref(), record.formed), (None, false));
    let machines = Claim::on_all(&fleet(2));
    record.complete(machines.clone(), true);
    // Once only: what a record of today says is true.
    record.complete(Vec::new(), true);
    assert_eq!((record.claims(), record.formed), (&machines[..], true));
    record.save(&store, &lock).await.unwrap();
    let text = read(&store, Key::CLUSTER).await.unwrap();
    assert!(text.contains("\"format\": 2"), "{text}");
    assert!(
        text.contains("\"uid\": \"0123456789abcdef0123456789abcdef\""),
        "{text}"
    );

    fs::write(&file, text.replace("\"format\": 2", "\"format\": 3")).unwrap();
    let error = Record::find(&store, &name("demo")).await.unwrap_err();
    assert!(matches!(error, Error::Newer { .. }), "{error}");
    assert!(error.remedy().is_some());
}

fn version(text: &str) -> hatchery_spec::value::Version {
    hatchery_spec::value::Version::parse(text).unwrap()
}

fn versions(kubernetes: &str, etcd: Option<&str>) -> Versions {
    Versions {
        kubernetes: version(kubernetes),
        containerd: None,
        etcd: etcd.and_then(|etcd| Release::parse(etcd).ok()),
        coredns: None,
    }
}

/// Kubernetes and etcd, as text.
fn text(versions: Option<&Brought>) -> Option<(String, Option<String>)> {
    versions.map(|one| {
        (
            one.kubernetes().unwrap().to_string(),
            one.etcd().map(|etcd| etcd.to_string()),
        )
    })
}

fn pair(kubernetes: &str, etcd: &str) -> Option<(String, Option<String>)> {
    Some((kubernetes.to_owned(), Some(etcd.to_owned())))
}

#[test]
fn versions_that_are_not_known_leave_those_that_were() {
    let mut record = Record::new(&name("demo"), now()).unwrap();
    let mut next = |kubernetes: &str, etcd: Option<&str>| {
        record.begin(&versions(kubernetes, etcd));
        record.reach();
        text(record.versions.as_ref())
    };
    assert_eq!(next("1.36.4", Some("3.6.1")), pair("1.36.4", "3.6.1"));
    assert_eq!(next("1.36", None), pair("1.36.4", "3.6.1"));
    assert_eq!(next("1.36.5", None), pair("1.36.5", "3.6.1"));
    assert_eq!(next("1.37", None), pair("1.37", "3.6.1"));
    let said = Brought::said("v1.36.4+k3s1");
    assert_eq!(
        (said.kubernetes(), said.etcd()),
        (Some(version("1.36.4")), None)
    );
}

#[test]
fn what_is_being_brought_runs_only_when_it_was_reached() {
    let mut record = Record::new(&name("demo"), now()).unwrap();
    record.begin(&versions("1.37.1", Some("3.6.4")));
    assert_eq!((record.formed, &record.versions), (false, &None));
    assert_eq!(text(record.bringing.as_ref()), pair("1.37.1", "3.6.4"));
    record.reach();
    assert!(record.formed);
    assert_eq!(text(record.versions.as_ref()), pair("1.37.1", "3.6.4"));
    assert_eq!(record.bringing, None);
    // The same again is nothing new.
    let reached = record.clone();
    record.begin(&versions("1.37.1", Some("3.6.4")));
    assert_eq!(record, reached);
    record.begin(&versions("1.37.2", Some("3.7.0")));
    assert_eq!(record.versions, reached.versions);
    assert_eq!(text(record.bringing.as_ref()), pair("1.37.2", "3.7.0"));
    // Back again, with an etcd that is not known: it may be the newer one.
    record.begin(&versions("1.37", None));
    assert_eq!(text(record.bringing.as_ref()), pair("1.37.1", "3.7.0"));
    record.claim(fleet(2).machines());
    record.release(|_| false);
    assert_eq!((&record.versions, &record.bringing), (&None, &None));
}

#[test]
fn removal_is_noted_where_machines_are_claimed_and_ends_with_making() {
    let mut record = Record::new(&name("demo"), now()).unwrap();
    record.begin_removal();
    assert!(!record.removing, "there is nothing to remove");
    record.claim(fleet(2).machines());
    record.begin_removal();
    assert!(record.removing);
    record.begin(&versions("1.37.1", None));
    assert!(!record.removing);
}

/// It is going to live in a Secret, which holds a megabyte.
#[tokio::test]
async fn that_of_a_thousand_machines_stays_small() {
    let host = |number: usize| {
        format!(
            "{{name: worker-{number:04}.rack-{:02}.example, ip: 10.20.{}.{}, port: 22022}}",
            number % 40,
            number / 250,
            number % 250 + 1
        )
    };
    let hosts: Vec<_> = (0..1000).map(host).collect();
    let text = format!(
        "cluster-id: demo\nusername: operations-team\nnetwork: {{podcidr: 10.128.0.0/12}}\n\
         masters: [{{name: m0, ip: 10.9.9.9}}]\nworkers: [{}]\n",
        hosts.join(", ")
    );
    let reading = hatchery_spec::read(hatchery_spec::Input::private("x", text.as_bytes()));
    let said = reading.diagnostics.render(false);
    let cluster = reading.cluster.unwrap_or_else(|| panic!("{said}"));
    let place = Place::new();
    let store = place.directory();
    let mut record = Record::new(&cluster.id, now()).unwrap();
    record.claim(cluster.machines());
    record.keep(&store).await.unwrap();
    let kept = store.read(Key::CLUSTER).await.unwrap().unwrap();
    let size = kept.bytes.expose_secret().len();
    assert!(size < 512 * 1024, "{size}");
    let found = Record::find(&store, &cluster.id).await.unwrap().unwrap();
    assert_eq!(found.claims().len(), 1001);
}
