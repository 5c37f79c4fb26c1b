//! Machines that answer without end: they are refused by name, and little of what they say is held.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::io::{AsyncRead, ReadBuf};

use super::{Error, Machine};
use crate::{
    operation::Operation,
    path::{MachinePath, Word},
    privilege::Privilege,
    script::Identity,
    task::Task,
    transport::{self, ANSWER_LIMIT, Connection, Connector, Reader, Running, Stream, local::Local},
};

/// A machine whose shell runs another command than the one that it is told, and how much was read of it.
#[derive(Clone)]
struct Peer {
    command: &'static str,
    read: Arc<AtomicU64>,
}

impl Connector for Peer {
    fn name(&self) -> &str {
        "m7"
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, transport::Error>> {
        let peer: Arc<dyn Connection> = Arc::new(self.clone());
        async move { Ok(peer) }.boxed()
    }
}

impl Connection for Peer {
    fn exec<'a>(&'a self, told: &'a str) -> BoxFuture<'a, Result<Running, transport::Error>> {
        let mark = told.split_once("hatchery-ready-").unwrap().1;
        let mark: String = mark
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        let command = format!("echo hatchery-ready-{mark}; {}", self.command);
        async move {
            let mut running = Local::new("m7").connect().await?.exec(&command).await?;
            for stream in [&mut running.output, &mut running.errors] {
                let inner = std::mem::replace(stream, Box::new(tokio::io::empty()));
                let read = Arc::clone(&self.read);
                *stream = Box::new(Counted { inner, read });
            }
            Ok(running)
        }
        .boxed()
    }

    fn forward<'a>(
        &'a self,
        _: &'a str,
        _: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, transport::Error>> {
        unreachable!("nobody asks for a stream here")
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

struct Counted {
    inner: Reader,
    read: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let more = (buffer.filled().len() - before) as u64;
        self.read.fetch_add(more, Ordering::Relaxed);
        done
    }
}

fn word(text: &str) -> Word {
    Word::new(text).unwrap()
}

fn task() -> Task {
    let path = MachinePath::new("/etc/unwanted").unwrap();
    Task::new(word("role"), vec![Operation::Absent(path)]).unwrap()
}

const ENDLESS: [&str; 4] = [
    "tr '\\0' x </dev/zero",
    "yes 'undone file /x'",
    "seq -f 'changed %.0f' 1000000000",
    "yes 'file absent - - k role /x'",
];

#[tokio::test]
async fn an_answer_without_end_is_refused_by_name_and_not_held() {
    let deadline = Duration::from_secs(300);
    for command in ENDLESS {
        for question in ["facts", "look", "apply", "undo"] {
            let read = Arc::new(AtomicU64::new(0));
            let peer = Peer {
                command,
                read: Arc::clone(&read),
            };
            let identity = Identity {
                cluster: word("c1"),
                cluster_name: word("one"),
            };
            let machine = Machine::new(Arc::new(peer), Privilege::Root, identity);
            let asking = async {
                match question {
                    "facts" => machine.facts(deadline).await.map(|_| ()),
                    "look" => machine.look(&task()).await.map(|_| ()),
                    "apply" => machine.apply(&task(), &|_| ()).await.map(|_| ()),
                    _ => machine.undo(&[], deadline).await.map(|_| ()),
                }
            };
            let answer = tokio::time::timeout(deadline, asking).await;
            let error = answer
                .unwrap_or_else(|_| panic!("{command}, {question}: it is still listening"))
                .unwrap_err();
            let expected = matches!(error, Error::TooLong { .. } | Error::Garbled { .. });
            assert!(expected, "{command}, {question}: {error}");
            assert!(error.to_string().starts_with("m7 "), "{error}");
            assert!(
                error.to_string().len() < 1000,
                "{}",
                error.to_string().len()
            );
            let read = read.load(Ordering::Relaxed);
            assert!(
                read <= ANSWER_LIMIT as u64 + 64 * 1024,
                "{command}, {question}: {read}"
            );
        }
    }
}

/// What it complains of is read on, since its answer may still come, but not kept.
#[tokio::test]
async fn of_complaints_without_end_the_last_are_kept() {
    let peer = Peer {
        command: "yes 'so much to say' 2>/dev/null | head -c 30000000 >&2; echo last >&2; echo done",
        read: Arc::default(),
    };
    let connection = peer.connect().await.unwrap();
    let running = connection.exec("hatchery-ready-1").await.unwrap();
    let finished = running.finish(b"").await.unwrap();
    assert_eq!(finished.output, b"hatchery-ready-1\ndone\n");
    assert_eq!(finished.errors.len(), 64 * 1024);
    assert!(finished.errors.ends_with(b"to say\nlast\n"));
}
