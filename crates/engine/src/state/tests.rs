//! Values, their exchange and their files; beside them the lock, the record and the logs.

mod crash;
mod record;
mod run_log;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use time::OffsetDateTime;

use super::*;
use hatchery_spec::value::Name;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

fn holder(command: &str) -> Holder {
    Holder::this_process(command, now())
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn home(&self) -> &Path {
        self.0.path()
    }

    fn directory(&self) -> Directory {
        Directory::new(self.home(), &name("demo"))
    }
}

const KEY: Key = Key::new("pki/ca.key");

async fn read(store: &dyn Store, key: Key) -> Option<String> {
    let value = store.read(key).await.unwrap()?;
    Some(String::from_utf8(value.bytes.expose_secret().to_vec()).unwrap())
}

async fn write(store: &dyn Store, text: &str, expected: Expected) -> Result<Revision, Error> {
    store
        .write(KEY, text.as_bytes().to_vec().into(), expected)
        .await
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// The names in a directory that are not kept for good.
fn unfinished(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".writing")).collect()
}

#[tokio::test]
async fn values_are_exchanged_only_against_what_was_read() {
    let place = Place::new();
    let store = place.directory();
    assert_eq!(read(&store, KEY).await, None);
    assert!(!store.path().exists(), "reading makes nothing");

    let first = write(&store, "one", Expected::Nothing).await.unwrap();
    let conflict = write(&store, "two", Expected::Nothing).await.unwrap_err();
    assert!(
        matches!(conflict, Error::Conflict { key: KEY, .. }),
        "{conflict}"
    );
    let second = write(&store, "two", Expected::Unchanged(first.clone()))
        .await
        .unwrap();
    assert_ne!(first, second);
    let late = write(&store, "three", Expected::Unchanged(first))
        .await
        .unwrap_err();
    assert!(matches!(late, Error::Conflict { .. }), "{late}");
    assert_eq!(read(&store, KEY).await.as_deref(), Some("two"));
    assert_eq!(store.read(KEY).await.unwrap().unwrap().revision, second);
    write(&store, "", Expected::Anything).await.unwrap();
    assert_eq!(read(&store, KEY).await.as_deref(), Some(""));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_count_none_is_lost() {
    let place = Place::new();
    let count = |store: Directory| async move {
        for _ in 0..10 {
            loop {
                let (number, expected) = match store.read(KEY).await.unwrap() {
                    Some(value) => {
                        let text = String::from_utf8(value.bytes.expose_secret().to_vec());
                        let number: u32 = text.unwrap().parse().unwrap();
                        (number, Expected::Unchanged(value.revision))
                    }
                    None => (0, Expected::Nothing),
                };
                match write(&store, &(number + 1).to_string(), expected).await {
                    Ok(_) => break,
                    Err(Error::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    let all: Vec<_> = (0..4)
        .map(|_| tokio::spawn(count(place.directory())))
        .collect();
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(read(&place.directory(), KEY).await.as_deref(), Some("40"));
}

#[tokio::test]
async fn nobody_else_can_read_what_is_kept() {
    let place = Place::new();
    let store = place.directory();
    write(&store, "secret", Expected::Nothing).await.unwrap();
    let _lock = store.lock(holder("deploy")).await.unwrap();
    RunLog::begin(&store, now()).unwrap().event(&"x").unwrap();
    let mut seen = 0;
    let mut left = vec![store.path().to_owned()];
    while let Some(path) = left.pop() {
        let directory = path.is_dir();
        assert_eq!(
            mode(&path),
            if directory { 0o700 } else { 0o600 },
            "{path:?}"
        );
        seen += 1;
        if directory {
            left.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    assert!(seen >= 8, "{seen}");

    // As after a backup was unpacked.
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(read(&store, KEY).await.as_deref(), Some("secret"));
    assert_eq!(mode(store.path()), 0o700);
    let shown = format!("{:?}", store.read(KEY).await.unwrap());
    assert!(
        !shown.contains("secret") && !shown.contains("115, 101"),
        "{shown}"
    );
}

#[tokio::test]
async fn directories_that_others_can_exchange_are_refused() {
    let place = Place::new();
    let elsewhere = place.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();

    let home = place.home().join("linked-cluster");
    fs::create_dir_all(home.join("clusters")).unwrap();
    symlink(&elsewhere, home.join("clusters/demo")).unwrap();
    let store = Directory::new(&home, &name("demo"));
    for refused in [
        write(&store, "secret", Expected::Nothing).await.map(|_| ()),
        store.lock(holder("deploy")).await.map(|_| ()),
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::Unsafe { .. }), "{refused}");
        assert!(refused.remedy().unwrap().contains("--home"));
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    let home = place.home().join("open");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Directory::new(&home, &name("demo")).make().unwrap_err();
    assert!(
        refused.to_string().contains("writable for every user"),
        "{refused}"
    );

    // A home on another disk.
    symlink(&elsewhere, place.home().join("linked-home")).unwrap();
    Directory::new(&place.home().join("linked-home"), &name("demo"))
        .make()
        .unwrap();
    assert!(elsewhere.join("clusters/demo").is_dir());

    // Only root can give a directory away.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(elsewhere.join("clusters/demo"), Some(54321), None).unwrap();
        let refused = Directory::new(&elsewhere, &name("demo"))
            .make()
            .unwrap_err();
        assert!(
            refused.to_string().contains("another user, 54321"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn one_run_at_a_time() {
    let place = Place::new();
    let store = place.directory();
    let lock = store.lock(holder("deploy")).await.unwrap();
    let refused = store.lock(holder("join")).await.unwrap_err();
    let Error::Locked {
        holder: Some(found),
    } = &refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(*found, holder("deploy"));
    let told = refused.to_string();
    let pid = std::process::id();
    assert!(
        told.contains(&format!("deploy, process {pid} on "))
            && told.ends_with("since 2027-01-15T08:00:00Z"),
        "{told}"
    );
    // Another cluster is another matter.
    let other = Directory::new(place.home(), &name("other"));
    let _other = other.lock(holder("deploy")).await.unwrap();

    drop(lock);
    let _lock = store.lock(holder("join")).await.unwrap();
    let Err(Error::Locked {
        holder: Some(found),
    }) = store.lock(holder("x")).await
    else {
        panic!("it is held")
    };
    assert_eq!(found.command, "join");
}

#[tokio::test]
async fn a_lock_file_full_of_nonsense_is_no_obstacle() {
    let place = Place::new();
    let store = place.directory();
    store.make().unwrap();
    fs::write(store.path().join("lock"), [0xff; 5000]).unwrap();
    let lock = store.lock(holder("deploy")).await.unwrap();
    fs::write(store.path().join("lock"), "{}").unwrap();
    let refused = store.lock(holder("join")).await.unwrap_err();
    assert!(
        matches!(refused, Error::Locked { holder: None }),
        "{refused:?}"
    );
    drop(lock);
}

#[tokio::test]
async fn a_removed_cluster_is_gone_wholly() {
    let place = Place::new();
    let store = place.directory();
    Record::find_or_make(&store, &name("demo"), now())
        .await
        .unwrap();
    write(&store, "secret", Expected::Nothing).await.unwrap();
    RunLog::begin(&store, now()).unwrap();
    let lock = store.lock(holder("cleanup")).await.unwrap();
    store.remove(lock).await.unwrap();
    assert_eq!(
        fs::read_dir(place.home().join("clusters")).unwrap().count(),
        0
    );
    assert!(list(&Home::new(place.home())).await.unwrap().is_empty());

    // The next one of this name is another cluster with another lock.
    let _lock = store.lock(holder("deploy")).await.unwrap();
    assert_eq!(read(&store, KEY).await, None);
}

#[tokio::test]
async fn what_is_left_of_a_removal_is_no_cluster_and_goes_with_the_next_run() {
    let place = Place::new();
    let store = place.directory();
    Record::find_or_make(&store, &name("demo"), now())
        .await
        .unwrap();
    let left = place.home().join("clusters/.removed-abc");
    fs::rename(store.path(), &left).unwrap();
    assert!(list(&Home::new(place.home())).await.unwrap().is_empty());
    assert_eq!(Record::find(&store, &name("demo")).await.unwrap(), None);
    let _lock = store.lock(holder("deploy")).await.unwrap();
    assert!(!left.exists());
}
