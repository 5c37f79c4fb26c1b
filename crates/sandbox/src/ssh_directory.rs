//! A sandbox's files for SSH: key and password, `ssh_config` and `known_hosts`.

use std::{
    fmt::Write as _,
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Stdio,
};

use snafu::{ResultExt as _, ensure};
use tokio::process::Command;

use crate::{
    files,
    machine::Access,
    ssh::{self, Error, KeySnafu, StartSnafu},
};

/// A sandbox's files for SSH, in its own directory.
#[derive(Clone, Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// The files of the sandbox whose directory this is.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.0.join("id_ed25519")
    }

    /// For `ssh -F`.
    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("ssh_config")
    }

    /// The machines' host keys.
    pub(crate) fn known_hosts(&self) -> PathBuf {
        self.0.join("known_hosts")
    }

    fn password(&self) -> PathBuf {
        self.0.join("password")
    }

    /// The key and password that let us in, if they are all there.
    pub(crate) fn access(&self) -> Result<Option<Access>, Error> {
        let private = files::read_if_there(&self.key())?;
        let public = files::read_if_there(&self.key().with_extension("pub"))?;
        let password = files::read_if_there(&self.password())?;
        Ok(match (private, public, password) {
            (Some(_), Some(public), Some(password)) => Some(Access {
                public_key: public.trim().to_owned(),
                password: password.trim().to_owned(),
            }),
            _ => None,
        })
    }

    /// The key and password that let us in, made anew unless they are all there.
    pub(crate) async fn ensure_access(&self, sandbox: &str) -> Result<Access, Error> {
        if let Some(access) = self.access()? {
            return Ok(access);
        }
        files::make_private_dir(&self.0)?;
        let fresh = self.0.join(".new-key");
        let remove_fresh = || {
            let _ = fs::remove_file(&fresh);
            let _ = fs::remove_file(fresh.with_extension("pub"));
        };
        remove_fresh();
        let output = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C"])
            .arg(format!("hatchery sandbox {sandbox}"))
            .arg("-f")
            .arg(&fresh)
            .stdin(Stdio::null())
            .output()
            .await
            .context(StartSnafu {
                program: "ssh-keygen",
            })?;
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ensure!(output.status.success(), KeySnafu { message });
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| Error::Key {
                message: error.to_string(),
            })
        };
        let (private, public) = (read(&fresh)?, read(&fresh.with_extension("pub"))?);
        let password = random_password().map_err(|error| Error::Key {
            message: error.to_string(),
        })?;
        // The private key comes last: until it is there, nothing counts as there.
        let _ = fs::remove_file(self.key());
        files::write_atomically(&self.password(), format!("{password}\n").as_bytes(), 0o600)?;
        files::write_atomically(&self.key().with_extension("pub"), public.as_bytes(), 0o644)?;
        files::write_atomically(&self.key(), private.as_bytes(), 0o600)?;
        remove_fresh();
        Ok(Access {
            public_key: public.trim().to_owned(),
            password,
        })
    }
}

/// 80 bits, in letters that are not confused with others and need no quoting in shells and file formats.
fn random_password() -> io::Result<String> {
    use io::Read as _;
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(byte % 32)]))
        .collect())
}

/// The text of `ssh_config`: each host with its address, behind `jump` when there is one.
pub(crate) fn render_config(
    directory: &Directory,
    user: &str,
    hosts: &[(String, Ipv4Addr)],
    jump: Option<&str>,
) -> String {
    let mut text = String::from("# For 'ssh -F'. Written by 'hatchery sandbox up'.\n");
    // Writing to a String cannot fail.
    for (name, address) in hosts {
        let _ = writeln!(text, "Host {name}\n  HostName {address}");
        if let Some(jump) = jump.filter(|jump| jump != name) {
            // Not ProxyJump, which loses blanks in the path of this file.
            let config = ssh::quote(&directory.config().to_string_lossy()).replace('%', "%%");
            let _ = writeln!(text, "  ProxyCommand ssh -F {config} -W %h:%p {jump}");
        }
    }
    let _ = writeln!(
        text,
        "Host *\n  User {user}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
         GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  HostKeyAlgorithms ssh-ed25519\n  GSSAPIAuthentication no\n  \
         ConnectTimeout 5\n  ServerAliveInterval 5\n  ServerAliveCountMax 3\n  LogLevel ERROR",
        config_path(&directory.key()),
        config_path(&directory.known_hosts()),
    );
    text
}

/// A path as ssh_config requires it: `%` begins a token there, and blanks need quotes.
fn config_path(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('%', "%%"))
}

/// One line of `known_hosts`, good for the name and for the address.
pub(crate) fn known_host(name: &str, address: Ipv4Addr, public_key: &str) -> Option<String> {
    let mut words = public_key.split_whitespace();
    let (kind, key) = (words.next()?, words.next()?);
    kind.starts_with("ssh-")
        .then(|| format!("{name},{address} {kind} {key}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_pins_key_and_host_keys() {
        let directory = Directory::new(PathBuf::from("/home/50% me/lab"));
        let hosts = [
            ("lab-bastion".to_owned(), Ipv4Addr::new(10, 201, 0, 10)),
            ("lab-1".to_owned(), Ipv4Addr::new(10, 201, 0, 11)),
        ];
        insta::assert_snapshot!(render_config(
            &directory,
            "ops",
            &hosts,
            Some("lab-bastion")
        ));
    }

    #[test]
    fn a_host_key_is_known_by_name_and_address() {
        let line = known_host(
            "lab-1",
            Ipv4Addr::new(10, 201, 0, 11),
            "ssh-ed25519 AAAA root@lab-1\n",
        );
        assert_eq!(line.unwrap(), "lab-1,10.201.0.11 ssh-ed25519 AAAA\n");
        assert_eq!(known_host("lab-1", Ipv4Addr::LOCALHOST, "garbage"), None);
    }

    #[tokio::test]
    async fn access_is_made_once_and_again_when_a_part_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::new(dir.path().join("lab"));
        let first = directory.ensure_access("lab").await.unwrap();
        assert!(first.public_key.starts_with("ssh-ed25519 "));
        assert_eq!(first.password.len(), 16);
        let again = directory.ensure_access("lab").await.unwrap();
        assert_eq!(again.public_key, first.public_key);
        fs::remove_file(directory.key()).unwrap();
        let other = directory.ensure_access("lab").await.unwrap();
        assert_ne!(other.public_key, first.public_key);
        assert_ne!(other.password, first.password);
    }
}
