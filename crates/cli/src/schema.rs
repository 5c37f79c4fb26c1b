//! `schema`: what editors check and complete deploy files with.

use std::process::ExitCode;

use crate::output::Output;

pub(crate) fn run(output: &Output) -> ExitCode {
    output.print(&format!("{:#}\n", hatchery_spec::schema::schema()));
    ExitCode::SUCCESS
}
