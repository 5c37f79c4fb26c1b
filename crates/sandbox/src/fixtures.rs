//! Fixtures: runs the embedded `fixtures` script and knows where its results are.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use sha2::{Digest as _, Sha256};
use snafu::{ResultExt as _, Snafu};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::Command,
};

use crate::{
    files,
    progress::{Event, Progress},
};

/// What can go wrong when fixtures are made.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(transparent)]
    NoCache { source: files::NoCache },
    #[snafu(display("cannot unpack the fixtures script to {}: {source}", path.display()))]
    Unpack { path: PathBuf, source: io::Error },
    #[snafu(display("cannot run {}: {source}", script.display()))]
    Start { script: PathBuf, source: io::Error },
    #[snafu(display("{message}"))]
    Refused {
        message: String,
        remedy: Option<String>,
    },
    #[snafu(display("{message}"))]
    Failed {
        message: String,
        remedy: Option<String>,
    },
}

impl Error {
    /// Whether the input or the machine was wrong and nothing was touched.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::NoCache { .. } | Self::Refused { .. })
    }

    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::Refused { remedy, .. } | Self::Failed { remedy, .. } => remedy.clone(),
            Self::NoCache { .. } | Self::Unpack { .. } => {
                Some("set HATCHERY_CACHE to a writable directory with free space".into())
            }
            Self::Start { .. } => Some("the script needs bash in the PATH".into()),
        }
    }
}

struct File {
    path: &'static str,
    executable: bool,
    bytes: &'static [u8],
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/fixture_scripts.rs"));

/// Fixtures that are known to be there and sound.
#[derive(Clone, Debug)]
pub struct Fixtures {
    items: PathBuf,
}

impl Fixtures {
    /// The directory of a fixture.
    pub fn path(&self, name: &str) -> PathBuf {
        self.items.join(name)
    }

    /// The directory that holds all of them.
    pub fn items(&self) -> &Path {
        &self.items
    }

    /// What a fixture was made from, as a hash: another key is another content.
    pub fn key(&self, name: &str) -> io::Result<String> {
        let manifest = fs::read_to_string(self.path(name).join("MANIFEST"))?;
        manifest
            .lines()
            .find_map(|line| line.strip_prefix("# key: "))
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other(format!("the MANIFEST of {name} has no key")))
    }
}

/// Makes the named fixtures (or groups) if they are missing, outdated or damaged, with the
/// script's words on standard error.
pub async fn ensure(names: &[&str]) -> Result<Fixtures, Error> {
    ensure_with(names, &Progress::stderr()).await
}

/// Like [`ensure`], with the script's words handed to `progress`.
pub(crate) async fn ensure_with(names: &[&str], progress: &Progress) -> Result<Fixtures, Error> {
    let cache = files::cache_dir()?;
    let script = unpack(&cache)?;
    let mut child = Command::new("bash")
        .arg(&script)
        .arg("build")
        .args(names)
        .env("HATCHERY_CACHE", &cache)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(StartSnafu { script: &script })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (_, stderr_lines) = tokio::join!(
        relay(stdout, |line| progress.send(Event::Fixture(line))),
        relay(stderr, |_| ()),
    );
    let status = child.wait().await.context(StartSnafu { script })?;
    let (message, remedy) = split_error(&stderr_lines);
    match status.code() {
        Some(0) => Ok(Fixtures {
            items: cache.join("items"),
        }),
        Some(2) => RefusedSnafu { message, remedy }.fail(),
        _ => FailedSnafu { message, remedy }.fail(),
    }
}

async fn relay(from: Option<impl AsyncRead + Unpin>, each: impl Fn(String)) -> Vec<String> {
    let mut seen = Vec::new();
    if let Some(from) = from {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            each(line.clone());
            seen.push(line);
        }
    }
    seen
}

/// The script ends with `error: what`, then an indented line that says what to do.
fn split_error(lines: &[String]) -> (String, Option<String>) {
    let Some(at) = lines.iter().rposition(|line| line.starts_with("error: ")) else {
        let last = lines.last().map_or("it printed nothing", String::as_str);
        return (format!("the fixtures script failed: {last}"), None);
    };
    let message = lines[at].trim_start_matches("error: ").to_owned();
    (
        message,
        lines.get(at + 1).map(|line| line.trim().to_owned()),
    )
}

/// Puts the embedded scripts into the cache, under their own hash: several versions of the
/// binary do not disturb each other.
fn unpack(cache: &Path) -> Result<PathBuf, Error> {
    let scripts = cache.join("scripts");
    let target = scripts.join(&embedded_hash()[..16]);
    if !target.is_dir() {
        unpack_into(&scripts, &target).context(UnpackSnafu { path: &target })?;
    }
    Ok(target.join("fixtures"))
}

fn unpack_into(scripts: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(scripts)?;
    let fresh = tempfile::Builder::new()
        .prefix(".unpacking-")
        .tempdir_in(scripts)?;
    for file in FILES {
        let path = fresh.path().join(file.path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(&path, file.bytes)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))?;
    match fs::rename(fresh.path(), target) {
        // Another process was quicker, with the same content.
        Err(_) if target.is_dir() => Ok(()),
        result => result,
    }
}

fn embedded_hash() -> String {
    let mut hash = Sha256::new();
    for file in FILES {
        hash.update(file.path);
        hash.update([u8::from(file.executable)]);
        hash.update(file.bytes.len().to_le_bytes());
        hash.update(file.bytes);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_scripts_unpack_once_and_run() {
        let cache = tempfile::tempdir().unwrap();
        let script = unpack(cache.path()).unwrap();
        assert_eq!(unpack(cache.path()).unwrap(), script);
        let help = std::process::Command::new(&script)
            .arg("--help")
            .env("HATCHERY_CACHE", cache.path())
            .output()
            .unwrap();
        assert!(help.status.success(), "{help:?}");
        let left = fs::read_dir(cache.path().join("scripts")).unwrap().count();
        assert_eq!(left, 1, "no unfinished directory may stay behind");
    }

    #[test]
    fn the_scripts_own_words_and_advice_are_kept() {
        let lines = ["noise", "error: no room", "  free some space"].map(String::from);
        assert_eq!(
            split_error(&lines),
            ("no room".into(), Some("free some space".into()))
        );
        assert!(split_error(&[]).0.contains("printed nothing"));
    }
}
