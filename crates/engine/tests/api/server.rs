//! The API server that all tests share, and machines before it.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{FutureExt as _, future::BoxFuture};
use hatchery_engine::api::{Access, Address, Api};
use hatchery_host::{
    machine::Machine,
    path::Word,
    privilege::Privilege,
    script::Identity,
    transport::{Connection, Connector, Error, Running, Stream, local::Local},
};
use hatchery_pki::Leaf;
use hatchery_sandbox::apiserver::ApiServer;
use kube::config::Kubeconfig;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) async fn server() -> &'static ApiServer {
    ApiServer::shared().await.unwrap()
}

pub(crate) async fn namespace(prefix: &str) -> String {
    server().await.namespace(prefix).await.unwrap()
}

pub(crate) fn machine(connector: Arc<dyn Connector>) -> Arc<Machine> {
    let word = |text| Word::new(text).unwrap();
    let identity = Identity {
        cluster: word("c1"),
        cluster_name: word("one"),
    };
    Arc::new(Machine::new(connector, Privilege::Root, identity))
}

/// Access to the shared server as an administrator, by way of a machine.
pub(crate) async fn access(connector: Arc<dyn Connector>) -> Access {
    let server = server().await;
    let config = Kubeconfig::from_yaml(server.kubeconfig().expose_secret()).unwrap();
    let cluster = config.clusters[0].cluster.clone().unwrap();
    let user = config.auth_infos[0].auth_info.clone().unwrap();
    let text = |data: &str| String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
    let port = cluster.server.unwrap().rsplit_once(':').unwrap().1.parse();
    Access {
        machine: machine(connector),
        server: Address::new("127.0.0.1", port.unwrap()),
        authority_pem: fs::read_to_string(server.dir().join("ca.crt")).unwrap(),
        admin: Leaf {
            cert_pem: text(&user.client_certificate_data.unwrap()),
            key_pem: text(user.client_key_data.unwrap().expose_secret()).into(),
        },
    }
}

pub(crate) async fn api() -> Api {
    Api::connect(access(Arc::new(Local::new("m0"))).await).unwrap()
}

/// What the machine's sshd does with a request to forward a stream.
#[derive(Clone, Copy)]
pub(crate) enum Streams {
    /// Opens it on this machine, whatever its host is called.
    Here,
    /// Forbids it, as openEuler does.
    Forbidden,
    /// Never answers.
    Silent,
}

/// A machine whose streams are counted.
pub(crate) struct Gate {
    pub(crate) streams: Streams,
    pub(crate) opened: Arc<AtomicUsize>,
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
}

impl Gate {
    pub(crate) fn new(streams: Streams) -> Arc<Self> {
        Arc::new(Self {
            streams,
            opened: Arc::default(),
            open: Arc::default(),
            most: Arc::default(),
        })
    }
}

impl Connector for Gate {
    fn name(&self) -> &str {
        "m0"
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        async move {
            Ok(Arc::new(GateConnection {
                streams: self.streams,
                opened: self.opened.clone(),
                open: self.open.clone(),
                most: self.most.clone(),
                inner: Local::new("m0").connect().await?,
            }) as Arc<dyn Connection>)
        }
        .boxed()
    }
}

struct GateConnection {
    streams: Streams,
    opened: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    inner: Arc<dyn Connection>,
}

impl Connection for GateConnection {
    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>> {
        self.inner.exec(command)
    }

    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>> {
        async move {
            match self.streams {
                Streams::Here => {}
                Streams::Silent => std::future::pending().await,
                Streams::Forbidden => {
                    return Err(Error::ForwardRefused {
                        host: "m0".into(),
                        to: format!("{host}:{port}"),
                        reason: "its sshd forbids forwarding".into(),
                        forbidden: true,
                    });
                }
            }
            let real = self.inner.forward("127.0.0.1", port).await?;
            self.opened.fetch_add(1, Ordering::SeqCst);
            let now = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            // Through a pipe, so that its end can be counted.
            let (near, far) = tokio::io::duplex(64 * 1024);
            let open = self.open.clone();
            tokio::spawn(async move {
                let (mut real_reader, mut real_writer) = tokio::io::split(real);
                let (mut reader, mut writer) = tokio::io::split(far);
                let there = async {
                    let _ = tokio::io::copy(&mut reader, &mut real_writer).await;
                    let _ = real_writer.shutdown().await;
                };
                let back = async {
                    let mut piece = vec![0; 16 * 1024];
                    while let Ok(length @ 1..) = real_reader.read(&mut piece).await {
                        if writer.write_all(&piece[..length]).await.is_err() {
                            break;
                        }
                    }
                };
                tokio::select! { () = there => {}, () = back => {} }
                open.fetch_sub(1, Ordering::SeqCst);
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        }
        .boxed()
    }

    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
