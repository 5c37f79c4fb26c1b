//! What goes wrong on the machine, and on the way to it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hatchery_host::{
    machine::{Error, Event, Outcome},
    privilege::Privilege,
    transport::{
        Exit,
        faulty::{Fault, FaultyConnector},
        memory::{At, Failure, Memory},
    },
};

use crate::{SOON, everything, file, furnished, machine, quiet, reached, task};

#[tokio::test]
async fn a_step_fails_with_its_output() {
    let memory = furnished();
    let machine = machine(&memory);
    let output = "unit entered failed state".to_owned();
    memory.inject(Failure::Fail {
        at: "unit ours.service".into(),
        output: output.clone(),
    });
    let task = task("role", everything("first"));
    let Err(Error::Step {
        step,
        output: told,
        report,
        ..
    }) = machine.apply(&task, &quiet).await
    else {
        panic!("it should fail");
    };
    assert_eq!((step.as_str(), told), ("unit ours.service", output));
    assert_eq!(
        report.outcomes[4..7],
        [Outcome::Changed, Outcome::Failed, Outcome::NotReached]
    );
    memory.heal();
    let report = machine.apply(&task, &quiet).await.unwrap();
    assert_eq!(
        report.outcomes[4..7],
        [Outcome::Unchanged, Outcome::Changed, Outcome::Changed]
    );

    let why = "Device or resource busy".to_owned();
    memory.inject(Failure::Fail {
        at: "directory /var/lib/ours".into(),
        output: why.clone(),
    });
    let undone = machine.undo(&[], SOON).await.unwrap();
    assert_eq!(
        (undone.left[0].resource.as_str(), &undone.left[0].reason),
        ("directory /var/lib/ours", &why)
    );
    memory.heal();
    machine.undo(&[], SOON).await.unwrap();
    assert!(memory.is_untouched());
}

#[tokio::test]
async fn a_full_disk() {
    let memory = Memory::new("m1");
    let machine = machine(&memory);
    memory.inject(Failure::DiskFull { after: 200_000 });
    let task = task(
        "role",
        vec![
            file("/etc/small", "x"),
            file("/opt/big", &"x".repeat(300_000)),
        ],
    );
    let error = machine.apply(&task, &quiet).await.unwrap_err();
    let Error::NotBegun {
        exit, complaint, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(*exit, Exit::Code(97));
    assert!(complaint.contains("No space left on device"), "{complaint}");
    assert!(error.remedy().unwrap().contains("free some space"));
    assert_eq!(memory.file("/etc/small"), None);
    memory.heal();
    machine.apply(&task, &quiet).await.unwrap();
    assert_eq!(memory.file("/opt/big").unwrap().len(), 300_000);
}

#[tokio::test]
async fn a_machine_of_another_cluster_is_refused() {
    let memory = Memory::new("m1");
    memory.hold_for("c2", "theirs");
    let machine = machine(&memory);
    let task = task("role", vec![file("/etc/x", "x")]);
    for error in [
        machine.apply(&task, &quiet).await.unwrap_err(),
        machine.look(&task).await.unwrap_err(),
        machine.undo(&[], SOON).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Held { cluster, name, .. } if cluster == "c2" && name == "theirs"),
            "{error}"
        );
    }
    assert_eq!(memory.file("/etc/x"), None);
}

#[tokio::test]
async fn a_busy_machine_is_waited_for() {
    let memory = Memory::new("m1");
    let machine = machine(&memory);
    let task = task("role", vec![file("/etc/x", "x")]);
    memory.inject(Failure::Busy {
        run: "theirs".into(),
    });
    let error = machine.apply(&task, &quiet).await.unwrap_err();
    assert!(
        matches!(&error, Error::Busy { run, .. } if run == "theirs"),
        "{error}"
    );
    // What the other run may still change is not told.
    assert!(!machine.look(&task).await.unwrap().is_settled);
    let waited = Mutex::new(false);
    let watch = |event: Event<'_>| {
        if matches!(event, Event::Waiting { run: "theirs" }) {
            *waited.lock().unwrap() = true;
            memory.heal();
        }
    };
    machine.apply(&task, &watch).await.unwrap();
    assert!(*waited.lock().unwrap());
    assert!(machine.look(&task).await.unwrap().is_unchanged());
}

#[tokio::test]
async fn a_hung_step_ends_the_wait_and_is_fenced_off_later() {
    let memory = Memory::new("m1");
    let first = machine(&memory);
    memory.inject(Failure::Hang {
        at: "/etc/b".into(),
    });
    let mut work = task("role", vec![file("/etc/a", "x"), file("/etc/b", "x")]);
    work.deadline = Duration::from_millis(300);
    let error = first.apply(&work, &quiet).await.unwrap_err();
    assert!(
        matches!(&error, Error::Deadline { step, .. } if step == "file /etc/b"),
        "{error}"
    );

    work.deadline = SOON;
    let second = machine(&memory);
    let error = second.apply(&work, &quiet).await.unwrap_err();
    assert!(
        matches!(error, Error::Busy { .. }),
        "somebody may still listen: {error}"
    );

    first.disconnect().await;
    let fenced = Mutex::new(false);
    let watch = |event: Event<'_>| {
        if matches!(event, Event::Fenced { .. }) {
            *fenced.lock().unwrap() = true;
        }
    };
    let report = second.apply(&work, &watch).await.unwrap();
    assert!(*fenced.lock().unwrap());
    assert_eq!(report.outcomes, [Outcome::Unchanged, Outcome::Changed]);
}

#[tokio::test]
async fn a_run_that_lost_its_connection_is_decided_by_the_machine() {
    let work = || {
        task(
            "role",
            vec![
                file("/etc/a", "x"),
                file("/etc/b", "x"),
                file("/etc/c", "x"),
            ],
        )
    };
    let b = || At::from("/etc/b");
    for (failure, asked, outcome) in [
        // The script went on: its own report is the answer.
        (
            Failure::Drop { at: b() },
            &["apply", "apply", "outcome"][..],
            Outcome::Changed,
        ),
        // It died: done again, and what was done before is found.
        (
            Failure::DieBefore { at: b() },
            &["apply", "apply", "outcome", "apply"],
            Outcome::Changed,
        ),
        (
            Failure::DieAfter { at: b() },
            &["apply", "apply", "outcome", "apply"],
            Outcome::Unchanged,
        ),
    ] {
        let memory = Memory::new("m1");
        let machine = machine(&memory);
        memory.inject(failure.clone());
        let lost = Mutex::new(0);
        let watch = |event: Event<'_>| {
            if matches!(event, Event::Lost { .. }) {
                *lost.lock().unwrap() += 1;
            }
        };
        let report = machine.apply(&work(), &watch).await.unwrap();
        assert_eq!(*lost.lock().unwrap(), 1, "{failure:?}");
        assert_eq!(report.outcomes[1], outcome, "{failure:?}");
        assert_eq!(report.outcomes[2], Outcome::Changed, "{failure:?}");
        assert_eq!(memory.log().asked, asked, "{failure:?}");
        assert_eq!(memory.log().connections, 2, "{failure:?}");

        memory.inject(Failure::DieAfter { at: b() });
        machine.undo(&[], SOON).await.unwrap();
        assert!(memory.is_untouched(), "{failure:?}");
    }
}

#[tokio::test]
async fn faults_on_the_way_compose_with_it() {
    let content = "x".repeat(100_000);
    let work = task("role", vec![file("/etc/a", &content), file("/etc/b", "x")]);
    for bytes in [10, 40_000, 100_000, 150_000, 200_000] {
        let memory = Memory::new("m1");
        let faults = [
            Some(Fault::DropAfterWritten(bytes)),
            Some(Fault::Refuse),
            Some(Fault::DropAfterRead(70)),
        ];
        let connector = FaultyConnector::new(Arc::new(memory.clone()), faults);
        let machine = reached(Arc::new(connector), Privilege::Root, "c1");
        machine.apply(&work, &quiet).await.unwrap();
        assert_eq!(memory.file("/etc/a").unwrap().len(), 100_000, "{bytes}");
        machine.undo(&[], SOON).await.unwrap();
        assert!(memory.is_untouched(), "{bytes}");
    }
    let memory = Memory::new("m1");
    let connector = FaultyConnector::new(
        Arc::new(memory.clone()),
        [Some(Fault::WrongAnswer(b"welcome\n".to_vec()))],
    );
    let machine = reached(Arc::new(connector), Privilege::Root, "c1");
    assert!(machine.apply(&work, &quiet).await.is_err());
}
