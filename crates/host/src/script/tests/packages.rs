//! Packages: which of them are ours, and the services that they bring.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output},
    time::{Duration, Instant},
};

use super::{
    directory, file,
    place::{Place, SHELLS, assert_same, in_memory},
    task,
    transactions::in_place_of,
    unit, word,
};
use crate::{
    operation::{Operation, PackageName, PackageSource, Packages},
    report::Line,
    task::Task,
};

pub(super) fn packages(names: &[&str]) -> Operation {
    let names = names.iter().map(|name| PackageName::new(*name).unwrap());
    Operation::Packages(Packages {
        source: PackageSource::Repository(names.collect()),
    })
}

pub(super) fn apply(place: &Place, task: &Task) {
    let answer = place.apply(task);
    assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
}

pub(super) fn installed(place: &Place) -> String {
    fs::read_to_string(place.root().join("fake/packages")).unwrap()
}

/// The owners of packages and hostnames in the record, by name.
pub(super) fn owners(place: &Place, name: &str) -> Vec<String> {
    let managed = place.managed();
    let found = managed.resources.into_iter().find(|one| one.name == name);
    found.map(|one| one.owners).unwrap_or_default()
}

#[test]
fn a_name_that_begins_with_another_keeps_its_record() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        apply(&place, &task("first", vec![packages(&["zip"])]));
        apply(&place, &task("second", vec![packages(&["zip-common"])]));
        let undone = place.undo(&[word("first")]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_eq!(owners(&place, "zip-common"), ["second"], "{shell:?}");
        let undone = place.undo(&[word("second")]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// An undo that died when the file was back and the kernel's name was not.
#[test]
fn the_kernels_hostname_outlives_the_record_of_the_file() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        apply(
            &place,
            &task("role", vec![Operation::Hostname(word("renamed"))]),
        );
        let record = place.root().join("var/lib/hatchery/record");
        let original = fs::read_dir(&record).unwrap().find_map(|entry| {
            let path = entry.unwrap().path();
            path.to_str().unwrap().ends_with(".orig").then_some(path)
        });
        fs::rename(original.unwrap(), place.root().join("etc/hostname")).unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

#[test]
fn what_a_failed_batch_installed_is_ours_and_what_it_did_not_is_not() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = installed(&place);
        let batch = packages(&["socat", "g++", "broken", "zip"]);
        let answer = place.apply(&task("role", vec![batch]));
        assert_eq!(
            answer.end.as_deref(),
            Some("failed"),
            "{shell:?}: {answer:?}"
        );
        let now = installed(&place);
        assert!(now.contains("g++ 1") && !now.contains("zip"), "{now}");
        for (name, ours) in [
            ("socat", true),
            ("g++", true),
            ("libg++", true),
            ("libbroken", true),
            ("broken", false),
            ("zip", false),
        ] {
            assert_eq!(!owners(&place, name).is_empty(), ours, "{shell:?} {name}");
        }
        // Somebody helps himself.
        let list = place.root().join("fake/packages");
        fs::write(&list, format!("{now}zip 2\n")).unwrap();
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"), "{shell:?}");
        assert_eq!(installed(&place), format!("{before}zip 2\n"), "{shell:?}");
    }
}

fn running(place: &Place, unit: &str) -> bool {
    place
        .root()
        .join(format!("fake/units/{unit}.active"))
        .exists()
}

/// The package starts its service where nobody forbids it; the cluster's own units come in a later task.
#[test]
fn a_service_that_a_package_brings_starts_when_it_is_asked_for_and_ends_before_its_package() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        apply(
            &place,
            &task("prepare", vec![packages(&["nginx", "etcd-server"])]),
        );
        assert!(
            !running(&place, "nginx.service") && !running(&place, "etcd.service"),
            "{shell:?}"
        );
        let policy = place.root().join("usr/sbin/policy-rc.d");
        assert_eq!(
            fs::read_to_string(&policy).unwrap(),
            "#!/bin/sh\nexit 0\n",
            "{shell:?}"
        );
        let operations = vec![
            directory("/var/lib/data", 0o700, true),
            file("/etc/systemd/system/etcd.service", "# ours\n", 0o644),
            unit("etcd.service", &["/etc/systemd/system/etcd.service"]),
            unit("nginx.service", &[]),
        ];
        apply(&place, &task("etcd", operations.clone()));
        assert!(running(&place, "nginx.service") && running(&place, "etcd.service"));
        let again = place.apply(&task("etcd", operations));
        let moved = |line: &&Line| !matches!(line, Line::Unchanged(_));
        assert_eq!(again.steps.values().find(moved), None, "{shell:?}");
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// As an older release recorded it, when the package had started its service already.
#[test]
fn a_unit_that_was_taken_for_somebody_elses_does_not_keep_undo_from_its_end() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        apply(&place, &task("prepare", vec![packages(&["nginx"])]));
        apply(&place, &task("role", vec![unit("nginx.service", &[])]));
        let record = place.root().join("var/lib/hatchery/record");
        let unit = fs::read_dir(&record).unwrap().find_map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            text.contains("absent inactive").then_some((path, text))
        });
        let (path, text) = unit.unwrap();
        fs::write(path, text.replace("absent inactive", "enabled active")).unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// A service of somebody else's is stopped neither by its package's namesake nor for good.
#[test]
fn a_unit_that_was_there_before_its_package_runs_afterwards() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let units = place.root().join("fake/units");
        fs::write(
            place.root().join("etc/systemd/system/nginx.service"),
            "# theirs\n",
        )
        .unwrap();
        for state in ["active", "enabled"] {
            let text = if state == "active" { "# theirs\n" } else { "" };
            fs::write(units.join(format!("nginx.service.{state}")), text).unwrap();
        }
        apply(&place, &task("prepare", vec![packages(&["nginx"])]));
        assert!(running(&place, "nginx.service"));
        apply(&place, &task("role", vec![unit("nginx.service", &[])]));
        fs::remove_file(units.join("nginx.service.active")).unwrap();
        apply(&place, &task("role", vec![unit("nginx.service", &[])]));
        assert!(running(&place, "nginx.service"), "{shell:?}");
        let undone = place.undo(&[word("role")]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
    }
}

/// Asks what is in the place of Debian's policy while packages are installed.
fn policy(place: &Place, words: &[&str], running: Option<&str>) -> Output {
    let mut command = Command::new(place.root().join("usr/sbin/policy-rc.d"));
    command.args(words).env_remove("HATCHERY_RUNNING");
    if let Some(units) = running {
        command.env("HATCHERY_RUNNING", units);
    }
    command.output().unwrap()
}

#[test]
fn only_our_own_packages_are_kept_from_starting_services() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let at = place.root().join("usr/sbin/policy-rc.d");
        // It keeps a copy of what it is asked by.
        let original = "#!/bin/sh\ncp \"$0\" \"${0%/usr/sbin/*}/fake/asked\" 2>/dev/null\n[ \"$1\" != never.service ]\n";
        fs::write(&at, original).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
        let before = place.snapshot();
        let copy = "for p; do case $p in nginx) cp \"$FAKE_ROOT/usr/sbin/policy-rc.d\" \"$FAKE_ROOT/fake/policy\" ;; esac; done";
        // The package manager itself shows what was in place while it ran.
        let tools = in_memory();
        let fake = tools.path().join("apt-get");
        let real = concat!(env!("CARGO_MANIFEST_DIR"), "/src/script/fakes/apt-get");
        fs::write(&fake, format!("#!/bin/sh\n{copy}\nexec {real} \"$@\"\n")).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        let answer = place.apply_with(&task("role", vec![packages(&["nginx"])]), tools.path());
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?}: {answer:?}");
        assert!(!running(&place, "nginx.service"));

        let placed = place.root().join("fake/policy");
        let text = fs::read_to_string(&placed).unwrap();
        fs::remove_file(&placed).unwrap();
        assert_eq!(fs::read_to_string(&at).unwrap(), original, "{shell:?}");
        let kept = tools.path().join("before");
        fs::write(&kept, original).unwrap();
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o755)).unwrap();
        let was = place.root().join("var/lib/hatchery/record/policy.orig");
        let text = text.replace(was.to_str().unwrap(), kept.to_str().unwrap());
        fs::write(&at, text).unwrap();
        let code = |words: &[&str], running| policy(&place, words, running).status.code();
        let ours = Some(" ssh.service cron.service ");
        assert_eq!(code(&["nginx.service", "start"], None), Some(0));
        assert_eq!(code(&["nginx.service", "start"], ours), Some(101));
        assert_eq!(code(&["--quiet", "nginx", "restart"], ours), Some(101));
        assert_eq!(code(&["ssh.service", "restart"], ours), Some(0));
        assert_eq!(code(&["cron", "start"], ours), Some(0));
        assert_eq!(code(&["nginx.service", "stop"], ours), Some(0));
        // Who forbade something before still does.
        assert_eq!(code(&["never.service", "stop"], ours), Some(1));
        assert_eq!(code(&["never.service", "start"], None), Some(1));
        fs::write(&at, original).unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        let mut after = place.snapshot();
        // Only its time is ours.
        let rewritten = std::path::Path::new("usr/sbin/policy-rc.d");
        after.insert(rewritten.to_owned(), before[rewritten].clone());
        assert_same(&after, &before, &format!("{shell:?}"));
    }
}

/// So many that their names are more than a program can be given.
fn run_units(place: &Place, kind: &str) {
    for number in 0..700 {
        let unit = format!("{number:0200}.{kind}.active");
        fs::write(place.root().join("fake/units").join(unit), "").unwrap();
    }
}

/// Each container of a node is a few of them.
#[test]
fn mounts_and_scopes_do_not_keep_packages_from_coming() {
    for shell in SHELLS {
        let place = Place::new(shell);
        for kind in ["mount", "scope"] {
            run_units(&place, kind);
        }
        let before = place.snapshot();
        apply(&place, &task("role", vec![packages(&["nginx"])]));
        assert!(!running(&place, "nginx.service"), "{shell:?}");
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

#[test]
fn a_package_manager_that_cannot_be_started_leaves_nothing_behind() {
    for shell in SHELLS {
        let place = Place::new(shell);
        run_units(&place, "service");
        let before = place.snapshot();
        let answer = place.apply(&task("role", vec![packages(&["nginx"])]));
        assert_eq!(answer.end.as_deref(), Some("failed"), "{shell:?}");
        let failed = answer.steps.values().find_map(|line| match line {
            Line::Failed(_, text) => Some(text.clone()),
            _ => None,
        });
        let failed = failed.unwrap_or_else(|| panic!("{answer:?}"));
        assert!(failed.contains("Argument list too long"), "{failed}");
        assert!(owners(&place, "nginx").is_empty(), "{shell:?}");
        let mut after = place.snapshot_without_record();
        after.retain(|path, _| before.contains_key(path));
        assert_same(&after, &before, &format!("{shell:?}"));
    }
}

/// What was put in the place of Debian's policy goes also when the package manager was never asked.
#[test]
fn a_failure_takes_the_policy_away() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let full = "case $* in *transaction.new) : >\"$FAKE_ROOT/fake/full\" ;; esac\n\
            [ ! -e \"$FAKE_ROOT/fake/full\" ] || exit 1";
        let tools = in_place_of("sync", full, "");
        let answer = place.apply_with(&task("role", vec![packages(&["nginx"])]), tools.path());
        assert_eq!(answer.end.as_deref(), Some("failed"), "{answer:?}");
        fs::remove_file(place.root().join("fake/full")).unwrap();
        let after = place.snapshot_without_record();
        assert_same(&after, &before, &format!("{shell:?}"));
    }
}

#[test]
fn the_cluster_and_the_numbers_are_on_disk_under_their_names_or_not_at_all() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let log = place.root().join("fake/sync-log");
        fs::write(&log, "").unwrap();
        apply(
            &place,
            &task("role", vec![file("/etc/some.conf", "x", 0o644)]),
        );
        let told = fs::read_to_string(&log).unwrap();
        let expected = [
            "cluster.new before /var/lib/hatchery/cluster",
            "cluster",
            "seq.new before /var/lib/hatchery/seq",
            "cluster",
            "seq",
        ];
        assert_eq!(told.lines().collect::<Vec<_>>(), expected, "{shell:?}");
        // Who changes nothing waits for no disk.
        fs::write(&log, "").unwrap();
        apply(
            &place,
            &task("role", vec![file("/etc/some.conf", "x", 0o644)]),
        );
        assert_eq!(fs::read_to_string(&log).unwrap(), "", "{shell:?}");
        // A power cut under an older release has emptied the number: what comes is still later than what was.
        fs::write(place.root().join("var/lib/hatchery/seq"), "").unwrap();
        apply(
            &place,
            &task("role", vec![file("/etc/new/other.conf", "x", 0o644)]),
        );
        fs::remove_file(&log).unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert!(!place.root().join("etc/new").exists());
    }
}

pub(super) fn in_every_shell(test: impl Fn(Place) + Sync) {
    std::thread::scope(|scope| {
        for shell in SHELLS {
            scope.spawn(|| test(Place::new(shell)));
        }
    });
}

#[test]
fn a_package_manager_that_gets_on_is_waited_for() {
    in_every_shell(|place| {
        let mut task = task("role", vec![packages(&["slow"])]);
        task.step_deadline = Duration::from_secs(1);
        let start = Instant::now();
        apply(&place, &task);
        assert!(start.elapsed() > 3 * task.step_deadline);
    });
}

#[test]
fn who_watched_over_a_package_manager_leaves_nothing_behind() {
    in_every_shell(|place| {
        apply(&place, &task("role", vec![packages(&["slow"])]));
        let own = format!("FAKE_ROOT={}", place.root().display());
        let processes = fs::read_dir("/proc").unwrap();
        let left: Vec<_> = processes
            .filter_map(|entry| {
                let process = entry.unwrap().path();
                let environment = fs::read(process.join("environ")).ok()?;
                let mut words = environment.split(|byte| *byte == 0);
                words.find(|word| *word == own.as_bytes())?;
                fs::read_to_string(process.join("cmdline")).ok()
            })
            .collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn a_package_manager_that_hangs_is_ended_with_what_it_started() {
    in_every_shell(|place| {
        let mut task = task("role", vec![packages(&["hung"])]);
        task.step_deadline = Duration::from_secs(1);
        let answer = place.apply(&task);
        let failed = answer.steps.values().find_map(|line| match line {
            Line::Failed(_, text) => Some(text.clone()),
            _ => None,
        });
        let failed = failed.unwrap_or_else(|| panic!("{answer:?}"));
        assert!(
            failed.starts_with("gave up: no sign of progress for 1 s\n"),
            "{failed}"
        );
        let hung = fs::read_to_string(place.root().join("fake/hung")).unwrap();
        let process = format!("/proc/{}/cmdline", hung.trim());
        let end = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(&process).is_ok_and(|line| line.contains("1000")) {
            assert!(Instant::now() < end, "what it started goes on");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}
