//! Files of which only the machine has the bytes.

use hatchery_host::{
    content::{Content, Hash},
    machine::{Error, ManagedResource, Outcome},
    operation::{Access, File, Operation},
    transport::memory::Memory,
};

use super::{SOON, file, machine, path, quiet, task};

const KEY: &str = "/etc/ours/leaf.key";
const CERTIFICATE: &str = "/etc/ours/leaf.crt";
const PEM: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// A file as the machine told it.
fn as_it_is(told: &ManagedResource, mode: u16) -> Operation {
    let hash = Hash::parse(told.state.as_deref().unwrap()).unwrap();
    Operation::File(File {
        path: path(&told.name),
        content: Content::known(hash, told.size.unwrap()),
        access: Access::root(mode).unwrap(),
    })
}

#[tokio::test]
async fn what_is_told_is_enough_to_ask_for_it_as_it_is() {
    let memory = Memory::new("m1");
    let machine = machine(&memory);
    let first = task("role", vec![file(KEY, "secret"), file(CERTIFICATE, PEM)]);
    machine.apply(&first, &quiet).await.unwrap();
    let (_, managed) = machine.facts(SOON).await.unwrap();
    assert_eq!(managed.resources, memory.resources());
    let told = |name| {
        let mut all = managed.resources.iter();
        all.find(|found| found.name == name).unwrap()
    };
    assert_eq!(told(CERTIFICATE).text.as_deref(), Some(PEM));
    assert_eq!(told(KEY).text, None);
    assert_eq!(told(KEY).put, told(KEY).state);

    let again = task(
        "role",
        vec![
            as_it_is(told(KEY), 0o600),
            as_it_is(told(CERTIFICATE), 0o644),
        ],
    );
    let report = machine.apply(&again, &quiet).await.unwrap();
    // Only the mode of the key was another, and no bytes were needed for that.
    assert_eq!(report.outcomes, [Outcome::Changed, Outcome::Unchanged]);
    assert_eq!(report.round_trips, 1);
    assert!(memory.paths()[KEY].starts_with("600 root root"));
    assert_eq!(&memory.file(KEY).unwrap()[..], b"secret");
    assert_eq!(machine.apply(&again, &quiet).await.unwrap().changes(), 0);
}

#[tokio::test]
async fn a_file_that_became_another_fails_the_task_before_anything_is_done() {
    let memory = Memory::new("m1");
    let machine = machine(&memory);
    machine
        .apply(&task("role", vec![file(KEY, "secret")]), &quiet)
        .await
        .unwrap();
    let told = memory.resources();
    let told = told.iter().find(|found| found.name == KEY).unwrap();
    let wanted = task(
        "role",
        vec![file("/etc/ours/other", "x"), as_it_is(told, 0o600)],
    );
    memory.write(KEY, *b"SECRET").unwrap();
    let before = memory.paths();
    let error = machine.apply(&wanted, &quiet).await.unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "m1: file /etc/ours/leaf.key changed on the machine during the check"
    );
    assert!(error.remedy().unwrap().starts_with("run the command again"));
    assert_eq!(memory.paths(), before);
    assert_eq!(memory.log().asked, ["apply", "apply", "apply"]);
}
