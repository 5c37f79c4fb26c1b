//! `template`: a commented deploy file to begin with.

use std::{
    io::{self, Write as _},
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use hatchery_spec::{
    template::{self, List, Machines, Options},
    value::{Mismatch, Name, Secret, login, machine_address},
};

use crate::output::{Output, Refused};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file to write
    #[arg(short, long, default_value = "template.yaml")]
    file: PathBuf,
    /// The cluster's name
    #[arg(short, long, default_value = "k8s-cluster", value_parser = name)]
    name: Name,
    /// The SSH user of all machines
    #[arg(short, long, default_value = "root", value_parser = user)]
    user: String,
    /// The SSH password of all machines; other users of this machine can see it while the command
    /// runs, so better leave it out and follow the comments in the file
    #[arg(short, long)]
    password: Option<String>,
    /// The masters; repeat it, or put commas between the addresses [default: an example's]
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = address)]
    masters: Vec<IpAddr>,
    /// The workers [default: the masters]
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = address)]
    workers: Vec<IpAddr>,
    /// The workers, under the manual's name
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = address, conflicts_with = "workers")]
    nodes: Vec<IpAddr>,
    /// The etcd members [default: the masters]
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = address)]
    etcds: Vec<IpAddr>,
    /// The load balancer [default: none]
    #[arg(short, long, value_name = "IP", visible_alias = "loadbalancer", value_parser = address)]
    loadbalance: Option<IpAddr>,
    /// Use the keys of eggo's manual: nodes, package-src, pacakges
    #[arg(long)]
    classic: bool,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
}

fn name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(|wrong| words(&wrong))
}

fn address(text: &str) -> Result<IpAddr, String> {
    machine_address(text.trim()).map_err(|wrong| words(&wrong))
}

fn user(text: &str) -> Result<String, String> {
    login(text).map_err(|wrong| words(&wrong))
}

fn words(wrong: &Mismatch) -> String {
    format!("it is {}; {}", wrong.problem, wrong.remedy)
}

pub(crate) fn run(arguments: Arguments, output: &Output) -> anyhow::Result<ExitCode> {
    let password = password(arguments.password.as_deref())?;
    let workers_flag = if arguments.nodes.is_empty() {
        "--workers"
    } else {
        "--nodes"
    };
    let workers = [arguments.workers, arguments.nodes].concat();
    let machines = Machines::new(
        arguments.masters,
        workers,
        arguments.etcds,
        arguments.loadbalance,
    )
    .map_err(|error| {
        let flag = match error.list() {
            List::Masters => "--masters",
            List::Workers => workers_flag,
            List::Etcds => "--etcds",
            List::LoadBalancer => "--loadbalance",
        };
        Refused::new(format!("{flag}: {error}")).remedy(error.remedy())
    })?;
    let options = Options {
        name: arguments.name,
        user: arguments.user,
        password,
        machines,
        classic: arguments.classic,
    };
    write(
        &arguments.file,
        &template::render(&options),
        arguments.force,
    )?;
    if options.password.is_some() {
        output.warn(
            "the password was on the command line, where others see it, and stands in the file now",
            "safer: leave -p out, and use password-env, password-file or private-key-path in the file",
        );
    }
    report(&arguments.file, &options, output);
    Ok(ExitCode::SUCCESS)
}

/// Never part of a message, so it is not checked where clap would repeat it.
fn password(text: Option<&str>) -> anyhow::Result<Option<Secret>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    if text.chars().any(char::is_control) {
        let refused = Refused::new("--password: it has a line break or another control character")
            .remedy("use password-file in the deploy file for such a password");
        return Err(refused.into());
    }
    Ok(Some(Secret::new(text)))
}

/// Writes the file at once or not at all; a file that is there stays unless `force` is set.
fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let cannot = || format!("cannot write {}", path.display());
    if path.is_dir() {
        let refused = Refused::new(format!("{} is a directory", path.display()));
        return Err(refused.remedy("name a file in it with -f").into());
    }
    if !directory.is_dir() {
        let refused = Refused::new(format!("there is no directory {}", directory.display()));
        return Err(refused.remedy("make it, or choose another with -f").into());
    }
    // Made with mode 0600, and kept so: it may hold a password, or will.
    let mut file = tempfile::NamedTempFile::new_in(directory).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)?;
    file.as_file().sync_all().with_context(cannot)?;
    let kept = if force {
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    match kept.map_err(|error| error.error) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let refused = Refused::new(format!("{} is there already", path.display()));
            let remedy = "choose another name with -f, or overwrite it with --force";
            Err(refused.remedy(remedy).into())
        }
        Err(error) => Err(error).with_context(cannot),
    }
}

fn report(file: &Path, options: &Options, output: &Output) {
    let count = |list| options.machines.list(list).len();
    let etcds = match count(List::Etcds) {
        0 => count(List::Masters),
        number => number,
    };
    if output.json() {
        output.print_json(&serde_json::json!({
            "file": file,
            "cluster": options.name,
            "masters": options.machines.list(List::Masters),
            "workers": options.machines.list(List::Workers),
            "etcds": options.machines.list(List::Etcds),
            "loadBalancer": options.machines.list(List::LoadBalancer).first(),
        }));
        return;
    }
    let balancer = match count(List::LoadBalancer) {
        0 => "no load balancer",
        _ => "a load balancer",
    };
    let file = file.display();
    output.print(&format!(
        "{file} written: {}, {}, {}, {balancer}\n  edit    its comments say what each key does\n  check   {} check -f {file}\n",
        number(count(List::Masters), "master"),
        number(count(List::Workers), "worker"),
        number(etcds, "etcd member"),
        output.program(),
    ));
}

/// A number with its word.
pub(crate) fn number(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}
