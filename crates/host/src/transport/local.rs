//! The machine that we run on, by the same trait: every command is a process of its own.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    sync::{Arc, atomic::AtomicBool},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{net::TcpStream, process::Command};

use super::{
    Connection, Connector, Error, Exit, Running, Stream,
    ending::{Ending, Until},
};

/// Reaches the machine that we run on.
#[derive(Clone, Debug)]
pub struct Local {
    name: String,
    shell: Vec<String>,
}

impl Local {
    /// Commands go to `sh`.
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_shell(name, "sh", &[])
    }

    /// Commands go to another login shell, a program with its first arguments.
    pub fn with_shell(name: impl Into<String>, program: &str, arguments: &[&str]) -> Self {
        let words = [&[program], arguments].concat();
        Self {
            name: name.into(),
            shell: words.into_iter().map(str::to_owned).collect(),
        }
    }
}

impl Connector for Local {
    fn name(&self) -> &str {
        &self.name
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        let connection = LocalConnection {
            local: self.clone(),
            ending: Ending::new(),
            free_sudo: Arc::default(),
        };
        async move { Ok(Arc::new(connection) as Arc<dyn Connection>) }.boxed()
    }
}

struct LocalConnection {
    local: Local,
    ending: Ending,
    free_sudo: Arc<AtomicBool>,
}

impl LocalConnection {
    fn require_open(&self) -> Result<(), Error> {
        match self.ending.has_come() {
            true => Err(lost(&self.local.name, "it was closed")),
            false => Ok(()),
        }
    }

    fn spawn(&self, command: &str) -> Result<Running, Error> {
        self.require_open()?;
        let failed = |error: &io::Error| Error::Spawn {
            host: self.local.name.clone(),
            reason: error.to_string(),
        };
        let mut shell = Command::new(&self.local.shell[0]);
        shell.args(&self.local.shell[1..]).args(["-c", command]);
        shell.stdin(Stdio::piped());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(|error| failed(&error))?;
        let missing = || failed(&io::ErrorKind::BrokenPipe.into());
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        // Waited for in any case, so that no zombie stays when nobody asks.
        let ended = tokio::spawn(async move { child.wait().await });
        let (ending, host) = (self.ending.clone(), self.local.name.clone());
        let exit = async move {
            tokio::select! {
                biased;
                reason = ending.comes() => Err(lost(&host, &reason)),
                ended = ended => match ended.map_err(io::Error::other).flatten() {
                    Ok(status) => Ok(exit_of(status)),
                    Err(error) => Err(lost(&host, &error.to_string())),
                },
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

fn lost(host: &str, reason: &str) -> Error {
    Error::Lost {
        host: host.into(),
        reason: reason.into(),
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    // A process has either a code or a signal; codes are not negative.
    let code = status.code().and_then(|code| code.try_into().ok());
    code.map_or_else(
        || Exit::Signal(signal_name(status.signal().unwrap_or_default())),
        Exit::Code,
    )
}

/// As SSH names it.
fn signal_name(number: i32) -> String {
    match number {
        1 => "HUP".into(),
        2 => "INT".into(),
        3 => "QUIT".into(),
        6 => "ABRT".into(),
        9 => "KILL".into(),
        11 => "SEGV".into(),
        13 => "PIPE".into(),
        15 => "TERM".into(),
        other => other.to_string(),
    }
}

impl Connection for LocalConnection {
    fn name(&self) -> &str {
        &self.local.name
    }

    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>> {
        async move { self.spawn(command) }.boxed()
    }

    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>> {
        async move {
            self.require_open()?;
            let stream = TcpStream::connect((host, port)).await;
            let stream = stream.map_err(|error| Error::ForwardRefused {
                host: self.local.name.clone(),
                to: format!("{host}:{port}"),
                reason: error.to_string(),
                forbidden: false,
            })?;
            Ok(Box::new(Until::new(stream, self.ending.clone())) as Box<dyn Stream>)
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn here() -> Arc<dyn Connection> {
        Local::new("here").connect().await.unwrap()
    }

    #[tokio::test]
    async fn a_command_has_three_streams_and_an_exit() {
        let running = here().await.exec("cat; echo no >&2; exit 7").await.unwrap();
        let finished = running.finish(b"yes").await.unwrap();
        assert_eq!(finished.exit, Exit::Code(7));
        assert_eq!(finished.output, b"yes");
        assert_eq!(finished.errors, b"no\n");
    }

    #[tokio::test]
    async fn a_signal_is_no_code() {
        let running = here().await.exec("kill -9 $$").await.unwrap();
        let finished = running.finish(b"").await.unwrap();
        assert_eq!(finished.exit, Exit::Signal("KILL".into()));
    }

    #[tokio::test]
    async fn a_closed_connection_loses_its_commands_and_does_not_kill_them() {
        let dir = tempfile::tempdir().unwrap();
        let proof = dir.path().join("proof");
        let connection = here().await;
        let command = format!(
            "echo up; read x; sleep 0.2; echo alive > {}",
            proof.display()
        );
        let mut running = connection.exec(&command).await.unwrap();
        let mut up = [0; 3];
        running.output.read_exact(&mut up).await.unwrap();
        connection.close().await;
        assert!(connection.is_closed());
        let lost = running.exit.await.unwrap_err();
        assert!(lost.is_lost(), "{lost}");
        assert!(running.input.write_all(b"x").await.is_err());
        assert!(running.output.read(&mut up).await.is_err());
        assert!(connection.exec("true").await.unwrap_err().is_lost());
        for _ in 0..100 {
            if proof.exists() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the command was killed");
    }
}
