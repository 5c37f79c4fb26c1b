//! `completion`: the script that lets a shell complete our commands.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::output::Output;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, output: &Output) -> ExitCode {
    let mut script = Vec::new();
    let mut command = crate::Arguments::command().name(output.program());
    clap_complete::generate(arguments.shell, &mut command, output.program(), &mut script);
    output.print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
