//! The files that `up` writes for its user: `ssh_config`, `deploy.yaml` and what is remembered
//! for the next one.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    deploy_file::{DeployFile, Layout},
    error::Error,
    files,
    lab::Lab,
    machine::ContainerSpec,
    settings::{Role, Settings, Sudo},
    ssh_directory::{self, Directory},
};

pub(crate) fn write_ssh_config(
    directory: &Directory,
    settings: &Settings,
    made: &[ContainerSpec],
) -> Result<(), Error> {
    let hosts = made
        .iter()
        .filter(|container_spec| container_spec.role != Role::Outside);
    let hosts: Vec<_> = hosts
        .map(|container_spec| (container_spec.machine.clone(), container_spec.address))
        .collect();
    let bastion = made
        .iter()
        .find(|container_spec| container_spec.role == Role::Bastion);
    let jump = bastion.map(|container_spec| container_spec.machine.as_str());
    let text = ssh_directory::render_config(directory, &settings.user, &hosts, jump);
    Ok(files::write_atomically(
        &directory.config(),
        text.as_bytes(),
        0o600,
    )?)
}

/// What one `up` remembers for the next.
#[derive(Serialize, Deserialize)]
struct SavedState {
    layout: Layout,
    /// The hashes of what `deploy.yaml` may be by our own hand, to notice a user's changes: what
    /// was written, and what that took the place of, in case a kill came in between.
    deploy_files: Vec<String>,
}

fn state_path(directory: &Directory) -> PathBuf {
    directory.path().join("memory.json")
}

fn load_state(directory: &Directory) -> Result<Option<SavedState>, Error> {
    let text = files::read_if_there(&state_path(directory))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The roles that the last `up` gave to the machines.
pub(crate) fn read_layout(directory: &Directory) -> Result<Option<Layout>, Error> {
    Ok(load_state(directory)?.map(|saved| saved.layout))
}

/// Writes `deploy.yaml`. One that its user has changed stays as it is: the new one is put
/// beside it, and its path returned.
pub(crate) fn write_deploy_file(lab: &Lab, layout: Layout) -> Result<Option<PathBuf>, Error> {
    let text = render(lab, layout)?;
    let current = files::read_if_there(&lab.deploy_file())?;
    let saved = load_state(&lab.directory)?;
    let untouched = match (&current, &saved) {
        (None, _) => true,
        (Some(current), Some(saved)) => saved.deploy_files.contains(&hash(current)),
        (Some(_), None) => false,
    };
    if !untouched && current.as_ref() != Some(&text) {
        let beside = lab.deploy_file().with_extension("yaml.new");
        files::write_atomically(&beside, text.as_bytes(), 0o600)?;
        return Ok(Some(beside));
    }
    let ours: Vec<_> = [Some(&text), current.as_ref()]
        .into_iter()
        .flatten()
        .map(|text| hash(text))
        .collect();
    let saved = serde_json::json!({"layout": layout, "deploy_files": ours});
    files::write_atomically(
        &state_path(&lab.directory),
        saved.to_string().as_bytes(),
        0o600,
    )?;
    files::write_atomically(&lab.deploy_file(), text.as_bytes(), 0o600)?;
    Ok(None)
}

fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

fn render(lab: &Lab, layout: Layout) -> Result<String, Error> {
    let machines: Vec<_> = lab
        .machines
        .iter()
        .map(|m| (m.name.clone(), m.address))
        .collect();
    let password = match lab.settings.sudo {
        Sudo::Password => Some(lab.password()?),
        Sudo::Nopasswd => None,
    };
    let file = DeployFile {
        name: lab.name.as_str(),
        system: lab.settings.system,
        user: &lab.settings.user,
        password: password.as_deref(),
        key: &lab.key(),
        machines: &machines,
        layout,
        bastion: lab.bastion.as_ref().map(|b| (b.name.as_str(), b.address)),
        arch: architecture(),
        archive: &package_archive(&files::cache_dir()?, layout),
    };
    Ok(file.render())
}

/// The small archive has programs and images only; the large one also brings nginx, as a package.
fn package_archive(cache: &Path, layout: Layout) -> PathBuf {
    let fixture = if layout.loadbalance {
        "packages-new"
    } else {
        "archive-new"
    };
    cache.join("items").join(fixture).join("current.tar.gz")
}

/// As Kubernetes spells it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
