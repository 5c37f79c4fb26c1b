//! `kubeconfig`: the administrator's way into a cluster, printed or merged into the user's own file.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use hatchery_engine::kubeconfig;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    cluster_file::{self, Named},
    output::{Output, Refused},
    refusal,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// Merge it into a file, instead of printing it, and make its context the current one
    #[arg(long)]
    merge: bool,
    /// The file that it is merged into [default: the first of KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "PATH", requires = "merge")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) async fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let Some(file) = arguments.named.read(home, output).await? else {
        return Ok(ExitCode::from(2));
    };
    let cluster = &file.cluster;
    let authorities = cluster_file::open(home, &cluster.id)
        .await?
        .authorities()
        .await;
    let authorities = authorities.map_err(|error| refusal::authorities(&error))?;
    let Some(authorities) = authorities else {
        let refused = Refused::new(format!("cluster {} was not made from here", cluster.id));
        return Err(refused
            .remedy("deploy it first, or use the --home that it was made with")
            .into());
    };
    let ours = kubeconfig::issue(cluster, &authorities, OffsetDateTime::now_utc())?;
    if !arguments.merge {
        output.print(ours.expose_secret());
        return Ok(ExitCode::SUCCESS);
    }
    let path = match &arguments.kubeconfig {
        Some(path) => path.clone(),
        None => usual()?,
    };
    merge(&path, &ours)?;
    if output.json() {
        output.print_json(&json!({"cluster": cluster.id, "kubeconfig": path}));
    } else {
        output.print(&format!(
            "cluster {} is in {}, and its context is the current one\n  next: kubectl get nodes\n",
            cluster.id,
            path.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where kubectl writes.
fn usual() -> Result<PathBuf, Refused> {
    let named = std::env::var_os("KUBECONFIG");
    let first = named
        .and_then(|paths| std::env::split_paths(&paths).find(|path| !path.as_os_str().is_empty()));
    if let Some(path) = first {
        return Ok(path);
    }
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(".kube/config")),
        None => Err(
            Refused::new("HOME is not set, so there is no ~/.kube/config")
                .remedy("name a file with --kubeconfig"),
        ),
    }
}

/// Writes the file atomically; only its owner may read it.
fn merge(path: &Path, ours: &SecretString) -> anyhow::Result<()> {
    // A link stays one: what it leads to is written.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let shown = path.display();
    let there = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        there => Some(there.with_context(|| format!("cannot read {shown}"))?),
    };
    let merged = kubeconfig::merge(there.as_deref(), ours).map_err(|error| {
        let refused = Refused::new(format!("{shown} is left as it was: {error}"));
        match error.remedy() {
            Some(remedy) => refused.remedy(remedy),
            None => refused,
        }
    })?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        fs::create_dir_all(parent)?;
        // Made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(merged.expose_secret().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {shown}"))
}
