//! What the control machine offers: directories, environment variables, host keys that it knows.

use std::{
    env, fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use hatchery_spec::cluster::Certificates;
use snafu::{OptionExt as _, Snafu};

use crate::confinement::Launcher;

/// No directory was named, and the environment names none.
#[derive(Debug, Snafu)]
#[snafu(display(
    "neither HATCHERY_HOME nor HOME is set, so there is no directory for Hatchery's files"
))]
pub struct NoHome;

/// Hatchery's home as an absolute path: the directory named, else `$HATCHERY_HOME`, else `~/.hatchery`.
///
/// # Errors
/// When none of them is known.
pub fn home_directory(named: Option<&Path>) -> Result<PathBuf, NoHome> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    let path = match (named, variable("HATCHERY_HOME")) {
        (Some(named), _) => named.to_owned(),
        (None, Some(home)) => PathBuf::from(home),
        (None, None) => PathBuf::from(variable("HOME").context(NoHomeSnafu)?).join(".hatchery"),
    };
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// Looks up an environment variable.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The control machine as the user has set it up.
#[derive(Clone)]
pub struct Environment {
    /// Where what can be made again is kept.
    pub cache: PathBuf,
    /// The user's home, which `~` stands for.
    pub user_home: Option<PathBuf>,
    /// Host keys that everybody here trusts.
    pub known_hosts: Vec<PathBuf>,
    /// How programs of archives are asked for their versions; without it none is run.
    pub launcher: Option<Launcher>,
    variables: Variables,
}

impl fmt::Debug for Environment {
    /// Variables hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("cache", &self.cache)
            .field("user_home", &self.user_home)
            .field("known_hosts", &self.known_hosts)
            .field("launcher", &self.launcher)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// That of this process, with Hatchery's home.
    pub fn of_process(home: &Path) -> Self {
        let user_home = env::var_os("HOME").filter(|home| !home.is_empty());
        Self::new(home.join("cache"), user_home.map(PathBuf::from), |name| {
            env::var(name).ok()
        })
    }

    /// Others, for a caller that acts for another user.
    pub fn new(
        cache: PathBuf,
        user_home: Option<PathBuf>,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            cache,
            user_home,
            known_hosts: ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
                .map(PathBuf::from)
                .into(),
            launcher: None,
            variables: Arc::new(variables),
        }
    }

    /// The same with a way to run programs of archives.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = Some(launcher);
        self
    }

    /// The directory of the user's own authorities, where a cluster uses such.
    ///
    /// # Errors
    /// When it is named below a home that there is not.
    pub fn external_ca(&self, certificates: &Certificates) -> io::Result<Option<PathBuf>> {
        let path = certificates.external_ca.as_ref();
        path.map(|path| self.expand(path.as_str())).transpose()
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name)
    }

    /// A path in which `~/` stands for the user's home.
    pub(crate) fn expand(&self, path: &str) -> io::Result<PathBuf> {
        match (path.strip_prefix("~/"), &self.user_home) {
            (None, _) => Ok(PathBuf::from(path)),
            (Some(rest), Some(home)) => Ok(home.join(rest)),
            (Some(_), None) => Err(io::Error::other("HOME is not set, so there is no ~")),
        }
    }

    /// A file in the user's `~/.ssh`.
    pub(super) fn ssh_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.user_home.as_ref()?.join(".ssh").join(name))
    }

    /// The files of host keys that are only read: the user's own, then everybody's.
    pub(super) fn known_hosts(&self) -> Vec<PathBuf> {
        let own = ["known_hosts", "known_hosts2"].map(|name| self.ssh_file(name));
        own.into_iter()
            .flatten()
            .chain(self.known_hosts.iter().cloned())
            .collect()
    }
}

/// Why a file cannot be read, without the system's error number.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}
