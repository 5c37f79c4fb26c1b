//! A real etcd and a real kube-apiserver for tests: there in seconds, gone with their owner.
//!
//! Tests of one process share a server and take a namespace each:
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use hatchery_sandbox::apiserver::ApiServer;
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! let server = ApiServer::shared().await?;
//! let namespace = server.namespace("config").await?;
//! let maps = kube::Api::<ConfigMap>::namespaced(server.client()?, &namespace);
//! # Ok(())
//! # }
//! ```
//!
//! No controller runs beside it: pods stay pending, and a deleted namespace stays terminating.
//! Both processes end when the [`ApiServer`] is dropped, and also when its process panics,
//! exits or is killed (see `supervise.sh`).

mod credentials;
mod error;
mod flags;
mod programs;
mod supervised;

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use secrecy::{ExposeSecret as _, SecretString};
use snafu::{ResultExt as _, ensure};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::fixtures::{self, Fixtures};
use error::{
    DirectorySnafu, FixturesSnafu, KubeconfigSnafu, PortSnafu, PortTakenSnafu, RequestSnafu,
    StartSnafu,
};
use flags::Ports;
use programs::Programs;
use supervised::Supervised;

pub use credentials::Error as CredentialsError;
pub use error::Error;

/// The set of fixtures that kube-apiserver comes from, when it is not `new`: with `classic`, the oldest release that
/// Hatchery supports, tests show that they hold there too.
const SET: &str = "HATCHERY_API_SERVER_SET";

/// How often a start is repeated because another process took a port in the meantime.
const ATTEMPTS: usize = 5;

/// What both programs write when that has happened.
const PORT_TAKEN: &str = "address already in use";

/// How an API server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Further flags for kube-apiserver, for example `--runtime-config=...`.
    pub apiserver_flags: Vec<String>,
    /// How long the start may take. Fixtures that must be built first do not count.
    pub deadline: Duration,
    /// Where the server's own directory is made.
    pub parent: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            apiserver_flags: Vec::new(),
            deadline: Duration::from_secs(90),
            parent: std::env::temp_dir(),
        }
    }
}

/// A running etcd and kube-apiserver, with an administrator's access to them.
#[derive(Debug)]
pub struct ApiServer {
    programs: Programs,
    config: Config,
    kubeconfig: SecretString,
    started_in: Duration,
}

/// Looked at once per process: comparing half a gigabyte with its checksums takes seconds.
static FIXTURES: OnceCell<Fixtures> = OnceCell::const_new();

static SHARED: OnceCell<ApiServer> = OnceCell::const_new();

impl ApiServer {
    /// The one server of this process, started at first use. It ends with the process.
    ///
    /// # Errors
    /// When it cannot be started; the next caller tries again.
    pub async fn shared() -> Result<&'static Self, Error> {
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts a server of its own.
    ///
    /// # Errors
    /// When a program is missing, ends early or does not get ready in time. The message has the
    /// last lines of both programs.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(&Options::default()).await
    }

    /// Starts a server of its own with other settings.
    ///
    /// # Errors
    /// As [`ApiServer::start`].
    pub async fn start_with(options: &Options) -> Result<Self, Error> {
        let set = std::env::var(SET).unwrap_or_else(|_unset| "new".into());
        let kubernetes = format!("kubernetes-{set}");
        let needed = ["etcd-new", kubernetes.as_str()];
        let fixtures = FIXTURES
            .get_or_try_init(|| fixtures::ensure(&needed))
            .await
            .context(FixturesSnafu)?;
        let etcd = fixtures.path("etcd-new").join("etcd");
        let apiserver = fixtures.path(&kubernetes).join("kube-apiserver");
        let mut attempts = 1;
        loop {
            match Self::launch(&etcd, &apiserver, options).await {
                Err(Error::Ended { logs, .. }) if logs.contains(PORT_TAKEN) => {
                    ensure!(attempts < ATTEMPTS, PortTakenSnafu { attempts, logs });
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    async fn launch(etcd: &Path, apiserver: &Path, options: &Options) -> Result<Self, Error> {
        let started = Instant::now();
        let dir = private_directory(&options.parent)?;
        let identities = credentials::Identities::make(dir.path())?;
        let ports = free_ports().context(PortSnafu)?;
        let kubeconfig = identities.kubeconfig(dir.path(), ports.apiserver)?;
        let config = client_config(&kubeconfig).await?;

        let mut apiserver_flags = flags::apiserver(dir.path(), ports);
        apiserver_flags.extend_from_slice(&options.apiserver_flags);
        let run = |name, program: &Path, args: &[String]| {
            Supervised::start(name, program, args, dir.path()).context(StartSnafu { program })
        };
        let programs = Programs {
            apiserver: run("kube-apiserver", apiserver, &apiserver_flags)?,
            etcd: run("etcd", etcd, &flags::etcd(dir.path(), ports))?,
            dir,
        };
        programs.wait_ready(&config, options.deadline).await?;
        Ok(Self {
            programs,
            config,
            kubeconfig,
            started_in: started.elapsed(),
        })
    }

    /// A new client for the runtime this is called in. Clients work in the runtime they were
    /// made in only, so tests that share a server must not share a client.
    ///
    /// # Errors
    /// When the client library refuses its configuration.
    pub fn client(&self) -> Result<Client, Error> {
        Client::try_from(self.config.clone()).context(RequestSnafu {
            what: "create a client",
        })
    }

    /// Makes a unique namespace and returns its name, which begins with `prefix`.
    ///
    /// # Errors
    /// When the server refuses it, for example because `prefix` cannot begin a name.
    pub async fn namespace(&self, prefix: &str) -> Result<String, Error> {
        let wanted = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("{prefix}-")),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(self.client()?)
            .create(&PostParams::default(), &wanted)
            .await
            .context(RequestSnafu {
                what: "create a namespace",
            })?;
        Ok(made.name_any())
    }

    /// The administrator's kubeconfig as text.
    pub fn kubeconfig(&self) -> &SecretString {
        &self.kubeconfig
    }

    /// The administrator's kubeconfig as a file, there as long as the server is.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.dir().join("kubeconfig")
    }

    /// The server's own directory, with its data and logs. Gone with the server.
    pub fn dir(&self) -> &Path {
        self.programs.dir.path()
    }

    /// How long the start took, certificates included, fixtures not.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }
}

fn private_directory(parent: &Path) -> Result<TempDir, Error> {
    tempfile::Builder::new()
        .prefix("hatchery-apiserver-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .context(DirectorySnafu { parent })
}

/// Three free ports. All are held until the last is found, so that they differ.
fn free_ports() -> io::Result<Ports> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let (etcd, etcd_peer, apiserver) = (listen()?, listen()?, listen()?);
    Ok(Ports {
        etcd: etcd.local_addr()?.port(),
        etcd_peer: etcd_peer.local_addr()?.port(),
        apiserver: apiserver.local_addr()?.port(),
    })
}

async fn client_config(kubeconfig: &SecretString) -> Result<Config, Error> {
    let parsed = Kubeconfig::from_yaml(kubeconfig.expose_secret()).context(KubeconfigSnafu)?;
    let mut config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .context(KubeconfigSnafu)?;
    // The library takes a proxy from the environment, which cannot lead to 127.0.0.1.
    config.proxy_url = None;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ() {
        let Ports {
            etcd,
            etcd_peer,
            apiserver,
        } = free_ports().unwrap();
        assert!(etcd != etcd_peer && etcd_peer != apiserver && etcd != apiserver);
    }
}
