//! A plan that was saved is what is done, or nothing is.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{bench::Bench, planned::machines, secrets};

/// Of a cluster of one master and one worker to which nothing has to be done.
pub(crate) async fn is_done_or_nothing_is(bench: &Bench) {
    let path = bench.home().join("the.plan");
    let saved = path.display().to_string();
    let save = format!("plan --save {saved}");
    let (master, worker) = (&bench.machine(0).name, &bench.machine(1).name);

    // A secret is among what changes.
    let by_hand = "grep -c 'by hand' /var/lib/kubelet/config.yaml || :";
    bench
        .inside(1, "echo '# by hand' >>/var/lib/kubelet/config.yaml")
        .await;
    bench
        .inside(
            0,
            "echo '# by hand' >>/etc/kubernetes/encryption-config.yaml",
        )
        .await;
    let told = bench.hatchery(0, &save);
    assert!(told.contains(&format!("deploy --plan {saved}")), "{told}");
    let text = fs::read_to_string(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(text.contains("encryption-config.yaml"), "{text}");
    assert!(text.contains("# by hand"), "{text}");
    let key = fs::read_to_string(bench.lab.key()).unwrap();
    let key = key.lines().nth(1).unwrap();
    assert!(
        !text.contains(key) && !text.contains("PRIVATE KEY"),
        "{text}"
    );
    secrets::are_nowhere(bench, &[&told, &text]).await;

    // Something else changes.
    bench.inside(0, "systemctl stop kube-scheduler").await;
    let running = bench.started().await;
    let refused = bench.hatchery_alone(2, &["deploy", "--plan", &saved]);
    for words in [
        "something has changed since the plan",
        &format!("new: {master}: master: ~ unit kube-scheduler.service: "),
        "nothing was changed",
        "plan --save",
    ] {
        assert!(refused.contains(words), "{words:?} is not in: {refused}");
    }
    assert!(!refused.contains("config.yaml"), "{refused}");
    assert_eq!(bench.started().await, running);
    assert_eq!(bench.inside(1, by_hand).await, "1\n");

    // Nothing has changed any more.
    bench.inside(0, "systemctl start kube-scheduler").await;
    let planned = bench.planned(bench.file());
    assert_eq!(machines(&planned.tasks), [0, 1]);
    let done = bench.hatchery_alone(0, &["deploy", "--plan", &saved, "-o", "json"]);
    assert_eq!(bench.changed(&done), planned.tasks, "{done}");
    assert_eq!(bench.inside(1, by_hand).await, "0\n");
    bench.hatchery(0, "plan --exit-code");
    let twice = bench.hatchery_alone(2, &["deploy", "--plan", &saved]);
    let no_longer = format!("no longer: {worker}: worker: ~ file /var/lib/kubelet/config.yaml: ");
    assert!(twice.contains(&no_longer), "{twice}");

    // The file is not the same, though it means the same.
    bench.hatchery(0, &save);
    let text = fs::read_to_string(bench.file()).unwrap();
    fs::write(bench.file(), format!("{text}# by hand\n")).unwrap();
    let edited = bench.hatchery_alone(2, &["deploy", "--plan", &saved]);
    let words = format!("the deploy file {} was edited", bench.file().display());
    assert!(edited.contains(&words), "{edited}");
    fs::write(bench.file(), text).unwrap();
    let nothing = bench.hatchery_alone(0, &["deploy", "--plan", &saved]);
    assert!(nothing.contains("nothing had to be changed"), "{nothing}");

    fs::write(&path, "{}").unwrap();
    let broken = bench.hatchery_alone(2, &["deploy", "--plan", &saved]);
    assert!(broken.contains("cannot read the plan"), "{broken}");
    fs::remove_file(&path).unwrap();
}
