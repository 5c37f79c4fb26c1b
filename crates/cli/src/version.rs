//! `version`: what was built, when, from which commit.

use std::process::ExitCode;

use time::{OffsetDateTime, macros::format_description};

use crate::output::Output;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `--version`: one line; for `eggo` what `eggo` always printed.
pub(crate) fn flag(output: &Output) -> anyhow::Result<ExitCode> {
    if output.program() == "eggo" || output.json() {
        return run(output);
    }
    output.print(&format!("{} {VERSION}\n", output.program()));
    Ok(ExitCode::SUCCESS)
}

/// The command: everything.
pub(crate) fn run(output: &Output) -> anyhow::Result<ExitCode> {
    let commit = env!("HATCHERY_COMMIT");
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let built = OffsetDateTime::from_unix_timestamp(env!("HATCHERY_BUILD_EPOCH").parse()?)?;
    let built = built.format(format_description!(
        "[year]-[month]-[day] [hour]:[minute]:[second]"
    ))?;
    if output.json() {
        output.print_json(&serde_json::json!({
            "version": VERSION, "commit": commit, "architecture": architecture, "built": built,
        }));
    } else {
        output.print(&format!(
            "Version:\t{VERSION}\nCommitID:\t{commit}\nArchitecture:\t{architecture}\nBuildTime:\t{built}\n"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
