//! A deploy file on this machine: found, read, and the files that it names looked for.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use hatchery_engine::{authorities, state::Store};
use hatchery_spec::{
    Diagnostic, Input, Need, Purpose, Reading, Reference,
    inventory::{self, Files},
    read_for,
    source::SIZE_LIMIT,
};
use time::OffsetDateTime;

use crate::{
    cluster_file,
    output::{Output, Refused},
};

/// The file that was named, or else the first of the two usual ones that is there; under the name `eggo`, eggo's is looked
/// for first.
pub(crate) fn find(
    named: Option<&Path>,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let hatchery = cluster_file::home(home)?;
    let usual = [
        Some(hatchery.join("deploy.yaml")),
        user_home().map(|home| home.join(".eggo/deploy.yaml")),
    ];
    let mut usual: Vec<PathBuf> = usual.into_iter().flatten().collect();
    if output.is_eggo() {
        usual.reverse();
    }
    if let Some(path) = usual.iter().find(|path| path.exists()) {
        return Ok(path.clone());
    }
    let names: Vec<_> = usual
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let refused = Refused::new(format!("there is no deploy file {}", names.join(" nor ")));
    Err(refused
        .remedy("name one with -f, or write one to begin with: template -f FILE")
        .into())
}

/// What a deploy file is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use<'a> {
    /// To make the cluster: every file that it names is needed. A cluster that is known to this home of Hatchery has
    /// some of it already.
    Everything(Option<&'a Path>),
    /// To reach the machines: archives may be gone, and what is said of packages and settings may break rules that are newer
    /// than the cluster.
    Access,
}

/// Reads a deploy file, for an inventory with the file of its variables, and looks for the files
/// that it names.
pub(crate) async fn look(
    path: &Path,
    vars: Option<&Path>,
    home: Option<&Path>,
) -> anyhow::Result<Reading> {
    let file = Text::read(path)?;
    let vars = vars.map(Text::read).transpose()?;
    Ok(validate(&file, vars.as_ref(), Use::Everything(home)).await)
}

/// The same for files that were read.
pub(crate) async fn validate(file: &Text, vars: Option<&Text>, purpose: Use<'_>) -> Reading {
    let need = match purpose {
        Use::Everything(_) => Need::Everything,
        Use::Access => Need::Access,
    };
    let mut reading = match vars {
        None => read_for(file.input(), need),
        Some(vars) => {
            let files = Files {
                hosts: file.input(),
                vars: Some(vars.input()),
                id: None,
            };
            inventory::read_for(files, need)
        }
    };
    let store = match (purpose, &reading.cluster) {
        (Use::Everything(home), Some(cluster)) => {
            let stores = cluster_file::stores(home).ok();
            stores.map(|stores| stores.store(&cluster.id))
        }
        _ => None,
    };
    for reference in std::mem::take(&mut reading.references) {
        let is_for_access = matches!(
            reference.purpose,
            Purpose::PrivateKey | Purpose::PasswordFile
        );
        if purpose != Use::Access || is_for_access {
            for diagnostic in check_reference(&reference, store.as_deref()).await {
                reading.diagnostics.push(diagnostic);
            }
        }
        reading.references.push(reference);
    }
    if reading.diagnostics.has_errors() {
        reading.cluster = None;
    }
    reading
}

/// A file as it was found.
pub(crate) struct Text {
    name: String,
    pub(crate) bytes: Vec<u8>,
    others_can_read: bool,
}

impl Text {
    /// One that we keep, at this place.
    pub(crate) fn remembered(place: String, bytes: &[u8]) -> Self {
        Self {
            name: place,
            bytes: bytes.to_vec(),
            others_can_read: false,
        }
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let read = || -> io::Result<(Vec<u8>, bool)> {
            let file = File::open(path)?;
            let facts = file.metadata()?;
            if facts.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let mut bytes = Vec::new();
            // One byte more than allowed tells that it is too big.
            file.take(SIZE_LIMIT as u64 + 1).read_to_end(&mut bytes)?;
            Ok((bytes, is_open(&facts)))
        };
        let (bytes, others_can_read) = read().map_err(|error| {
            let refused = Refused::new(format!("cannot read {name}: {}", reason(&error)));
            match error.kind() {
                io::ErrorKind::NotFound => refused
                    .remedy("correct the path, or write a file to begin with: template -f FILE"),
                io::ErrorKind::IsADirectory => refused.remedy("name the file in it"),
                _ => refused,
            }
        })?;
        Ok(Self {
            name,
            bytes,
            others_can_read,
        })
    }

    fn input(&self) -> Input<'_> {
        Input {
            name: &self.name,
            bytes: &self.bytes,
            others_can_read: self.others_can_read,
        }
    }
}

/// What is wrong with a file that a deploy file names.
async fn check_reference(reference: &Reference, store: Option<&dyn Store>) -> Vec<Diagnostic> {
    let path = expand(&reference.path);
    let checked = match reference.purpose {
        Purpose::Archive(_) => beginning(&path).map(|_| None),
        Purpose::PrivateKey => beginning(&path).and_then(|(start, facts)| {
            if start.starts_with(b"ssh-") || start.starts_with(b"ecdsa-") {
                return Err("it is a public key; the private one has no .pub".to_owned());
            }
            Ok(readable_secret(reference, "an SSH key", &facts))
        }),
        Purpose::PasswordFile => beginning(&path).and_then(|(start, facts)| {
            if start.first().is_none_or(|byte| b"\r\n".contains(byte)) {
                return Err("its first line is empty".to_owned());
            }
            Ok(readable_secret(reference, "a password", &facts))
        }),
        Purpose::ExternalCa => {
            let wrong = external_ca(reference, &path, store).await;
            return wrong.into_iter().collect();
        }
    };
    match checked {
        Ok(warning) => warning.into_iter().collect(),
        Err(reason) => vec![reference.unusable(&reason)],
    }
}

/// The first bytes of a file that can be read, and its facts.
fn beginning(path: &Path) -> Result<(Vec<u8>, fs::Metadata), String> {
    let read = || -> io::Result<(Vec<u8>, fs::Metadata)> {
        // Asked first, since opening a pipe would wait for a writer.
        let facts = fs::metadata(path)?;
        if facts.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !facts.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut start = Vec::new();
        File::open(path)?.take(64).read_to_end(&mut start)?;
        Ok((start, facts))
    };
    match read() {
        Ok((start, _)) if start.is_empty() => Err("it is empty".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(reason(&error)),
    }
}

/// All that is wrong with the user's authorities, in one.
async fn external_ca(
    reference: &Reference,
    directory: &Path,
    store: Option<&dyn Store>,
) -> Option<Diagnostic> {
    let now = OffsetDateTime::now_utc();
    let problems = authorities::check_external(store, directory, now).await;
    let reasons: Vec<String> = problems
        .iter()
        .map(|problem| {
            let file = Path::new(&problem.file);
            match file.strip_prefix(directory) {
                Ok(name) if name.as_os_str().is_empty() => problem.reason.clone(),
                Ok(name) => format!("{}: {}", name.display(), problem.reason),
                Err(_) => problem.to_string(),
            }
        })
        .collect();
    let mut remedies: Vec<&str> = Vec::new();
    for problem in &problems {
        if !remedies.contains(&problem.remedy.as_str()) {
            remedies.push(&problem.remedy);
        }
    }
    (!reasons.is_empty()).then(|| {
        reference
            .unusable(&reasons.join("; "))
            .remedy(remedies.join("; "))
    })
}

fn readable_secret(reference: &Reference, what: &str, facts: &fs::Metadata) -> Option<Diagnostic> {
    is_open(facts).then(|| {
        let message = format!("others can read {}, which holds {what}", reference.path);
        Diagnostic::warning("readable-secret", reference.span, message)
            .remedy(format!("chmod 600 {}", reference.path))
    })
}

/// Whether others than the owner may do anything with a file.
fn is_open(facts: &fs::Metadata) -> bool {
    facts.permissions().mode() & 0o077 != 0
}

/// Why a file cannot be read, without the system's error number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

fn expand(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), user_home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn user_home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(PathBuf::from)
}
