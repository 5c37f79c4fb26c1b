//! `sandbox`: disposable machines on this computer.

mod down;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Subcommand;
use hatchery_sandbox::{
    fault::{Fault, Rate, Slowness},
    lab::{self, Lab, Options},
    name::Name,
    progress::{Event, Progress},
    settings::{Labels, RequestedSettings, Sudo, System},
    ssh,
};

use crate::{cluster_file, output::Output};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a sandbox, complete it, or add machines to it
    Up(Up),
    /// Show all sandboxes and their machines
    List,
    /// Log in to a machine
    Ssh(Ssh),
    /// Run a command on a machine and end with its exit code
    Exec(Exec),
    /// Inject faults into machines: power cuts, freezes, network faults
    Fault(FaultArguments),
    /// Remove a sandbox; nothing of it is left
    Down(Down),
}

#[derive(clap::Args)]
pub(crate) struct Up {
    /// The sandbox; its machines are called NAME-1, NAME-2 and so on
    #[arg(long, default_value = "lab", value_parser = name)]
    name: Name,
    /// How many machines [default: 1, or as many as there are]
    #[arg(long, value_name = "N")]
    machines: Option<usize>,
    /// What the machines are: debian, or rpm (like openEuler) [default: debian]
    #[arg(long, value_name = "debian|rpm")]
    system: Option<System>,
    /// The login user [default: root]
    #[arg(long)]
    user: Option<String>,
    /// How the login user becomes root [default: nopasswd]
    #[arg(long, value_name = "nopasswd|password")]
    sudo: Option<Sudo>,
    /// Reach the machines only through a bastion, NAME-bastion
    #[arg(long)]
    bastion: bool,
    /// How many masters deploy.yaml has [default: 1, or as before]
    #[arg(long, value_name = "N")]
    masters: Option<usize>,
    /// Make the last machine a load balancer in deploy.yaml
    #[arg(long)]
    loadbalance: bool,
}

#[derive(clap::Args)]
pub(crate) struct Ssh {
    #[command(flatten)]
    sandbox: Which,
    /// The machine, for example lab-1
    machine: String,
    /// A command to run there instead of a login shell
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Exec {
    #[command(flatten)]
    sandbox: Which,
    /// The machine, for example lab-1
    machine: String,
    /// The command with its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Which {
    /// The sandbox [default: the one that the machine's name begins with]
    #[arg(long, value_parser = name)]
    name: Option<Name>,
}

#[derive(clap::Args)]
pub(crate) struct FaultArguments {
    /// The sandbox [default: the one that the machine's name begins with]
    #[arg(long, global = true, value_parser = name)]
    name: Option<Name>,
    #[command(subcommand)]
    command: FaultCommand,
}

#[derive(clap::Args)]
pub(crate) struct Machines {
    /// The machines, for example lab-1 lab-2
    #[arg(required = true, value_name = "MACHINE")]
    machines: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum FaultCommand {
    /// Cut the power: all processes end at once, nothing is saved
    Stop(Machines),
    /// Restore the power; returns when the machines are ready
    Start(Machines),
    /// Freeze all processes of the machines
    Pause(Machines),
    /// Let frozen processes continue
    Resume(Machines),
    /// Unplug the network cable
    Cut(Machines),
    /// Plug the network cable in again
    Heal(Machines),
    /// Slow the network down in both directions
    Slow {
        #[command(flatten)]
        machines: Machines,
        /// Maximum rate in each direction, for example 1mbit [default: 1mbit without --delay]
        #[arg(long)]
        rate: Option<Rate>,
        /// Additional round-trip delay, for example 100ms; needs a kernel with netem
        #[arg(long, value_parser = duration)]
        delay: Option<Duration>,
    },
    /// Restore the network's normal speed
    Normal(Machines),
}

#[derive(clap::Args)]
pub(crate) struct Down {
    /// The sandbox
    #[arg(long, default_value = "lab", value_parser = name)]
    name: Name,
}

fn name(text: &str) -> Result<Name, String> {
    text.parse()
        .map_err(|error: hatchery_sandbox::name::Invalid| error.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: Option<u64> = digits
        .parse()
        .ok()
        .filter(|number| (1..=60_000).contains(number));
    match (number, &text[digits.len()..]) {
        (Some(number), "ms") => Ok(Duration::from_millis(number)),
        (Some(number), "s") => Ok(Duration::from_secs(number)),
        _ => Err("a number from 1 to 60000 with ms or s, for example 100ms".into()),
    }
}

pub(crate) async fn run(
    command: Command,
    home: Option<PathBuf>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(up) => self::up(up, home, output).await?,
        Command::List => list(output).await?,
        Command::Ssh(ssh) => return log_in(ssh, home).await,
        Command::Exec(exec) => return execute(exec, home, output).await,
        Command::Fault(fault) => self::fault(fault, home).await?,
        Command::Down(down) => self::down::run(&down.name, home).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn up(up: Up, home: Option<PathBuf>, output: &Output) -> anyhow::Result<()> {
    // Results for people go to standard output, news on the way there to standard error.
    let json = output.json();
    let progress = Progress::new(move |event| match event {
        Event::Ready { .. } if !json => println!("{event}"),
        _ => eprintln!("{event}"),
    });
    let options = Options {
        name: up.name,
        machines: up.machines,
        settings: RequestedSettings {
            system: up.system,
            user: up.user,
            sudo: up.sudo,
            bastion: up.bastion.then_some(true),
        },
        masters: up.masters,
        loadbalance: up.loadbalance.then_some(true),
        labels: Labels::new(),
        progress,
    };
    let home = cluster_file::home(home.as_deref())?;
    let lab = lab::up(&options, &home).await?;
    if json {
        output.print_json(&describe(&lab));
    } else {
        output.print(&next_steps(&lab, output.program()));
    }
    Ok(())
}

fn describe(lab: &Lab) -> serde_json::Value {
    let machine = |machine: &lab::Machine| serde_json::json!({"name": machine.name, "address": machine.address});
    serde_json::json!({
        "name": lab.name.as_str(),
        "system": lab.settings.system,
        "user": lab.settings.user,
        "sudo": lab.settings.sudo,
        "network": lab.subnet.network().to_string(),
        "machines": lab.machines.iter().map(machine).collect::<Vec<_>>(),
        "bastion": lab.bastion.as_ref().map(machine),
        "deployFile": lab.deploy_file(),
        "sshConfig": lab.ssh_config(),
        "privateKey": lab.key(),
    })
}

fn next_steps(lab: &Lab, program: &str) -> String {
    let name = &lab.name;
    let first = lab
        .machines
        .first()
        .map_or("MACHINE", |machine| machine.name.as_str());
    let machines = lab.machines.len();
    format!(
        "\nsandbox {name}: {machines} machine{} running\n  \
         deploy file  {}\n  \
         log in       {program} sandbox ssh --name {name} {first}\n  \
         plain ssh    ssh -F {} {first}\n  \
         remove       {program} sandbox down --name {name}\n",
        if machines == 1 { "" } else { "s" },
        lab.deploy_file().display(),
        lab.ssh_config().display(),
    )
}

async fn list(output: &Output) -> anyhow::Result<()> {
    let sandboxes = lab::list().await?;
    if output.json() {
        output.print_json(&serde_json::to_value(sandboxes)?);
        return Ok(());
    }
    if sandboxes.is_empty() {
        let program = output.program();
        eprintln!("no sandboxes; '{program} sandbox up --name lab --machines 3' makes one");
        return Ok(());
    }
    let mut text = format!(
        "{:<12} {:<20} {:<15} {:<10} {:<7} USER\n",
        "SANDBOX", "MACHINE", "ADDRESS", "STATE", "SYSTEM"
    );
    for sandbox in sandboxes {
        let (system, user) = match &sandbox.settings {
            Some(settings) => (settings.system.to_string(), settings.user.as_str()),
            None => ("-".to_owned(), "-"),
        };
        if sandbox.machines.is_empty() {
            writeln!(
                text,
                "{:<12} {:<20} {:<15} {:<10} {system:<7} {user}",
                sandbox.name, "-", "-", "unfinished"
            )?;
        }
        for machine in &sandbox.machines {
            let (name, address, state) = (
                &machine.name,
                machine.address.to_string(),
                machine.state.word(),
            );
            writeln!(
                text,
                "{:<12} {name:<20} {address:<15} {state:<10} {system:<7} {user}",
                sandbox.name
            )?;
        }
    }
    output.print(&text);
    Ok(())
}

/// The sandbox of a machine: the one named, or the one that the machine's name begins with.
async fn find(name: Option<Name>, machine: &str, home: Option<&Path>) -> anyhow::Result<Lab> {
    let Some(name) = name.or_else(|| Name::from_machine(machine)) else {
        return Err(lab::Error::unknown_machine(machine).into());
    };
    Ok(lab::open(&name, &cluster_file::home(home)?).await?)
}

async fn log_in(arguments: Ssh, home: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let lab = find(arguments.sandbox.name, &arguments.machine, home.as_deref()).await?;
    let machine = lab.machine(&arguments.machine)?;
    lab.require_access()?;
    let mut ssh = std::process::Command::new("ssh");
    ssh.args(machine.ssh_arguments(false));
    if !arguments.command.is_empty() {
        ssh.arg("--").args(&arguments.command);
    }
    Err(ssh.exec()).context("cannot run ssh")
}

async fn execute(
    arguments: Exec,
    home: Option<PathBuf>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let lab = find(arguments.sandbox.name, &arguments.machine, home.as_deref()).await?;
    let machine = lab.machine(&arguments.machine)?;
    lab.require_access()?;
    // One word is a shell command; several are a program with arguments, kept apart.
    let command = match arguments.command.as_slice() {
        [command] => command.clone(),
        words => words
            .iter()
            .map(|word| ssh::quote(word))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let status = tokio::process::Command::new("ssh")
        .args(machine.ssh_arguments(true))
        .args(["--", &command])
        .status()
        .await
        .context("cannot run ssh")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    if code == Some(255) {
        let program = output.program();
        eprintln!(
            "  '{program} sandbox list' shows whether {} runs",
            machine.name
        );
    }
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

async fn fault(arguments: FaultArguments, home: Option<PathBuf>) -> anyhow::Result<()> {
    let (fault, machines, done) = match arguments.command {
        FaultCommand::Stop(machines) => (Fault::Stop, machines, "off"),
        FaultCommand::Start(machines) => (Fault::Start, machines, "running"),
        FaultCommand::Pause(machines) => (Fault::Pause, machines, "frozen"),
        FaultCommand::Resume(machines) => (Fault::Resume, machines, "running"),
        FaultCommand::Cut(machines) => (Fault::Cut, machines, "cut off"),
        FaultCommand::Heal(machines) => (Fault::Heal, machines, "connected"),
        FaultCommand::Normal(machines) => (Fault::Normal, machines, "as fast as before"),
        FaultCommand::Slow {
            machines,
            rate,
            delay,
        } => {
            let usual = delay.is_none().then(|| "1mbit".parse().ok()).flatten();
            let slowness = Slowness {
                rate: rate.or(usual),
                delay,
            };
            (Fault::Slow(slowness), machines, "slow")
        }
    };
    let first = machines.machines.first().map_or("", String::as_str);
    let lab = find(arguments.name, first, home.as_deref()).await?;
    let names: BTreeSet<_> = machines.machines.iter().collect();
    // All are checked before anything happens to one.
    for name in &names {
        lab.machine(name)?;
    }
    for name in names {
        lab.fault(name, fault).await?;
        eprintln!("{name} is {done}");
    }
    Ok(())
}
