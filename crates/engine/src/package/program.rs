//! Asks programs of an archive for their versions, by running them confined.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    time::Duration,
};

use super::{bundle::Bundle, cache, layout::FoundFile};
use crate::{confinement::Launcher, finding::Finding};

/// A program that only prints its version takes less.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// What each program of the list says to its flag, or why it says nothing. Answers are remembered; failures
/// are not, since a busy machine may be the cause.
///
/// Programs are started by the launcher, each in a directory where nothing else is. Without one, none runs.
pub(super) fn ask(
    bundle: &Bundle,
    programs: &[(FoundFile<'_>, &str)],
    launcher: Option<&Launcher>,
) -> Result<Vec<Result<String, String>>, Finding> {
    let mut open: BTreeMap<&str, (String, &str)> = BTreeMap::new();
    let mut digests = BTreeSet::new();
    for (file, flag) in programs {
        if bundle.answer(file).is_none() && digests.insert(file.digest) {
            open.insert(file.path, (file.digest.to_string(), *flag));
        }
    }
    let mut fresh = BTreeMap::new();
    if let (Some(launcher), false) = (launcher, open.is_empty()) {
        fresh = extract_and_run(bundle, &open, launcher)?;
        bundle.remember(&fresh);
    }
    let answer = |file: &FoundFile<'_>| {
        let known = bundle.answer(file).map(Ok);
        let known = known.or_else(|| fresh.get(&file.digest.to_string()).cloned());
        known.unwrap_or_else(|| Err("it was not asked".to_owned()))
    };
    Ok(programs.iter().map(|(file, _)| answer(file)).collect())
}

type Answers = BTreeMap<String, Result<String, String>>;

fn extract_and_run(
    bundle: &Bundle,
    open: &BTreeMap<&str, (String, &str)>,
    launcher: &Launcher,
) -> Result<Answers, Finding> {
    let no_room = |error: io::Error| {
        Finding::package(
            format!(
                "cannot unpack programs to {}: {error}",
                bundle.cache().display()
            ),
            "make room there, or write kubernetes-version into the deploy file",
        )
    };
    cache::make(bundle.cache()).map_err(no_room)?;
    // Below the cache, since /tmp may forbid running programs. Nobody else can enter it.
    let place = tempfile::Builder::new()
        .prefix(".program-")
        .tempdir_in(bundle.cache())
        .map_err(no_room)?;
    let wanted: BTreeSet<String> = open.keys().map(ToString::to_string).collect();
    let mut answers = BTreeMap::new();
    let read = bundle.archive.read_selected(&wanted, |entry, contents| {
        let Some((digest, flag)) = open.get(&*entry.path) else {
            return Ok(());
        };
        let path = place.path().join(digest);
        let mut file = File::create_new(&path)?;
        io::copy(contents, &mut file)?;
        file.set_permissions(Permissions::from_mode(0o700))?;
        drop(file);
        answers.insert(digest.clone(), launcher.output(&path, flag, TIME_LIMIT));
        std::fs::remove_file(path)
    });
    read.map_err(|error| Finding::unreadable_archive(&error))?;
    Ok(answers)
}
