//! SSH servers of one process, each at an address of its own on the loopback. Commands run in a real shell, in which
//! `/var/lib` and `/run` are empty and gone afterwards, so that every server is a machine that nobody has touched.

#![allow(dead_code, reason = "each test uses a part")]

use std::{
    borrow::Cow,
    collections::HashMap,
    net::Ipv4Addr,
    path::Path,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hatchery_host::{
    machine::Machine,
    operation::{Access, Directory, Operation},
    path::{MachinePath, Word},
    privilege::Privilege,
    script::Identity,
    task::Task,
    transport::ssh::{Auth, Bastions, HostKey, Ssh, Target, Timeouts},
};
use russh::{
    Channel, ChannelId, MethodKind, MethodSet,
    keys::{PrivateKey, ssh_key::private::Ed25519Keypair},
    server::{self, Msg, Response},
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, process::Command};

pub(crate) const PASSWORD: &str = "the machines' own";

/// What a server asks those who come.
#[derive(Clone, Default)]
pub(crate) struct Questions {
    /// Prompts of keyboard-interactive, each in a round of its own. Without any the method `password` is taken.
    pub(crate) prompts: Vec<&'static str>,
    /// Whatever was answered, or given as a password.
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
    /// Whoever is connected now, and the most there were.
    pub(crate) connected: Arc<AtomicUsize>,
    pub(crate) peak: Arc<AtomicUsize>,
}

struct Client {
    questions: Questions,
    round: usize,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl Client {
    fn new(questions: Questions) -> Self {
        let now = questions.connected.fetch_add(1, Ordering::SeqCst) + 1;
        questions.peak.fetch_max(now, Ordering::SeqCst);
        Self {
            questions,
            round: 0,
            channels: HashMap::new(),
        }
    }

    fn hear(&self, word: &str) {
        self.questions.heard.lock().unwrap().push(word.to_owned());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.questions.connected.fetch_sub(1, Ordering::SeqCst);
    }
}

impl server::Handler for Client {
    type Error = russh::Error;

    async fn auth_password(&mut self, _: &str, word: &str) -> Result<server::Auth, russh::Error> {
        self.hear(word);
        Ok(match word == PASSWORD {
            true => server::Auth::Accept,
            false => server::Auth::reject(),
        })
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        _: &str,
        _: &str,
        response: Option<Response<'a>>,
    ) -> Result<server::Auth, russh::Error> {
        if let Some(answers) = response {
            for answer in answers {
                self.hear(&String::from_utf8_lossy(&answer));
            }
        }
        let Some(prompt) = self.questions.prompts.get(self.round) else {
            return Ok(server::Auth::reject());
        };
        self.round += 1;
        Ok(server::Auth::Partial {
            name: Cow::Borrowed(""),
            instructions: Cow::Borrowed(""),
            prompts: Cow::Owned(vec![(Cow::Borrowed(*prompt), false)]),
        })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: server::ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), russh::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut server::Session,
    ) -> Result<(), russh::Error> {
        session.channel_success(id)?;
        if let Some(channel) = self.channels.remove(&id) {
            let command = String::from_utf8_lossy(command).into_owned();
            tokio::spawn(async move {
                let _ = serve(channel, &command).await;
            });
        }
        Ok(())
    }
}

async fn serve(channel: Channel<Msg>, command: &str) -> Result<(), russh::Error> {
    const ROOM: &str =
        "mount -t tmpfs none /var/lib && mount -t tmpfs none /run && exec sh -c \"$1\"";
    let mut child = Command::new("unshare")
        .args(["-m", "sh", "-c", ROOM, "sh", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (mut read, write) = channel.split();
    let (mut output, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    let (mut to_output, mut to_errors) = (write.make_writer(), write.make_writer_ext(Some(1)));
    let sending = async {
        let _ = tokio::io::copy(&mut read.make_reader(), &mut input).await;
        let _ = input.shutdown().await;
        drop(input);
    };
    let answering = async {
        let _ = tokio::join!(
            tokio::io::copy(&mut output, &mut to_output),
            tokio::io::copy(&mut errors, &mut to_errors)
        );
        child.wait().await
    };
    // A command need not read all that is sent.
    let status = tokio::select! {
        status = answering => status?,
        () = async { sending.await; std::future::pending().await } => return Ok(()),
    };
    write.eof().await?;
    let code = status.code().and_then(|code| u32::try_from(code).ok());
    write.exit_status(code.unwrap_or(255)).await?;
    write.close().await
}

/// The address of a server by its number.
pub(crate) fn address(number: usize) -> Ipv4Addr {
    let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// Begins so many servers; gives the port that all of them listen on.
pub(crate) async fn servers(count: usize, questions: Questions) -> u16 {
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
    let methods = match questions.prompts.is_empty() {
        true => MethodKind::Password,
        false => MethodKind::KeyboardInteractive,
    };
    let config = Arc::new(server::Config {
        keys: vec![key],
        methods: MethodSet::from(&[methods][..]),
        auth_rejection_time: Duration::from_millis(10),
        auth_rejection_time_initial: Some(Duration::ZERO),
        inactivity_timeout: None,
        nodelay: true,
        ..server::Config::default()
    });
    let mut port = 0;
    for number in 1..=count {
        let listener = TcpListener::bind((address(number), port)).await.unwrap();
        port = listener.local_addr().unwrap().port();
        let (config, questions) = (Arc::clone(&config), questions.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let client = Client::new(questions.clone());
                let config = Arc::clone(&config);
                tokio::spawn(async move {
                    if let Ok(session) = server::run_stream(config, stream, client).await {
                        let _ = session.await;
                    }
                });
            }
        });
    }
    port
}

pub(crate) fn target(number: usize, port: u16, known_hosts: &Path) -> Target {
    Target {
        name: format!("m{number}"),
        host: address(number).to_string(),
        port,
        user: "root".into(),
        auth: vec![Auth::Password(PASSWORD.into())],
        host_key: HostKey::Known {
            files: Vec::new(),
            record: Some(known_hosts.to_owned()),
        },
        jumps: Vec::new(),
    }
}

/// Machines that are those servers.
pub(crate) fn machines(
    count: usize,
    port: u16,
    known_hosts: &Path,
    bastions: &Bastions,
) -> Vec<Machine> {
    let word = |text: &str| Word::new(text).unwrap();
    let machine = |number| {
        let timeouts = Timeouts {
            connect: Duration::from_secs(60),
            handshake: Duration::from_secs(60),
            authentication: Duration::from_secs(60),
            ..Timeouts::default()
        };
        let ssh = Ssh::new(
            target(number, port, known_hosts),
            timeouts,
            bastions.clone(),
        );
        let identity = Identity {
            cluster: word("c1"),
            cluster_name: word("many"),
        };
        Machine::new(Arc::new(ssh), Privilege::Root, identity)
    };
    (1..=count).map(machine).collect()
}

/// A task that every machine has done already.
pub(crate) fn nothing_to_do() -> Task {
    let directory = Directory {
        path: MachinePath::new("/usr/share").unwrap(),
        access: Access::root(0o755).unwrap(),
        contents_are_ours: false,
    };
    Task::new(
        Word::new("test").unwrap(),
        vec![Operation::Directory(directory)],
    )
    .unwrap()
}
