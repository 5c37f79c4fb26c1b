//! Which cluster it is.

use super::*;

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
    assert!(list(&place.home().join("none")).await.unwrap().is_empty());
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
    let listed = list(place.home()).await.unwrap();
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
