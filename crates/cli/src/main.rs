//! The `hatchery` program: arguments in, calls, output and exit code out.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong input or a missing prerequisite (nothing changed), 3 partly done, 4 there is
//! something to do (`plan --exit-code`), 130 interrupted.

mod check;
mod cleanup;
mod cluster_file;
mod completion;
mod confined;
mod debug;
mod delete;
mod deploy;
mod deploy_file;
mod hooks;
mod interrupt;
mod join;
mod kubeconfig;
mod list;
mod output;
mod plan;
mod progress;
mod refusal;
mod removal;
mod sandbox;
mod saved_plan;
mod schema;
mod template;
mod version;

use std::{env, ffi::OsString, path::Path, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::output::{Format, Output};

/// Makes and keeps Kubernetes clusters on machines you own.
#[derive(Parser)]
#[command(name = "hatchery", disable_version_flag = true)]
struct Arguments {
    /// Print the version
    #[arg(short = 'v', long)]
    version: bool,

    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Option<Command>,
}

/// What every command understands.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Where Hatchery keeps its files [default: ~/.hatchery]
    #[arg(
        long,
        global = true,
        env = "HATCHERY_HOME",
        value_name = "DIR",
        hide_env_values = true
    )]
    home: Option<PathBuf>,

    /// How results are printed
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Show each script that is run and its output, on standard error
    #[arg(short, long, global = true)]
    debug: bool,

    /// No colours, also on a terminal
    #[arg(long, global = true)]
    no_color: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Write a commented deploy file to begin with
    Template(template::Arguments),
    /// Say all that is wrong with a deploy file, before anything is touched
    Check(check::Arguments),
    /// Show what deploy would change, without changing anything
    Plan(plan::Arguments),
    /// Create a cluster or bring it to the state described in the file
    Deploy(deploy::Arguments),
    /// Add machines to a cluster
    Join(join::Arguments),
    /// Remove machines from a cluster, and put them back as they were
    Delete(delete::Arguments),
    /// Show the clusters, and whether they are well
    List,
    /// Print the administrator's kubeconfig of a cluster, or merge it into yours
    Kubeconfig(kubeconfig::Arguments),
    /// Remove a cluster, and put its machines back as they were
    Cleanup(cleanup::Arguments),
    /// Print the JSON schema of deploy files, for editors
    Schema,
    /// Disposable machines on this computer, to try and test on
    #[command(subcommand)]
    Sandbox(sandbox::Command),
    /// Print a shell's completion script
    Completion(completion::Arguments),
    /// Print version, commit, architecture and build time
    Version,
}

fn main() -> ExitCode {
    // A connection to each machine needs a file. Where the limit cannot be raised, they make room for each other.
    let _ = hatchery_host::transport::ssh::raise_open_files();
    let words: Vec<OsString> = env::args_os().collect();
    if let Some((program, argument)) = confined::asked(&words) {
        return confined::run(program, argument);
    }
    let name = program_name(words.first());
    let plain = words.iter().any(|word| word == "--no-color");
    let command = Arguments::command()
        .name(name)
        .bin_name(name)
        .color(if plain {
            ColorChoice::Never
        } else {
            ColorChoice::Auto
        });
    let arguments = match command
        .try_get_matches_from(&words)
        .and_then(|matches| Arguments::from_arg_matches(&matches))
    {
        Ok(arguments) => arguments,
        // Help asked for is no error; everything else is wrong input, and clap's code is 2.
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    if arguments.global.debug {
        debug::show();
    }
    let output = Output::new(name, arguments.global.output, plain, arguments.global.debug);
    let done = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(run(arguments, &output)),
        Err(error) => Err(error).context("cannot begin"),
    };
    match done {
        Ok(code) => code,
        Err(error) => output.error(&error),
    }
}

async fn run(arguments: Arguments, output: &Output) -> anyhow::Result<ExitCode> {
    let home = arguments.global.home;
    if arguments.version {
        return version::flag(output);
    }
    match arguments.command {
        Some(Command::Sandbox(command)) => sandbox::run(command, home, output).await,
        Some(Command::Template(arguments)) => template::run(arguments, output),
        Some(Command::Check(arguments)) => check::run(&arguments, home.as_deref(), output).await,
        Some(Command::Deploy(arguments)) => deploy::run(&arguments, home.as_deref(), output).await,
        Some(Command::Join(arguments)) => join::run(&arguments, home.as_deref(), output).await,
        Some(Command::Delete(arguments)) => delete::run(&arguments, home.as_deref(), output).await,
        Some(Command::Plan(arguments)) => plan::run(&arguments, home.as_deref(), output).await,
        Some(Command::List) => list::run(home.as_deref(), output).await,
        Some(Command::Kubeconfig(arguments)) => {
            kubeconfig::run(&arguments, home.as_deref(), output).await
        }
        Some(Command::Cleanup(arguments)) => {
            cleanup::run(&arguments, home.as_deref(), output).await
        }
        Some(Command::Schema) => Ok(schema::run(output)),
        Some(Command::Completion(arguments)) => Ok(completion::run(&arguments, output)),
        Some(Command::Version) => version::run(output),
        None => {
            let mut command = Arguments::command().name(output.program());
            output.print(&command.render_help().to_string());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The same program is called `eggo` by those who come from there.
fn program_name(first: Option<&OsString>) -> &'static str {
    let file = first.and_then(|path| Path::new(path).file_name());
    if file.is_some_and(|name| name == "eggo") {
        "eggo"
    } else {
        "hatchery"
    }
}
