//! What this program does when it was called by itself to run a program of an archive: it gives up its rights and
//! becomes that program.

use std::{ffi::OsString, io::Write as _, path::Path, process::ExitCode};

use hatchery_engine::confinement::{NOT_STARTED, become_confined};

/// The first argument that asks for it. It is not a documented command.
pub(crate) const WORD: &str = "__confined";

/// The program and its argument, if they are what this process was started for.
pub(crate) fn asked(words: &[OsString]) -> Option<(&Path, &OsString)> {
    match words {
        [_, word, program, argument] if word == WORD => Some((Path::new(program), argument)),
        _ => None,
    }
}

/// Becomes the program; an answer means that it could not.
pub(crate) fn run(program: &Path, argument: &OsString) -> ExitCode {
    let reason = become_confined(program, argument);
    let _ = writeln!(std::io::stderr(), "{reason}");
    ExitCode::from(NOT_STARTED)
}
