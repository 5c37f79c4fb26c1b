//! Images of containers, in stores that the caller describes.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{
    place::{Place, SHELLS, in_memory},
    task,
};
use crate::{
    content::Content,
    operation::{ImageStore, Images, Operation},
    report::Answer,
    task::Task,
};

const REFERENCES: [&str; 2] = ["a/b:1", "c:2"];

/// A store that is a list in a file.
fn store(place: &Place, name: &'static str) -> ImageStore {
    let list = place.root().join("images").display().to_string();
    fs::write(&list, "theirs:1\na/b:1\n").unwrap();
    ImageStore {
        name,
        list: format!("cat '{list}'").leak(),
        load: format!("sort -u \"$1\" '{list}' -o '{list}'").leak(),
        remove: format!("grep -vx -e \"$1\" '{list}' >'{list}.new'; mv '{list}.new' '{list}'")
            .leak(),
    }
}

fn images(store: ImageStore) -> Task {
    let archive = Content::bytes(*b"a/b:1\nc:2\n");
    let images = Images::new(store, archive, REFERENCES.map(str::to_owned).into());
    task("worker", vec![Operation::Images(images.unwrap())])
}

fn list(place: &Place) -> String {
    fs::read_to_string(place.root().join("images")).unwrap()
}

fn ok(answer: &Answer) {
    assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
}

#[test]
fn images_are_loaded_once_and_what_came_is_removed() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let wanted = images(store(&place, "shelf"));
        ok(&place.apply(&wanted));
        assert_eq!(list(&place), "a/b:1\nc:2\ntheirs:1\n");
        // Without the contents, which are not asked for.
        ok(&place.apply_without_contents(&wanted));
        ok(&place.undo(&[]));
        assert_eq!(list(&place), "a/b:1\ntheirs:1\n");
    }
}

#[test]
fn a_store_that_does_not_answer_is_loaded() {
    let place = Place::new(SHELLS[0]);
    let silent = ImageStore {
        list: "false",
        load: "echo \"no room\"; false",
        ..store(&place, "shelf")
    };
    let answer = place.apply(&images(silent));
    let told = format!("{answer:?}");
    assert!(told.contains("shelf did not import the images"), "{told}");
    assert!(told.contains("no room"), "{told}");
}

/// Records of earlier releases name the store alone.
#[test]
fn what_an_earlier_release_loaded_is_removed() {
    for (name, program, words) in [("docker", "docker", "image rm"), ("isulad", "isula", "rmi")] {
        let place = Place::new(SHELLS[0]);
        ok(&place.apply(&images(store(&place, name))));
        let record = fs::read_dir(place.root().join("var/lib/hatchery/record")).unwrap();
        let mut removals = 0;
        for entry in record {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "undo") {
                fs::remove_file(path).unwrap();
                removals += 1;
            }
        }
        assert_eq!(removals, 1);
        let programs = in_memory();
        let fake = programs.path().join(program);
        let said = programs.path().join("said");
        let text = format!("#!/bin/sh\necho \"$*\" >>'{}'\n", said.display());
        fs::write(&fake, text).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        ok(&place.undo_with(programs.path()));
        assert_eq!(fs::read_to_string(said).unwrap(), format!("{words} c:2\n"));
    }
}
