//! Connections to a machine in memory.

use std::sync::{Arc, atomic::AtomicBool};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, duplex},
    sync::oneshot,
};

use super::{Memory, Shared, session::Session};
use crate::transport::{
    Connection, Connector, Error, Running, Stream,
    ending::{Ending, Until},
};

/// The buffer of a stream: small, since there may be a thousand machines.
const PIPE: usize = 16 * 1024;

impl Connector for Memory {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        let ending = Ending::new();
        {
            let mut state = self.shared.lock();
            state.log.connections += 1;
            state.connections.retain(|known| !known.has_come());
            state.connections.push(ending.clone());
        }
        let connection = MemoryConnection {
            machine: Arc::clone(&self.shared),
            ending,
            free_sudo: Arc::default(),
        };
        async move { Ok(Arc::new(connection) as Arc<dyn Connection>) }.boxed()
    }
}

struct MemoryConnection {
    machine: Arc<Shared>,
    ending: Ending,
    free_sudo: Arc<AtomicBool>,
}

impl MemoryConnection {
    fn begin(&self, command: &str) -> Result<Running, Error> {
        let host = self.machine.name.clone();
        if self.ending.has_come() {
            let reason = "it was closed".into();
            return Err(Error::Lost { host, reason });
        }
        self.machine.lock().log.commands += 1;
        let (input, their_input) = duplex(PIPE);
        let (output, their_output) = duplex(PIPE);
        let (errors, their_errors) = duplex(PIPE);
        let session = Session {
            machine: Arc::clone(&self.machine),
            input: BufReader::new(their_input),
            output: their_output,
            errors: their_errors,
            connection: self.ending.clone(),
            reporting: false,
        };
        let (ended, exit) = oneshot::channel();
        let command = command.to_owned();
        // It goes on when nobody listens any more.
        tokio::spawn(async move {
            let exit = session.run(command).await;
            let _ = ended.send(exit);
        });
        let ending = self.ending.clone();
        let exit = async move {
            tokio::select! {
                biased;
                reason = ending.comes() => Err(Error::Lost { host, reason: reason.to_string() }),
                exit = exit => exit.map_err(|_| Error::Lost { host, reason: "its runtime ended".into() }),
            }
        };
        Ok(Running {
            input: Box::new(Until::new(input, self.ending.clone())),
            output: Box::new(Until::new(output, self.ending.clone())),
            errors: Box::new(Until::new(errors, self.ending.clone())),
            exit: exit.boxed(),
        })
    }
}

impl Connection for MemoryConnection {
    fn name(&self) -> &str {
        &self.machine.name
    }

    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>> {
        async move { self.begin(command) }.boxed()
    }

    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>> {
        let refused = Error::ForwardRefused {
            host: self.machine.name.clone(),
            to: format!("{host}:{port}"),
            reason: "nothing listens there".into(),
            forbidden: false,
        };
        let answer = self.machine.lock().ports.get(&port).cloned();
        async move {
            let answer = answer.ok_or(refused)?;
            let (near, mut far) = duplex(PIPE);
            tokio::spawn(async move {
                let mut asked = [0; 1024];
                if far.read(&mut asked).await.is_ok() {
                    let _ = far.write_all(&answer()).await;
                }
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        }
        .boxed()
    }

    fn is_closed(&self) -> bool {
        self.ending.has_come()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async { self.ending.come("it was closed") }.boxed()
    }

    fn free_sudo(&self) -> Option<Arc<AtomicBool>> {
        Some(self.free_sudo.clone())
    }
}
