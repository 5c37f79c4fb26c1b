//! The wanted state of a machine, before there are any secrets in it.
//!
//! A resource can be printed, compared and kept in a plan. Private keys and certificates are named, not held: they come
//! from [`crate::authorities`] at the last moment, and a certificate that is still good stays as it is.

use hatchery_host::{
    content::Content,
    operation::{
        Access, Directory, File, Link, Mode, Operation, Script, Sysctl, Unit, UnitName, User,
        ValueError,
    },
    path::{Error as PathError, MachinePath, Word, WordError},
};
use hatchery_pki::Request;
use snafu::Snafu;

/// One thing that a machine should have.
#[derive(Clone, Debug)]
pub enum Resource {
    /// Without any secret.
    Operation(Operation),
    /// A certificate with its key.
    Leaf(Leaf),
    /// A file of the cluster's own.
    Secret(SecretFile),
}

/// Which authority signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuer {
    /// The cluster's own.
    Cluster,
    /// That of aggregated API servers.
    FrontProxy,
    /// The authority of etcd.
    Etcd,
}

/// A certificate with its key, and perhaps a kubeconfig that holds both.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Who signs it.
    pub issuer: Issuer,
    /// What it says.
    pub request: Request,
    /// Where it lies.
    pub certificate: MachinePath,
    /// Where its key lies.
    pub key: MachinePath,
    /// A file for `kubectl`.
    pub kubeconfig: Option<Kubeconfig>,
}

/// A kubeconfig with an embedded certificate.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// Where it lies.
    pub path: MachinePath,
    /// The user's name in it.
    pub user: String,
    /// Where the API is.
    pub server: String,
    /// A file with nothing but `server`. The kubeconfig itself holds a key, so that nobody reads it to see where it leads.
    pub server_file: MachinePath,
}

/// A file of the cluster's own.
#[derive(Clone, Debug)]
pub struct SecretFile {
    /// Where it lies.
    pub path: MachinePath,
    /// The secret that is put there.
    pub what: Secret,
}

/// What the authorities hold beside leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The certificate of an authority with those above it: by what servers are known.
    Certificate(Issuer),
    /// The certificate of an authority alone: by what clients are known. One above it may vouch for many others, and
    /// whoever these call an administrator would be one here.
    Signer(Issuer),
    /// The cluster's signing key, for the masters' signer.
    ClusterKey,
    /// What signs service accounts' tokens.
    ServiceAccountKey,
    /// What verifies them.
    ServiceAccountPublicKey,
    /// How the API server encrypts what it stores.
    EncryptionConfiguration,
}

/// A resource that no machine can fulfil, because of a value in it.
#[derive(Debug, Snafu)]
#[snafu(display("{message}"))]
pub struct Error {
    message: String,
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self {
            message: error.to_string(),
        }
    }
}

impl From<WordError> for Error {
    fn from(error: WordError) -> Self {
        Self {
            message: error.to_string(),
        }
    }
}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        Self {
            message: error.to_string(),
        }
    }
}

/// Resources being collected.
#[derive(Clone, Debug, Default)]
pub struct Resources(pub Vec<Resource>);

impl Resources {
    pub(crate) fn operation(&mut self, operation: Operation) {
        self.0.push(Resource::Operation(operation));
    }

    /// A file of root's with this text.
    pub(crate) fn file(
        &mut self,
        path: &str,
        mode: u16,
        text: impl Into<String>,
    ) -> Result<(), Error> {
        self.operation(Operation::File(File {
            path: MachinePath::new(path)?,
            content: Content::bytes(text.into().into_bytes()),
            access: Access::root(mode)?,
        }));
        Ok(())
    }

    /// A directory whose contents are ours.
    pub(crate) fn own_directory(&mut self, path: &str, mode: u16) -> Result<(), Error> {
        self.operation(Operation::Directory(Directory {
            path: MachinePath::new(path)?,
            access: Access::root(mode)?,
            contents_are_ours: true,
        }));
        Ok(())
    }

    /// A user of the system's own, for a service.
    pub(crate) fn user(&mut self, name: &str, home: &str) -> Result<(), Error> {
        let (name, home) = (word(name)?, MachinePath::new(home)?);
        self.operation(Operation::User(User { name, home }));
        Ok(())
    }

    /// A directory whose contents are ours, and which belongs to a user.
    pub(crate) fn directory_of(&mut self, user: &str, path: &str, mode: u16) -> Result<(), Error> {
        self.operation(Operation::Directory(Directory {
            path: MachinePath::new(path)?,
            access: Access {
                mode: Mode::new(mode)?,
                owner: word(user)?,
                group: word(user)?,
            },
            contents_are_ours: true,
        }));
        Ok(())
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) -> Result<(), Error> {
        let (path, target) = (MachinePath::new(path)?, target.to_owned());
        self.operation(Operation::Link(Link { path, target }));
        Ok(())
    }

    /// A service with its unit file; it is restarted when that or one of the files changes.
    pub(crate) fn service(
        &mut self,
        name: &str,
        text: String,
        files: &[&str],
    ) -> Result<(), Error> {
        let unit = format!("/etc/systemd/system/{name}.service");
        self.file(&unit, 0o600, text)?;
        let mut restart_on = vec![MachinePath::new(unit)?];
        for file in files {
            restart_on.push(MachinePath::new(*file)?);
        }
        self.operation(Operation::Unit(Unit {
            name: UnitName::new(format!("{name}.service"))?,
            enabled: Some(true),
            running: Some(true),
            restart_on,
        }));
        Ok(())
    }

    pub(crate) fn sysctl(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.operation(Operation::Sysctl(Sysctl::new(name, value)?));
        Ok(())
    }

    pub(crate) fn script(&mut self, script: Script) {
        self.operation(Operation::Script(script));
    }

    pub(crate) fn secret(&mut self, path: &str, what: Secret) -> Result<(), Error> {
        let path = MachinePath::new(path)?;
        self.0.push(Resource::Secret(SecretFile { path, what }));
        Ok(())
    }

    /// A certificate at `BASE.crt` with its key at `BASE.key`.
    pub(crate) fn leaf(
        &mut self,
        issuer: Issuer,
        base: &str,
        request: Request,
    ) -> Result<(), Error> {
        self.leaf_with(issuer, base, request, None)
    }

    pub(crate) fn leaf_with(
        &mut self,
        issuer: Issuer,
        base: &str,
        request: Request,
        kubeconfig: Option<Kubeconfig>,
    ) -> Result<(), Error> {
        self.0.push(Resource::Leaf(Leaf {
            issuer,
            request,
            certificate: MachinePath::new(format!("{base}.crt"))?,
            key: MachinePath::new(format!("{base}.key"))?,
            kubeconfig,
        }));
        Ok(())
    }
}

/// A text that is known to be a valid word.
pub(crate) fn word(text: &str) -> Result<Word, Error> {
    Ok(Word::new(text)?)
}
