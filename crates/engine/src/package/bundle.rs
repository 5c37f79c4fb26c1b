//! One archive, and what was found out about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hatchery_host::{
    archive::{self, Archive, Index},
    content::Content,
};
use hatchery_spec::value::Arch;

use super::{
    architecture,
    cache::{self, Known},
    image,
    layout::FoundFile,
};
use crate::finding::Finding;

/// Manifests are read into memory; the largest that are known have about 2 MiB.
const MOST_MANIFEST: u64 = 16 << 20;

/// An archive that is open.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) archive: Arc<Archive>,
    cache: PathBuf,
    known: Mutex<Known>,
}

/// What there is to know about a file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    /// Which images does it bring?
    Images,
    /// For which processor is it?
    Processor,
    /// What does it say?
    Manifest,
}

impl Bundle {
    /// Opens an archive, from what is on record if that is still true.
    pub(super) fn open(path: &Path, cache: &Path) -> Result<Self, Finding> {
        let wrong = |error: archive::Error| Finding::unreadable_archive(&error);
        let mut recalled = None;
        if let Some((scan, known)) = cache::load(cache, path) {
            let archive = Archive::recall(path, &scan).map_err(wrong)?;
            recalled = archive.map(|archive| (archive, known));
        }
        let fresh = recalled.is_none();
        let (archive, known) = match recalled {
            Some(found) => found,
            None => (Archive::open(path).map_err(wrong)?, Known::default()),
        };
        let bundle = Self {
            archive: Arc::new(archive),
            cache: cache.to_owned(),
            known: Mutex::new(known),
        };
        if fresh {
            bundle.save();
        }
        Ok(bundle)
    }

    pub(super) fn path(&self) -> &Path {
        self.archive.path()
    }

    pub(super) fn index(&self) -> &Index {
        self.archive.index()
    }

    /// A problem of this archive: `what` follows its name.
    pub(super) fn problem(
        &self,
        what: impl std::fmt::Display,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding::in_archive(self.path(), what, remedy)
    }

    pub(super) fn content(&self, path: &str) -> Result<Content, Finding> {
        Content::archived(&self.archive, path).map_err(|error| {
            Finding::package(error.to_string(), "check its name in the deploy file")
        })
    }

    /// Finds out what is asked, as far as it is not known, in as few passes as can be.
    pub(super) fn find_out(&self, questions: &[(FoundFile<'_>, Question)]) -> Result<(), Finding> {
        let mut asked = false;
        loop {
            // Equal contents have equal answers; a stream gives its bytes to one question only.
            let mut open: BTreeMap<String, (String, u64, Question)> = BTreeMap::new();
            {
                let known = self.known();
                for (file, question) in questions {
                    let digest = file.digest.to_string();
                    if !known.answers_to(*question, &digest) {
                        open.entry(digest)
                            .or_insert((file.path.to_owned(), file.size, *question));
                    }
                }
            }
            if open.is_empty() {
                break;
            }
            asked = true;
            self.ask(&open)?;
        }
        if asked {
            self.save();
        }
        Ok(())
    }

    fn ask(&self, open: &BTreeMap<String, (String, u64, Question)>) -> Result<(), Finding> {
        let by_path: BTreeMap<&str, (&str, u64, Question)> = open
            .iter()
            .map(|(digest, (path, size, question))| {
                (path.as_str(), (digest.as_str(), *size, *question))
            })
            .collect();
        let wanted: BTreeSet<String> = by_path.keys().map(ToString::to_string).collect();
        let mut found = Known::default();
        let read = self.archive.read_selected(&wanted, |entry, contents| {
            if let Some((digest, size, question)) = by_path.get(&*entry.path) {
                found.learn(*question, digest, *size, contents)?;
            }
            Ok(())
        });
        read.map_err(|error| Finding::unreadable_archive(&error))?;
        self.known().add(found);
        Ok(())
    }

    pub(super) fn images(&self, file: &FoundFile<'_>) -> Option<Result<Vec<String>, String>> {
        self.known().images.get(&file.digest.to_string()).cloned()
    }

    pub(super) fn processor(&self, file: &FoundFile<'_>) -> Option<Arch> {
        let known = self.known();
        let name = known.processors.get(&file.digest.to_string())?.as_deref()?;
        Arch::parse(name).ok()
    }

    pub(super) fn manifest(&self, file: &FoundFile<'_>) -> Option<Result<String, String>> {
        self.known()
            .manifests
            .get(&file.digest.to_string())
            .cloned()
    }

    pub(super) fn answer(&self, file: &FoundFile<'_>) -> Option<String> {
        self.known().answers.get(&file.digest.to_string()).cloned()
    }

    /// Remembers what programs said.
    pub(super) fn remember(&self, answers: &BTreeMap<String, Result<String, String>>) {
        let said = answers
            .iter()
            .filter_map(|(digest, answer)| Some((digest.clone(), answer.clone().ok()?)));
        self.known().answers.extend(said);
        self.save();
    }

    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is ever left half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What cannot be put on record is found out again next time, which only takes longer.
    fn save(&self) {
        let _ = cache::store(
            &self.cache,
            self.path(),
            &self.archive.scan(),
            &self.known(),
        );
    }
}

impl Known {
    fn answers_to(&self, question: Question, digest: &str) -> bool {
        match question {
            Question::Images => self.images.contains_key(digest),
            Question::Processor => self.processors.contains_key(digest),
            Question::Manifest => self.manifests.contains_key(digest),
        }
    }

    fn learn(
        &mut self,
        question: Question,
        digest: &str,
        size: u64,
        contents: &mut dyn Read,
    ) -> std::io::Result<()> {
        let digest = digest.to_owned();
        match question {
            Question::Images => {
                self.images
                    .insert(digest, image::references(contents, size));
            }
            Question::Processor => {
                let mut head = Vec::new();
                contents
                    .take(architecture::HEAD as u64)
                    .read_to_end(&mut head)?;
                let processor = architecture::of_program(&head);
                self.processors
                    .insert(digest, processor.map(|arch| arch.to_string()));
            }
            Question::Manifest => {
                self.manifests.insert(digest, manifest(size, contents)?);
            }
        }
        Ok(())
    }

    fn add(&mut self, other: Self) {
        self.images.extend(other.images);
        self.processors.extend(other.processors);
        self.manifests.extend(other.manifests);
    }
}

fn manifest(size: u64, contents: &mut dyn Read) -> std::io::Result<Result<String, String>> {
    if size > MOST_MANIFEST {
        return Ok(Err(format!("is larger than {MOST_MANIFEST} bytes")));
    }
    let mut bytes = Vec::new();
    contents.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned()))
}
