//! What is told of the record, and files of which only the machine has the bytes.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

use super::{
    file, known,
    place::{Place, SHELLS, assert_same, in_memory},
    task, unit,
};
use crate::{
    content::Hash,
    machine::{Managed, ManagedResource},
    report::{Answer, Line},
};

const PEM: &str = "-----BEGIN CERTIFICATE-----\nMIIB ~!\n-----END CERTIFICATE-----\n";

fn told(place: &Place, name: &str) -> ManagedResource {
    let managed = place.managed();
    let found = managed.resources.iter().find(|found| found.name == name);
    found
        .unwrap_or_else(|| panic!("{name} is not in {managed:?}"))
        .clone()
}

fn hash(text: &str) -> Option<String> {
    Some(Hash::digest(text.as_bytes()).as_str().to_owned())
}

fn steps(answer: &Answer) -> Vec<&Line> {
    let moved = |line: &&Line| !matches!(line, Line::Unchanged(_));
    answer.steps.values().filter(moved).collect()
}

#[test]
fn what_is_there_what_was_put_there_and_certificates_are_told() {
    for shell in SHELLS {
        let place = Place::new(shell);
        assert!(place.managed().resources.is_empty());
        let (leaf, key) = ("/etc/p k/leaf.crt", "/etc/p k/leaf.key");
        let operations = vec![
            file(leaf, PEM, 0o644),
            file(key, "secret", 0o600),
            file("/etc/there.conf", "ours", 0o644),
            unit("theirs.service", &[]),
        ];
        assert_eq!(
            place.apply(&task("role", operations)).end.as_deref(),
            Some("ok")
        );
        assert_eq!(
            place.managed().cluster,
            Some(("c1".to_owned(), "one".to_owned()))
        );
        let expected = ManagedResource {
            key: told(&place, leaf).key,
            kind: "file".into(),
            name: leaf.into(),
            state: hash(PEM),
            size: Some(PEM.len() as u64),
            put: hash(PEM),
            text: Some(PEM.into()),
            owners: vec!["role".into()],
        };
        assert_eq!(told(&place, leaf), expected, "{shell:?}");
        let found = told(&place, key);
        assert_eq!((found.state, found.size), (hash("secret"), Some(6)));
        assert_eq!(found.text, None, "{shell:?}");
        let found = told(&place, "theirs.service");
        assert_eq!(found.state.as_deref(), Some("active,enabled"), "{shell:?}");

        let renewed = PEM.replace("MIIB", "MIIC");
        fs::write(place.root().join(&leaf[1..]), &renewed).unwrap();
        fs::remove_file(place.root().join(&key[1..])).unwrap();
        fs::remove_file(place.root().join("etc/there.conf")).unwrap();
        symlink("mode.conf", place.root().join("etc/there.conf")).unwrap();
        let found = told(&place, leaf);
        assert_eq!((found.state, found.put), (hash(&renewed), hash(PEM)));
        assert_eq!(found.text.as_deref(), Some(&renewed[..]), "{shell:?}");
        for (gone, put) in [(key, "secret"), ("/etc/there.conf", "ours")] {
            let found = told(&place, gone);
            assert_eq!(found.state.as_deref(), Some("absent"), "{shell:?} {gone}");
            assert_eq!((found.size, found.put), (None, hash(put)), "{shell:?}");
        }
    }
}

/// Also what would be taken for lines of the answer, and what a shell does not read.
#[test]
fn only_certificates_as_text_are_told_word_by_word() {
    let forged =
        format!("{PEM}file absent - - k role /etc/forged\nmanaged-end\n|x\ncluster c9 x\n");
    let largest = PEM.to_owned() + &"x".repeat(16 * 1024 - PEM.len() - 1) + "\n";
    let both = format!("{PEM}-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\n");
    for shell in SHELLS {
        let place = Place::new(shell);
        let at = "/etc/new/leaf.crt";
        place.apply(&task("role", vec![file(at, PEM, 0o644)]));
        for (bytes, is_told) in [
            (forged.as_bytes(), true),
            (largest.as_bytes(), true),
            (format!("{largest}\n").as_bytes(), false),
            (both.as_bytes(), false),
            (PEM.trim_end().as_bytes(), false),
            (PEM.replace("MIIB", "\0").as_bytes(), false),
            (PEM.replace("MIIB", "\u{1b}[2J").as_bytes(), false),
            (PEM.replace('\n', "\r\n").as_bytes(), false),
            (PEM.replace("MIIB", "ü").as_bytes(), false),
            (b"-----BEGIN \xff", false),
            (b"\n", false),
            (b"", false),
        ] {
            fs::write(place.root().join(&at[1..]), bytes).unwrap();
            // The machine itself keeps it back, before anybody here could drop it.
            let text = place.managed_text();
            assert_eq!(text.contains("\n|"), is_told, "{shell:?} {text}");
            let managed = Managed::read(&text);
            assert_eq!(managed.cluster, Some(("c1".to_owned(), "one".to_owned())));
            assert_eq!(managed.resources.len(), 2, "{shell:?} {managed:?}");
            let found = told(&place, at);
            let words = String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(found.state.as_deref(), Some(Hash::digest(bytes).as_str()));
            assert_eq!(
                found.text,
                is_told.then_some(words),
                "{shell:?} {}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}

/// A pipe in its place would never be read to its end.
#[test]
fn what_is_no_file_is_not_read() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let at = place.root().join("etc/leaf.crt");
        place.apply(&task("role", vec![file("/etc/leaf.crt", PEM, 0o644)]));
        fs::remove_file(&at).unwrap();
        let made = Command::new("mkfifo").arg(&at).status();
        assert!(made.unwrap().success());
        let found = told(&place, "/etc/leaf.crt");
        assert_eq!(found.state.as_deref(), Some("absent"), "{shell:?}");
    }
}

#[test]
fn a_known_file_is_left_gets_its_mode_or_is_asked_for() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let at = place.root().join("etc/leaf.key");
        place.apply(&task("role", vec![file("/etc/leaf.key", "secret", 0o600)]));
        let wanted = task("role", vec![known("/etc/leaf.key", "secret", 0o600)]);
        let answer = place.apply(&wanted);
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?} {answer:?}");
        assert!(steps(&answer).is_empty(), "{shell:?} {answer:?}");

        fs::set_permissions(&at, fs::Permissions::from_mode(0o666)).unwrap();
        let answer = place.apply(&wanted);
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?} {answer:?}");
        let mode = fs::metadata(&at).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode, &fs::read(&at).unwrap()[..]), (0o600, &b"secret"[..]));
        assert_eq!(told(&place, "/etc/leaf.key").put, hash("secret"));

        fs::write(&at, "SECRET").unwrap();
        let answer = place.apply(&wanted);
        assert_eq!(answer.end.as_deref(), Some("wanting"), "{shell:?}");
        assert!(matches!(steps(&answer)[..], [Line::Wanting(_)]));
        assert_eq!(fs::read(&at).unwrap(), b"SECRET");
        place.undo(&[]);
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// A hundred files cost as many processes as one.
#[test]
fn many_files_are_not_many_processes() {
    let place = Place::new(SHELLS[0]);
    let many = (0..100).map(|number| file(&format!("/etc/many/{number}.crt"), PEM, 0o644));
    place.apply(&task("role", many.collect()));
    for number in 0..50 {
        fs::write(place.root().join(format!("etc/many/{number}.crt")), "x").unwrap();
    }
    // Every program that the machine has writes down that it was begun.
    let counted = in_memory();
    let (noting, log) = (
        counted.path().join("..noting"),
        counted.path().join("..log"),
    );
    let words = format!(
        "#!/bin/sh\necho \"${{0##*/}}\" >>'{}'\nexec \"/usr/bin/${{0##*/}}\" \"$@\"\n",
        log.display()
    );
    fs::write(&noting, words).unwrap();
    fs::set_permissions(&noting, fs::Permissions::from_mode(0o755)).unwrap();
    for program in fs::read_dir("/usr/bin").unwrap() {
        symlink(&noting, counted.path().join(program.unwrap().file_name())).unwrap();
    }
    let first = format!("PATH={}:/usr", counted.path().display());
    let script = place.managed_script().replacen("PATH=/usr", &first, 1);
    let output = Command::new("/bin/dash")
        .args(["-c", &script])
        .output()
        .unwrap();
    let summer = match fs::exists("/usr/bin/openssl").unwrap() {
        true => "openssl",
        false => "sha256sum",
    };
    let noted = fs::read_to_string(log).unwrap();
    assert_eq!(noted, format!("stat\n{summer}\n"));
    assert_eq!(output.stdout.split(|byte| *byte == b'|').count(), 151);
}
