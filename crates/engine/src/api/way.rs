//! The way to the API server: a stream through the SSH connection, and TLS on it.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use hatchery_host::{
    machine::Machine,
    transport::{self, Stream},
};
use hatchery_pki::Leaf;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use secrecy::ExposeSecret as _;
use snafu::Snafu;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{self, ClientConfig, RootCertStore, crypto::aws_lc_rs},
};

use super::error::Error;

/// How many connections to the API server are open at once. sshd takes ten sessions on one connection by default, and
/// the work on the machine needs some.
pub const CONNECTIONS: usize = 4;

/// The timeout for connecting.
const CONNECTING: Duration = Duration::from_secs(10);

/// The timeout for a place among those connections. A request needs none once another connection is free, and
/// the wait that is then left over keeps that one from being closed.
const PLACE: Duration = Duration::from_secs(2);

/// Where an API server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an address, without brackets. The server's certificate has to be for it.
    pub host: String,
    /// The port of the API server.
    pub port: u16,
}

impl Address {
    /// Host and port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// How an API server is reached, and as whom.
#[derive(Clone, Debug)]
pub struct Access {
    /// The master through which the API server is reached.
    pub machine: Arc<Machine>,
    /// The API server as the master sees it.
    pub server: Address,
    /// The certificate of the cluster's authority.
    pub authority_pem: String,
    /// An administrator's certificate and key.
    pub admin: Leaf,
}

/// Why the API server cannot be reached, or its connection was lost.
#[derive(Clone, Debug, Snafu)]
pub enum Unreached {
    /// The machine before it is not reached, or nothing answers on it.
    #[snafu(display("{source}"))]
    Machine {
        /// The underlying error.
        source: transport::Error,
    },
    /// Its certificate is not to be trusted, or it does not accept ours.
    #[snafu(display("the API server at {address} is not trusted: {reason}"))]
    Untrusted {
        /// The address that was tried.
        address: Address,
        /// What the TLS library reports.
        reason: String,
    },
    /// The connection was there, or nearly, and broke.
    #[snafu(display("the connection to the API server broke: {reason}"))]
    Broken {
        /// What the connection reports.
        reason: String,
    },
    /// There was no answer in time.
    #[snafu(display("the API server did not answer within {} s", after.as_secs()))]
    Late {
        /// How long was waited.
        after: Duration,
    },
}

impl Unreached {
    /// Whether trying again in a moment may help: an API server that begins, a connection that comes back.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Machine { source } => {
                let begins = matches!(
                    source,
                    transport::Error::ForwardRefused {
                        forbidden: false,
                        ..
                    }
                );
                begins || source.may_pass()
            }
            Self::Untrusted { .. } => false,
            Self::Broken { .. } | Self::Late { .. } => true,
        }
    }

    /// What the user can do about it, where that is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Machine { source } => source.remedy(),
            Self::Untrusted { .. } | Self::Broken { .. } | Self::Late { .. } => None,
        }
    }
}

/// Makes connections to one API server.
#[derive(Clone)]
pub(super) struct Way {
    machine: Arc<Machine>,
    server: Address,
    tls: TlsConnector,
    places: Arc<Semaphore>,
}

impl Way {
    pub(super) fn new(access: Access) -> Result<Self, Error> {
        let tls = tls(&access.authority_pem, &access.admin)?;
        Ok(Self {
            machine: access.machine,
            server: access.server,
            tls: TlsConnector::from(Arc::new(tls)),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    async fn connect(&self) -> Result<Channel, Unreached> {
        let place = timeout(PLACE, self.places.clone().acquire_owned()).await;
        let place = place.map_err(|_late| Unreached::Broken {
            reason: "all connections to it are in use".into(),
        })?;
        let secured = async { self.secure(self.stream().await?).await };
        let stream = timeout(CONNECTING, secured)
            .await
            .unwrap_or(Err(Unreached::Late { after: CONNECTING }))?;
        Ok(Channel {
            stream,
            // Nobody closes the semaphore; without a place there would be only a connection more.
            _place: place.ok(),
        })
    }

    async fn stream(&self) -> Result<Box<dyn Stream>, Unreached> {
        let Address { host, port } = &self.server;
        let forwarded = async { self.machine.connection().await?.forward(host, *port).await };
        forwarded
            .await
            .map_err(|source| Unreached::Machine { source })
    }

    async fn secure(
        &self,
        stream: Box<dyn Stream>,
    ) -> Result<TlsStream<Box<dyn Stream>>, Unreached> {
        let address = &self.server;
        let untrusted = |reason: String| Unreached::Untrusted {
            address: address.clone(),
            reason,
        };
        let name = ServerName::try_from(address.host.clone())
            .map_err(|_invalid| untrusted("its address cannot be in a certificate".into()))?;
        self.tls.connect(name, stream).await.map_err(|error| {
            let reason = error.to_string();
            match error
                .get_ref()
                .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
            {
                true => untrusted(reason),
                false => Unreached::Broken { reason },
            }
        })
    }
}

/// TLS that trusts this authority only and shows this certificate.
fn tls(authority_pem: &str, admin: &Leaf) -> Result<ClientConfig, Error> {
    let unusable = |what: &'static str| move |reason: String| Error::Credentials { what, reason };
    let authority = unusable("the cluster's authority");
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority_pem).map_err(authority)? {
        roots
            .add(certificate)
            .map_err(|error| authority(error.to_string()))?;
    }
    let chain =
        certificates(&admin.cert_pem).map_err(unusable("the administrator's certificate"))?;
    // What the reader says of a key could hold a part of it.
    let key = PrivateKeyDer::from_pem_slice(admin.key_pem.expose_secret().as_bytes())
        .map_err(|_withheld| unusable("the administrator's key")("it is not a PEM key".into()))?;
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("TLS")(error.to_string()))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|error| unusable("the administrator's certificate")(error.to_string()))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err("there is no PEM certificate in it".into())
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(error.to_string()),
    }
}

impl tower::Service<http::Uri> for Way {
    type Response = TokioIo<Channel>;
    type Error = Unreached;
    type Future = BoxFuture<'static, Result<Self::Response, Unreached>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreached>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let way = self.clone();
        async move { way.connect().await.map(TokioIo::new) }.boxed()
    }
}

/// A connection to the API server, and its place among those.
pub(super) struct Channel {
    stream: TlsStream<Box<dyn Stream>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection for Channel {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Channel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// A peer that reads nothing any more must not keep the place: closing is tried once.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => Poll::Ready(Ok(())),
            done @ Poll::Ready(_) => done,
        }
    }
}
