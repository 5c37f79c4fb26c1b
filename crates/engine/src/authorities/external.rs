//! Authorities that the user brings: a directory on the control machine.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use hatchery_pki::{Authority, Error as PkiError, LEAF_LIFETIME, ServiceAccountKey};
use secrecy::{ExposeSecret as _, SecretString};
use snafu::ResultExt as _;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    Authorities, EncryptionKey, Error, Problem,
    error::{MakeServiceAccountSnafu, UnusableSnafu, told},
    make_authority,
};

/// No certificate or key is longer.
const LONGEST: u64 = 1024 * 1024;

/// The user's directory.
pub(super) struct External {
    directory: PathBuf,
    problems: Vec<Problem>,
}

impl External {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.into(),
            problems: Vec::new(),
        }
    }

    /// Takes what is there and makes the rest, or returns all that is wrong.
    pub(super) fn read(mut self, now: OffsetDateTime) -> Result<Authorities, Error> {
        if !self.directory.is_dir() {
            self.no_directory();
            return UnusableSnafu {
                problems: self.problems,
            }
            .fail();
        }
        let cluster = self.authority("ca", true, now);
        let front_proxy = self.authority("front-proxy-ca", false, now);
        let etcd_name = self.etcd_name();
        let etcd = self.authority(etcd_name, false, now);
        for (name, authority) in [("front-proxy-ca", &front_proxy), (etcd_name, &etcd)] {
            if let (Some(cluster), Some(other)) = (&cluster, authority)
                && other.trusts(cluster)
            {
                self.shares_trust(name);
            }
        }
        let service_account = self.service_account();
        let (Some(cluster), true) = (cluster, self.problems.is_empty()) else {
            return UnusableSnafu {
                problems: self.problems,
            }
            .fail();
        };
        Ok(Authorities {
            cluster,
            front_proxy: or_made(front_proxy, "front-proxy-ca", now)?,
            etcd: or_made(etcd, "etcd-ca", now)?,
            service_account: match service_account {
                Some(key) => key,
                None => ServiceAccountKey::generate().context(MakeServiceAccountSnafu)?,
            },
            encryption_key: EncryptionKey::generate()?,
        })
    }

    /// Where the directory contradicts the certificates that the cluster has, by name. What is no longer there is not missed:
    /// it was copied.
    pub(super) fn differences(mut self, kept: &[(&str, &str)]) -> Vec<Problem> {
        for (name, kept) in kept {
            let name = match *name {
                "etcd-ca" => self.etcd_name(),
                name => name,
            };
            let path = self.path(name, "crt");
            let there = fs::read(&path).ok();
            if there.is_some_and(|there| there != kept.as_bytes()) {
                self.add(
                    &path,
                    "it is another certificate than the one that the cluster was made with"
                        .to_owned(),
                    "a living cluster keeps its authorities: put the former file back, or remove external-ca from the \
                     deploy file",
                );
            }
        }
        self.problems
    }

    fn etcd_name(&self) -> &'static str {
        let is_there = |extension| self.path("etcd-ca", extension).exists();
        let nested = |extension| self.path("etcd/ca", extension).exists();
        if ["crt", "key"].into_iter().any(is_there) && !["crt", "key"].into_iter().any(nested) {
            "etcd-ca"
        } else {
            "etcd/ca"
        }
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    fn authority(&mut self, name: &str, required: bool, now: OffsetDateTime) -> Option<Authority> {
        let (cert, key) = (self.path(name, "crt"), self.path(name, "key"));
        let (cert_pem, key_pem) = (self.text(&cert), self.text(&key));
        let both = match (cert_pem?, key_pem?) {
            (Some(cert_pem), Some(key_pem)) => Some((cert_pem, key_pem)),
            (None, None) if !required => None,
            (cert_pem, key_pem) => {
                for (path, there) in [(&cert, cert_pem.is_some()), (&key, key_pem.is_some())] {
                    if !there {
                        self.missing(path, required);
                    }
                }
                None
            }
        };
        let (cert_pem, key_pem) = both?;
        match Authority::from_pem(cert_pem.expose_secret(), key_pem) {
            Ok(authority) => self.in_time(&cert, &authority, now).then_some(authority),
            Err(error) => {
                let (path, remedy) = match &error {
                    PkiError::Key { .. } => (&key, "give the key without a passphrase"),
                    PkiError::KeyMismatch { .. } => {
                        (&key, "put certificate and key of the same authority there")
                    }
                    PkiError::NotAnAuthority { .. } => (
                        &cert,
                        "give a certificate with the basic constraint CA:TRUE and the key usage keyCertSign",
                    ),
                    PkiError::PathLength { .. } | PkiError::BrokenChain { .. } => (
                        &cert,
                        "put the certificates in this order, and no others with them",
                    ),
                    _ => (&cert, "give a certificate in PEM format"),
                };
                self.add(path, told(&error), remedy);
                None
            }
        }
    }

    /// Whether what is issued today can last as long as it should.
    fn in_time(&mut self, cert: &Path, authority: &Authority, now: OffsetDateTime) -> bool {
        let date = |time: OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
        let (begins, ends) = (authority.not_before(), authority.not_after());
        let days = LEAF_LIFETIME.whole_days();
        let reason = if now >= ends {
            format!("it expired at {}", date(ends))
        } else if ends - now < LEAF_LIFETIME {
            format!(
                "it ends at {}, sooner than what it issues, which lasts {days} days",
                date(ends)
            )
        } else if begins > now {
            format!("it is valid only from {} on", date(begins))
        } else {
            return true;
        };
        self.add(
            cert,
            reason,
            "renew it, with those above it in the file; or correct the clock of this machine",
        );
        false
    }

    /// etcd gives full access to every client it trusts, and every node has a certificate of the cluster's authority.
    fn shares_trust(&mut self, name: &str) {
        let path = self.path(name, "crt");
        self.add(
            &path,
            "who trusts it trusts every certificate of ca.crt too, those of all nodes among them".to_owned(),
            "give an authority of its own, without a root that both share, or leave it out: then one is made",
        );
    }

    fn service_account(&mut self) -> Option<ServiceAccountKey> {
        let path = self.path("sa", "key");
        let text = self.text(&path)??;
        ServiceAccountKey::from_pem(text)
            .map_err(|error| {
                self.add(
                    &path,
                    told(&error),
                    "give the key without a passphrase, or leave it out: then one is made",
                );
            })
            .ok()
    }

    /// The text of a file, if it exists; `None` if it cannot be read, which is reported.
    fn text(&mut self, path: &Path) -> Option<Option<SecretString>> {
        match read(path) {
            Ok(text) => Some(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
            Err(error) => {
                self.add(path, error.to_string(), "make it readable for this user");
                None
            }
        }
    }

    fn no_directory(&mut self) {
        let reason = match fs::metadata(&self.directory) {
            Ok(_) => "it is not a directory".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                "there is no such directory".to_owned()
            }
            Err(error) => error.to_string(),
        };
        let path = self.directory.clone();
        self.add(
            &path,
            reason,
            "put ca.crt and ca.key there, correct external-ca-path, or remove external-ca: then all is made",
        );
    }

    fn missing(&mut self, path: &Path, required: bool) {
        let remedy = if required {
            "put it there, correct external-ca-path, or remove external-ca: then all is made"
        } else {
            "put it there, or remove its other half: then both are made"
        };
        self.add(path, "there is no such file".to_owned(), remedy);
    }

    fn add(&mut self, path: &Path, reason: String, remedy: &str) {
        self.problems.push(Problem {
            file: path.display().to_string(),
            reason,
            remedy: remedy.to_owned(),
        });
    }
}

fn or_made(
    authority: Option<Authority>,
    name: &str,
    now: OffsetDateTime,
) -> Result<Authority, Error> {
    authority.map_or_else(|| make_authority(name, now), Ok)
}

fn read(path: &Path) -> io::Result<SecretString> {
    let mut text = String::new();
    let file = fs::File::open(path)?;
    let length = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if length as u64 > LONGEST {
        return Err(io::Error::other("it is far too long"));
    }
    Ok(text.into())
}
