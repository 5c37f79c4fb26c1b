//! How results and errors look.

use std::{
    env, fmt,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use hatchery_sandbox::lab;

/// For people or for programs.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Wrong input: nothing was touched, and the exit code is 2.
#[derive(Debug)]
pub(crate) struct Refused {
    message: String,
    remedy: Option<String>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: None,
        }
    }

    /// What the user can do.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

/// Something went wrong when machines may have been changed already: the exit code is 1.
#[derive(Debug)]
pub(crate) struct Failed(Refused);

impl From<Refused> for Failed {
    fn from(reason: Refused) -> Self {
        Self(reason)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {}

/// Where output goes and how it looks.
pub(crate) struct Output {
    program: &'static str,
    format: Format,
    colours: bool,
    debug: bool,
}

/// Whether standard error shows colours.
fn colours_on_stderr(plain: bool) -> bool {
    !plain
        && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && io::stderr().is_terminal()
}

impl Output {
    pub(crate) fn new(program: &'static str, format: Format, plain: bool, debug: bool) -> Self {
        Self {
            program,
            format,
            colours: colours_on_stderr(plain),
            debug,
        }
    }

    /// Whether everything that is run is shown.
    pub(crate) fn debug(&self) -> bool {
        self.debug
    }

    /// `hatchery` or `eggo`.
    pub(crate) fn program(&self) -> &'static str {
        self.program
    }

    /// Whether it was called by the name of the program that it replaces, and has that program's options.
    pub(crate) fn is_eggo(&self) -> bool {
        self.program == "eggo"
    }

    /// Whether programs read it.
    pub(crate) fn json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints a result. A reader that went away, such as `head`, is not an error.
    #[expect(clippy::unused_self, reason = "the one place for results")]
    pub(crate) fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes());
        let _ = stdout.flush();
    }

    /// Prints a result for programs, on one line.
    pub(crate) fn print_json(&self, value: &serde_json::Value) {
        self.print(&format!("{value}\n"));
    }

    /// Whether what goes to standard error has colours.
    pub(crate) fn colours(&self) -> bool {
        self.colours
    }

    /// Warns on standard error, with what to do instead.
    pub(crate) fn warn(&self, message: &str, remedy: &str) {
        let (begin, end) = self.bold("33");
        eprintln!("{begin}warning{end}: {message}\n  {remedy}");
    }

    /// What begins and ends a bold word of a colour.
    pub(crate) fn bold(&self, colour: &str) -> (String, &'static str) {
        if self.colours {
            (format!("\x1b[1;{colour}m"), "\x1b[0m")
        } else {
            (String::new(), "")
        }
    }

    /// Prints an error with what to do about it, and returns the exit code.
    pub(crate) fn error(&self, error: &anyhow::Error) -> ExitCode {
        let (begin, end) = self.bold("31");
        eprintln!("{begin}error{end}: {error:#}");
        let refused = error.downcast_ref::<Refused>();
        let failed = error.downcast_ref::<Failed>().map(|failed| &failed.0);
        if let Some(remedy) = refused.or(failed).and_then(|one| one.remedy.as_ref()) {
            eprintln!("  {remedy}");
        }
        if refused.is_some() {
            return ExitCode::from(2);
        }
        let known = error.downcast_ref::<lab::Error>();
        if let Some(remedy) = known.and_then(lab::Error::remedy) {
            eprintln!("  {remedy}");
        }
        match known {
            Some(error) if error.is_refusal() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}
