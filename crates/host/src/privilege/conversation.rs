//! The talk with sudo until it lets the script begin.

use std::{future, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout},
};

use super::{NOISE, Refusal, find, more, wording::Wording};
use crate::transport::{Error, Exit, Running};

/// A question in an unknown wording counts only when nothing follows it for this time.
const QUIET: Duration = Duration::from_millis(1500);

/// sudo's last words are waited for no longer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why the script did not begin.
pub(super) enum Failure {
    Refused(Refusal),
    Transport(Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What sudo has said and been told so far.
pub(super) struct Conversation<'a> {
    running: Running,
    wording: &'a Wording,
    password: Option<&'a SecretString>,
    output: Vec<u8>,
    errors: Vec<u8>,
    /// How much of the errors has been parsed, in bytes.
    understood: usize,
    answered: bool,
}

enum Received {
    Output(usize),
    Errors(usize),
    Quiet,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        running: Running,
        wording: &'a Wording,
        password: Option<&'a SecretString>,
    ) -> Self {
        Self {
            running,
            wording,
            password,
            output: Vec::new(),
            errors: Vec::new(),
            understood: 0,
            answered: false,
        }
    }

    /// Talks until the script begins. The command that is then running, and whether sudo asked.
    pub(super) async fn hold(mut self) -> Result<(Running, bool), Failure> {
        let mark = self.wording.mark().into_bytes();
        let mut errors_end = false;
        loop {
            if let Some(at) = find(&self.output, &mark) {
                return self.let_in(at + mark.len()).await;
            }
            if find(
                &self.errors[self.understood..],
                self.wording.prompt().as_bytes(),
            )
            .is_some()
            {
                self.answer().await?;
            } else if self.answered && self.unread().contains("Sorry, try again") {
                return Err(Refusal::WrongPassword.into());
            }
            if self.output.len() > NOISE || self.errors.len() > NOISE {
                return Err(self.ended("more output than is read").into());
            }
            match self.listen(errors_end).await {
                Received::Quiet => self.consider_foreign_question().await?,
                Received::Errors(0) => errors_end = true,
                Received::Output(0) => return Err(self.last_words(errors_end).await),
                Received::Output(_) | Received::Errors(_) => {}
            }
        }
    }

    async fn listen(&mut self, errors_end: bool) -> Received {
        let question = self.foreign_question().is_some();
        let until = Instant::now() + QUIET;
        let quiet = async {
            match question {
                true => sleep_until(until).await,
                false => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            count = more(&mut self.running.errors, &mut self.errors), if !errors_end => {
                Received::Errors(count.unwrap_or(0))
            }
            count = more(&mut self.running.output, &mut self.output) => {
                Received::Output(count.unwrap_or(0))
            }
            () = quiet => Received::Quiet,
        }
    }

    /// What sudo said since the last answer.
    fn unread(&self) -> String {
        String::from_utf8_lossy(&self.errors[self.understood..]).into_owned()
    }

    /// A last line that looks like a question in PAM's words.
    fn foreign_question(&self) -> Option<String> {
        let unread = self.unread();
        let line = unread.rsplit('\n').next().unwrap_or_default().trim();
        let asks = line.ends_with([':', '：', '?']) && line.len() < 200;
        asks.then(|| line.to_owned())
    }

    async fn consider_foreign_question(&mut self) -> Result<(), Failure> {
        let Some(question) = self.foreign_question() else {
            return Ok(());
        };
        let lower = question.to_lowercase();
        let words = [
            "password",
            "passwort",
            "mot de passe",
            "contraseña",
            "密码",
            "口令",
        ];
        match words.iter().any(|word| lower.contains(word)) {
            true => self.answer().await,
            false => Err(Refusal::OtherQuestion { question }.into()),
        }
    }

    async fn answer(&mut self) -> Result<(), Failure> {
        if self.answered {
            return Err(Refusal::WrongPassword.into());
        }
        let password = self.password.ok_or(Refusal::NeedsPassword)?;
        let password = password.expose_secret();
        if password.contains(['\n', '\r', '\0']) {
            return Err(Refusal::Unspeakable.into());
        }
        self.answered = true;
        self.understood = self.errors.len();
        // Should the command have ended, its output says so.
        for bytes in [password.as_bytes(), b"\n"] {
            let _ = self.running.input.write_all(bytes).await;
        }
        let _ = self.running.input.flush().await;
        Ok(())
    }

    /// The wrapper waits: behind the go line the input is the script's. What was read too much
    /// goes back before the rest; the prompt does not.
    async fn let_in(self, behind_mark: usize) -> Result<(Running, bool), Failure> {
        let Self {
            mut running,
            wording,
            output,
            mut errors,
            answered,
            ..
        } = self;
        let _ = running.input.write_all(wording.go().as_bytes()).await;
        let _ = running.input.flush().await;
        let prompt = wording.prompt().into_bytes();
        while let Some(at) = find(&errors, &prompt) {
            errors.drain(at..at + prompt.len());
        }
        let output = std::io::Cursor::new(output[behind_mark..].to_vec());
        running.output = Box::new(output.chain(running.output));
        running.errors = Box::new(std::io::Cursor::new(errors).chain(running.errors));
        Ok((running, answered))
    }

    /// sudo has ended without the script.
    async fn last_words(mut self, errors_end: bool) -> Failure {
        let rest = async {
            while !errors_end && self.errors.len() < NOISE {
                if !matches!(
                    more(&mut self.running.errors, &mut self.errors).await,
                    Ok(1..)
                ) {
                    break;
                }
            }
            (&mut self.running.exit).await
        };
        match timeout(LAST_WORDS, rest).await {
            Ok(Err(error)) => Failure::Transport(error),
            Ok(Ok(Exit::Code(127))) if self.errors.is_empty() => Refusal::NoSudo.into(),
            Ok(Ok(exit)) => self.ended(&exit.to_string()).into(),
            Err(_) => self.ended("no exit code").into(),
        }
    }

    fn ended(&self, exit: &str) -> Refusal {
        let said = String::from_utf8_lossy(&self.errors);
        let said = said.replace(&self.wording.prompt(), "");
        Refusal::of_words(&said, exit)
    }
}
