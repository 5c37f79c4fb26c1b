//! Runs an untrusted program so that all it can do is print.
//!
//! Programs of an archive are asked for their version on the control machine, where the keys of every cluster lie.
//! [`Launcher`] starts them through a process that first gives up everything ([`become_confined`]): it sees no file
//! but the program itself, writes nothing, has no network, no environment, no capabilities and no second process,
//! and its time and memory are limited. The kernel must have system call filters, and Landlock or user namespaces;
//! where it does not, the program is not run.
//!
//! Confining needs a process of its own, since none of it can be taken back. So the program that uses this crate
//! calls itself again, by a subcommand of its choice that ends in [`become_confined`].

mod fence;
mod filter;
mod linkage;

use std::{
    ffi::{OsStr, OsString},
    fmt,
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The exit code of a process that could not become the program; its standard error says why.
pub const NOT_STARTED: u8 = 125;

/// Far more than any program prints for its version.
const OUTPUT_LIMIT: u64 = 64 << 10;
/// The longest reason that a launcher is believed.
const REASON_LIMIT: u64 = 400;

/// How programs of an archive are started on the control machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    words: Vec<OsString>,
}

impl Launcher {
    /// A command to which the program's path and its argument are added.
    pub fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
        }
    }

    /// The running program, called again by the subcommand that ends in [`become_confined`].
    pub fn this_program(subcommand: &str) -> Self {
        Self::new(["/proc/self/exe", subcommand])
    }

    /// What a program prints to its standard output, or why there is nothing.
    pub(crate) fn output(
        &self,
        program: &Path,
        argument: &str,
        time_limit: Duration,
    ) -> Result<String, String> {
        let mut child = self
            .start(program, argument)
            .map_err(|error| format!("it does not start: {error}"))?;
        let (output, reason) = (child.stdout.take(), child.stderr.take());
        // Read beside the wait: a program that prints much would otherwise wait for us.
        let output = thread::spawn(move || read_at_most(output, OUTPUT_LIMIT));
        let reason = thread::spawn(move || first_of(reason, REASON_LIMIT));
        let ended = wait(&mut child, time_limit);
        let Some(status) = ended.map_err(|error| error.to_string())? else {
            return Err(format!("it did not end within {} s", time_limit.as_secs()));
        };
        if status.code() == Some(NOT_STARTED.into()) {
            return Err(printable(&reason.join().unwrap_or_default()));
        }
        if !status.success() {
            return Err(format!("it ended with {status}"));
        }
        let output = output.join().unwrap_or_default();
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    fn start(&self, program: &Path, argument: &str) -> io::Result<Child> {
        let Some((launcher, words)) = self.words.split_first() else {
            return Err(io::Error::other("no program was given to confine it with"));
        };
        Command::new(launcher)
            .args(words)
            .arg(program)
            .arg(argument)
            .env_clear()
            .current_dir(program.parent().unwrap_or(Path::new("/")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

fn read_at_most(stream: Option<impl io::Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What was said before a failure counts too.
        let _ = stream.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

/// The first bytes; what follows is read and dropped, since a program whose output is not read would be killed by SIGPIPE.
fn first_of(stream: Option<impl io::Read>, limit: u64) -> Vec<u8> {
    let Some(mut stream) = stream else {
        return Vec::new();
    };
    let bytes = read_at_most(Some(&mut stream), limit);
    let _ = io::copy(&mut stream, &mut io::sink());
    bytes
}

/// A reason may come from the program itself: nothing that a terminal would obey.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match text.trim() {
        "" => "it does not start".to_owned(),
        text => text.to_owned(),
    }
}

fn wait(child: &mut Child, time_limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + time_limit;
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

/// Why a process did not become the program.
#[derive(Debug)]
pub struct NotStarted(String);

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl NotStarted {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Gives up all that this process may do and becomes the program. A caller that gets an answer prints it to standard error
/// and ends with [`NOT_STARTED`]. To be called before the process has a second thread.
pub fn become_confined(program: &Path, argument: &OsStr) -> NotStarted {
    match confine(program) {
        Ok(program) => execute(&program, argument),
        Err(reason) => reason,
    }
}

/// Confines this process; the answer is the program's path as the process sees it from then on.
fn confine(program: &Path) -> Result<std::path::PathBuf, NotStarted> {
    let is_dynamic = linkage::is_dynamic(program)
        .map_err(|error| NotStarted::new(format!("it cannot be read: {error}")))?;
    fence::close_inherited_files();
    fence::set_limits()?;
    let path = fence::enclose(program, is_dynamic)?;
    filter::install()?;
    Ok(path)
}

fn execute(program: &Path, argument: &OsStr) -> NotStarted {
    let mut tries = 0;
    loop {
        let error = Command::new(program).arg(argument).env_clear().exec();
        // Another thread of the caller that starts a program right now still has the file open for writing.
        if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 50 {
            tries += 1;
            thread::sleep(Duration::from_millis(20));
            continue;
        }
        return NotStarted::new(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                "it is not a program that runs without others (such as a script's interpreter), \
                 and no other is let near it"
                    .to_owned()
            }
            _ => format!("it does not start: {error}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// What a script says that `sh` runs unconfined: only the talk with the process is tested here.
    fn says(script: &str, time_limit: Duration) -> Result<String, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        fs::write(&path, format!("{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        Launcher::new(["/bin/sh"]).output(&path, "--version", time_limit)
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
    fn complaints_keep_no_program_from_its_version() {
        let script = "i=0; while [ $i -lt 1000 ]; do echo much >&2; i=$((i+1)); done; echo v1.30.1";
        assert_eq!(
            says(script, Duration::from_secs(10)).as_deref(),
            Ok("v1.30.1\n")
        );
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let begin = Instant::now();
        let said = says("exec sleep 60", Duration::from_millis(200));
        assert!(said.unwrap_err().contains("did not end"));
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_reason_is_short_and_obeyed_by_no_terminal() {
        let long = Duration::from_secs(10);
        let said = says("printf 'no\\033[2J way\\n' >&2; exit 125", long);
        assert_eq!(said.unwrap_err(), "no[2J way");
        let much = says(
            "i=0; while [ $i -lt 300 ]; do echo much; i=$((i+1)); done >&2; exit 125",
            long,
        );
        assert!(much.unwrap_err().len() <= 400);
        assert_eq!(says("exit 125", long).unwrap_err(), "it does not start");
    }

    #[test]
    fn without_a_launcher_nothing_runs() {
        let launcher = Launcher::new(Vec::<OsString>::new());
        let said = launcher.output(Path::new("/bin/true"), "x", Duration::from_secs(1));
        assert!(said.unwrap_err().contains("does not start"));
    }
}
