//! What scripts of the user's leave when they are cut off.

use std::{fs, process::Command};

use super::{
    file,
    packages::{apply, in_every_shell},
    task, word,
};

/// The directory of a script that was cut off, and that of one at work.
#[test]
fn directories_of_scripts_that_nobody_runs_are_removed() {
    in_every_shell(|place| {
        let at = |name: &str| {
            place
                .root()
                .join(format!("var/lib/hatchery-scripts.{name}"))
        };
        let stale = |name: &str| {
            fs::create_dir_all(at(name).join("s")).unwrap();
            fs::write(at(name).join("s/a.sh"), "secret").unwrap();
        };
        fs::create_dir_all(at("worked").join("s")).unwrap();
        fs::create_dir(at("begins")).unwrap();
        let mut at_work = Command::new("sleep")
            .arg("100")
            .current_dir(at("worked").join("s"))
            .spawn()
            .unwrap();
        let left = || -> Vec<_> {
            let below = fs::read_dir(place.root().join("var/lib")).unwrap();
            let names = below.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.filter(|name| name.contains("scripts")).collect();
            names.sort();
            names
        };
        let expected = ["hatchery-scripts.begins", "hatchery-scripts.worked"];
        // Nothing of ours is there yet.
        stale("before");
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_eq!(left(), expected);
        stale("during");
        let file = file("/etc/some.conf", "x", 0o644);
        apply(&place, &task("role", vec![file]));
        assert_eq!(left(), expected);
        stale("at-end");
        assert_eq!(place.undo(&[word("role")]).end.as_deref(), Some("ok"));
        at_work.kill().unwrap();
        at_work.wait().unwrap();
        assert_eq!(left(), expected);
    });
}
