//! Asks programs of an archive for their versions, by running them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, Permissions},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{bundle::Bundle, cache, layout::FoundFile, problem::Problem};

/// A program that only prints its version takes less.
const PATIENCE: Duration = Duration::from_secs(20);
/// Far more than any says.
const MOST_WORDS: u64 = 64 << 10;

/// What each program of the list says to its flag, or why it says nothing. Answers are remembered; failures
/// are not, since a busy machine may be the cause.
///
/// Programs run with nothing of our environment, in a directory of their own.
pub(super) fn ask(
    bundle: &Bundle,
    programs: &[(FoundFile<'_>, &str)],
) -> Result<Vec<Result<String, String>>, Problem> {
    let mut open: BTreeMap<&str, (String, &str)> = BTreeMap::new();
    let mut digests = BTreeSet::new();
    for (file, flag) in programs {
        if bundle.answer(file).is_none() && digests.insert(file.digest) {
            open.insert(file.path, (file.digest.to_string(), *flag));
        }
    }
    let mut fresh = BTreeMap::new();
    if !open.is_empty() {
        fresh = extract_and_run(bundle, &open)?;
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
) -> Result<Answers, Problem> {
    let no_room = |error: io::Error| {
        Problem::new(
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
        answers.insert(digest.clone(), run(&path, flag, PATIENCE));
        std::fs::remove_file(path)
    });
    read.map_err(|error| Problem::unreadable(bundle.path(), &error))?;
    Ok(answers)
}

/// What a program prints, or why it does not.
fn run(program: &Path, flag: &str, patience: Duration) -> Result<String, String> {
    let mut child = start(program, flag).map_err(|error| format!("it does not start: {error}"))?;
    let output = child.stdout.take();
    // Read beside the wait: a program that says much would otherwise wait for us.
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            // What was said before a failure counts too.
            let _ = output.take(MOST_WORDS).read_to_end(&mut bytes);
        }
        bytes
    });
    let ended = wait(&mut child, patience);
    let Some(status) = ended.map_err(|error| error.to_string())? else {
        // Not joined: a child of its own may hold the pipe for ever.
        return Err(format!("it did not end within {} s", patience.as_secs()));
    };
    let bytes = reader.join().unwrap_or_default();
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn start(program: &Path, flag: &str) -> io::Result<Child> {
    let mut tries = 0;
    loop {
        let started = Command::new(program)
            .arg(flag)
            .env_clear()
            .current_dir(program.parent().unwrap_or(Path::new("/")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        match started {
            // Another thread that starts a program right now still has our file open for writing.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 50 => {
                tries += 1;
                thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(script: &str, patience: Duration) -> Result<String, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        run(&path, "--version", patience)
    }

    #[test]
    fn a_program_says_its_version() {
        let long = Duration::from_secs(10);
        assert_eq!(says("echo \"$1 $HOME.\"", long).unwrap(), "--version .\n");
        assert!(says("exit 3", long).unwrap_err().contains('3'));
        let much = says("while :; do echo much; done", long);
        assert!(much.is_err(), "it is ended when nobody reads any more");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let begin = Instant::now();
        let said = says("exec sleep 60", Duration::from_millis(200));
        assert!(said.unwrap_err().contains("did not end"));
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
