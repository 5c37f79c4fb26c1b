//! The login shell and sudo of a machine in memory: they understand exactly what [`crate::privilege`] says.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Who logs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Login {
    #[default]
    Root,
    /// A user who may become root by sudo.
    Sudo {
        /// What sudo asks for, if it asks.
        password: Option<String>,
    },
    /// A user who may not.
    Nobody,
}

/// A command line taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    becoming: Becoming,
    nonce: String,
    /// What runs behind the go line.
    pub(super) work: Work,
}

#[derive(Debug, PartialEq, Eq)]
enum Becoming {
    Nothing,
    Sudo { prompt: String },
    FreeSudo,
}

/// What a script does with the rest of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Unpacks a stream and runs its first entry.
    Task,
    /// Runs it as a script.
    Question,
}

/// How a command ended before its work began.
pub(super) struct Refused {
    pub(super) code: u32,
    pub(super) complaint: String,
}

impl Command {
    /// Nothing when it is not in our words.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (becoming, wrapped) = if let Some(rest) = line.strip_prefix("env LC_ALL=C sudo -n -- ")
        {
            (Becoming::FreeSudo, rest)
        } else if let Some(rest) = line.strip_prefix("env LC_ALL=C sudo -S -p ") {
            let (prompt, rest) = rest.split_once(" -- ")?;
            let prompt = prompt.to_owned();
            (Becoming::Sudo { prompt }, rest)
        } else {
            (Becoming::Nothing, line)
        };
        let wrapper = wrapped.strip_prefix("sh -c '")?.strip_suffix('\'')?;
        let (head, script) = wrapper.split_once("; unset l; ")?;
        let (_, nonce) = head.split_once("echo hatchery-ready-")?;
        let (nonce, _) = nonce.split_once(';')?;
        let script = script.replace("'\"'\"'", "'");
        let work = if script == "eval \"$(cat)\"" {
            Work::Question
        } else if script.contains("tar -xpf - && [ -e end ] && exec sh ./run") {
            Work::Task
        } else {
            return None;
        };
        Some(Self {
            becoming,
            nonce: nonce.into(),
            work,
        })
    }

    /// Talks until the work may begin.
    pub(super) async fn begin(
        &self,
        login: &Login,
        input: &mut (impl AsyncBufRead + Unpin),
        output: &mut (impl AsyncWrite + Unpin),
        errors: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Refused> {
        self.become_root(login, input, errors).await?;
        let ready = format!("hatchery-ready-{}\n", self.nonce);
        let _ = output.write_all(ready.as_bytes()).await;
        let go = format!("hatchery-go-{}", self.nonce);
        loop {
            match line(input).await {
                Some(line) if line == go => break,
                Some(_) => {}
                None => return refuse(97, ""),
            }
        }
        // Whoever is not root and did not become root may write nothing.
        if self.becoming == Becoming::Nothing && *login != Login::Root && self.work == Work::Task {
            return refuse(
                97,
                "mkdir: cannot create directory '/var/lib/hatchery': Permission denied\n",
            );
        }
        Ok(())
    }

    async fn become_root(
        &self,
        login: &Login,
        input: &mut (impl AsyncBufRead + Unpin),
        errors: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Refused> {
        let password = match login {
            Login::Sudo {
                password: Some(password),
            } => Some(password.as_str()),
            Login::Nobody => None,
            Login::Root | Login::Sudo { password: None } => return Ok(()),
        };
        let prompt = match &self.becoming {
            Becoming::Nothing => return Ok(()),
            Becoming::FreeSudo => return refuse(1, "sudo: a password is required\n"),
            Becoming::Sudo { prompt } => prompt,
        };
        let Some(password) = password else {
            return refuse(1, "the user is not in the sudoers file.\n");
        };
        for _ in 0..3 {
            let _ = errors.write_all(prompt.as_bytes()).await;
            match line(input).await {
                Some(answer) if answer == password => return Ok(()),
                Some(_) => {
                    let _ = errors.write_all(b"Sorry, try again.\n").await;
                }
                None => return refuse(1, "\nsudo: no password was provided\n"),
            }
        }
        refuse(1, "sudo: 3 incorrect password attempts\n")
    }
}

fn refuse(code: u32, complaint: &str) -> Result<(), Refused> {
    let complaint = complaint.into();
    Err(Refused { code, complaint })
}

/// The next line, without its end; nothing when no whole one comes any more.
async fn line(input: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    input.read_until(b'\n', &mut bytes).await.ok()?;
    bytes.pop_if(|last| *last == b'\n')?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
