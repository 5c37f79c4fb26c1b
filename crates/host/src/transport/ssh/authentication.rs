//! Logging in: every way that was given and that the server takes, in order, within the number
//! of attempts that sshd allows.

use std::{collections::VecDeque, path::PathBuf, sync::Arc};

use russh::{
    MethodKind, MethodSet,
    client::{AuthResult, Handle, KeyboardInteractiveAuthResponse},
    keys::{
        Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey,
        agent::{AgentIdentity, client::AgentClient},
    },
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::UnixStream;

use super::{
    Auth, Hop,
    connection::Fate,
    handshake::{Guard, printable},
    key::KeyError,
};
use crate::transport::Error;

/// sshd's usual MaxAuthTries.
const ATTEMPTS: usize = 6;

/// A way to authenticate.
enum Attempt {
    Password(SecretString),
    Interactive(SecretString),
    Key(Arc<PrivateKey>, String),
    Agent(PathBuf, PublicKey, String),
}

impl Attempt {
    fn method(&self) -> MethodKind {
        match self {
            Self::Password(_) => MethodKind::Password,
            Self::Interactive(_) => MethodKind::KeyboardInteractive,
            Self::Key(..) | Self::Agent(..) => MethodKind::PublicKey,
        }
    }
}

/// How an attempt ended.
enum Outcome {
    In,
    /// Not accepted, or not sufficient: the methods that the server takes now, and why.
    Refused(MethodSet, String),
    /// It could not be made.
    Skipped(String),
}

/// Logs in, or says what was tried.
pub(super) async fn log_in(
    handle: &mut Handle<Guard>,
    hop: &Hop,
    fate: &Fate,
) -> Result<(), Error> {
    let mut tried = Vec::new();
    let mut unusable: Option<KeyError> = None;
    let mut attempts = attempts(&hop.auth, &mut tried, &mut unusable).await;
    // Asks for the methods; sshd does not count it.
    let none = handle.authenticate_none(&hop.user).await;
    let mut offered = match none.map_err(|_| fate.lost())? {
        AuthResult::Success => return Ok(()),
        AuthResult::Failure {
            remaining_methods, ..
        } => remaining_methods,
    };
    let mut made = 0;
    while let Some(at) = attempts.iter().position(|a| offered.contains(&a.method())) {
        if handle.is_closed() || made == ATTEMPTS {
            break;
        }
        let Some(attempt) = attempts.remove(at) else {
            break;
        };
        made += 1;
        match attempt
            .make(handle, &hop.user)
            .await
            .map_err(|_| fate.lost())?
        {
            Outcome::In => return Ok(()),
            Outcome::Skipped(word) => tried.push(word),
            Outcome::Refused(methods, word) => {
                tried.push(word);
                // Nothing is offered by a server that is gone; the list before still helps.
                if !methods.is_empty() {
                    offered = methods;
                }
            }
        }
    }
    tried.extend(left_over(&attempts, made));
    match unusable.filter(|_| made == 0) {
        Some(source) => Err(Error::Key {
            host: fate.host().into(),
            source,
        }),
        None => Err(Error::Authentication {
            host: fate.host().into(),
            user: hop.user.clone(),
            tried,
            offered: offered.iter().map(String::from).collect(),
        }),
    }
}

/// Words on what was not tried.
fn left_over(attempts: &VecDeque<Attempt>, made: usize) -> Vec<String> {
    match attempts.len() {
        0 => Vec::new(),
        more if made == ATTEMPTS => vec![format!("no more than {ATTEMPTS} ({more} left)")],
        _ if made > 0 => Vec::new(),
        _ => {
            let mut methods: Vec<String> =
                attempts.iter().map(|a| String::from(&a.method())).collect();
            methods.dedup();
            vec![format!(
                "nothing, since it takes no {}",
                methods.join(" or ")
            )]
        }
    }
}

async fn attempts(
    ways: &[Auth],
    tried: &mut Vec<String>,
    unusable: &mut Option<KeyError>,
) -> VecDeque<Attempt> {
    let mut attempts = VecDeque::new();
    for way in ways {
        match way {
            Auth::Password(password) => attempts.extend([
                Attempt::Password(password.clone()),
                Attempt::Interactive(password.clone()),
            ]),
            Auth::Key(key) => match key.open().await {
                Ok(opened) => attempts.push_back(Attempt::Key(opened, key.place())),
                Err(error) => {
                    tried.push(error.to_string());
                    unusable.get_or_insert(error);
                }
            },
            Auth::Agent { socket } => match identities(socket.clone()).await {
                Ok(identities) if identities.is_empty() => {
                    tried.push("ssh-agent (it holds no key)".into());
                }
                Ok(identities) => attempts.extend(identities),
                Err(reason) => tried.push(format!("ssh-agent ({reason})")),
            },
        }
    }
    attempts
}

/// The agent's keys. Certificates are left out.
async fn identities(socket: Option<PathBuf>) -> Result<Vec<Attempt>, String> {
    let named = || std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    let Some(socket) = socket.or_else(named) else {
        return Err("SSH_AUTH_SOCK is not set".into());
    };
    let identities = async {
        AgentClient::connect_uds(&socket)
            .await?
            .request_identities()
            .await
    };
    let identities = identities.await.map_err(|error| error.to_string())?;
    let attempt = |identity| match identity {
        AgentIdentity::PublicKey { key, comment } => {
            Some(Attempt::Agent(socket.clone(), key, printable(&comment)))
        }
        AgentIdentity::Certificate { .. } => None,
    };
    Ok(identities.into_iter().filter_map(attempt).collect())
}

impl Attempt {
    async fn make(self, handle: &mut Handle<Guard>, user: &str) -> Result<Outcome, russh::Error> {
        match self {
            Self::Password(password) => {
                let result = handle
                    .authenticate_password(user, password.expose_secret())
                    .await?;
                Ok(Outcome::from_result(result, "password"))
            }
            Self::Interactive(password) => interactive(handle, user, &password).await,
            Self::Key(key, place) => {
                let word = format!("key {place}");
                let Ok(hash) = rsa_hash(handle, &key.algorithm()).await? else {
                    return Ok(Outcome::Skipped(format!(
                        "{word} (the server knows only SHA-1 for RSA)"
                    )));
                };
                let key = PrivateKeyWithHashAlg::new(key, hash);
                let result = handle.authenticate_publickey(user, key).await?;
                Ok(Outcome::from_result(result, &word))
            }
            Self::Agent(socket, key, comment) => {
                let word = format!("ssh-agent's key '{comment}'");
                let Ok(hash) = rsa_hash(handle, &key.algorithm()).await? else {
                    return Ok(Outcome::Skipped(format!(
                        "{word} (the server knows only SHA-1 for RSA)"
                    )));
                };
                let mut agent: AgentClient<UnixStream> =
                    match AgentClient::connect_uds(&socket).await {
                        Ok(agent) => agent,
                        Err(error) => return Ok(Outcome::Skipped(format!("{word} ({error})"))),
                    };
                match handle
                    .authenticate_publickey_with(user, key, hash, &mut agent)
                    .await
                {
                    Ok(result) => Ok(Outcome::from_result(result, &word)),
                    Err(error) => Ok(Outcome::Skipped(format!("{word} ({error})"))),
                }
            }
        }
    }
}

impl Outcome {
    fn from_result(result: AuthResult, word: &str) -> Self {
        match result {
            AuthResult::Success => Self::In,
            AuthResult::Failure {
                remaining_methods,
                partial_success,
            } => {
                let how = if partial_success {
                    "accepted, not enough"
                } else {
                    "refused"
                };
                Self::Refused(remaining_methods, format!("{word} ({how})"))
            }
        }
    }
}

/// How an RSA key signs: never with SHA-1. `Err` where the server takes nothing else.
async fn rsa_hash(
    handle: &Handle<Guard>,
    algorithm: &Algorithm,
) -> Result<Result<Option<HashAlg>, ()>, russh::Error> {
    if !matches!(algorithm, Algorithm::Rsa { .. }) {
        return Ok(Ok(None));
    }
    Ok(match handle.best_supported_rsa_hash().await? {
        Some(Some(hash)) => Ok(Some(hash)),
        Some(None) => Err(()),
        None => Ok(Some(HashAlg::Sha256)),
    })
}

/// Answers the one question for the password, once. Any other ends the attempt: a password belongs
/// into no other field, least of all into that for a new one.
async fn interactive(
    handle: &mut Handle<Guard>,
    user: &str,
    password: &SecretString,
) -> Result<Outcome, russh::Error> {
    use KeyboardInteractiveAuthResponse as Response;
    let mut response = handle
        .authenticate_keyboard_interactive_start(user, None)
        .await?;
    let mut answered = false;
    let mut other_question = None;
    // More rounds than any server has; each is an answer away from the next.
    for _ in 0..10 {
        let prompts = match response {
            Response::Success => return Ok(Outcome::In),
            Response::Failure {
                remaining_methods,
                partial_success,
            } => {
                let how = match other_question {
                    Some(question) => format!("it asks '{question}'"),
                    None if partial_success => "accepted, not enough".into(),
                    None => "refused".into(),
                };
                let word = format!("keyboard-interactive ({how})");
                return Ok(Outcome::Refused(remaining_methods, word));
            }
            Response::InfoRequest { prompts, .. } => prompts,
        };
        let answers = match &prompts[..] {
            [only] if !answered && !only.echo && asks_for_password(&only.prompt) => {
                answered = true;
                vec![password.expose_secret().to_owned()]
            }
            others => {
                let mut others = others.iter();
                let other = others.find(|prompt| answered || !asks_for_password(&prompt.prompt));
                let question = other.or(prompts.first()).map(|one| printable(&one.prompt));
                other_question = other_question.or(question);
                vec![String::new(); prompts.len()]
            }
        };
        response = handle
            .authenticate_keyboard_interactive_respond(answers)
            .await?;
    }
    Ok(Outcome::Skipped(
        "keyboard-interactive (it asks without end)".into(),
    ))
}

/// What a prompt for a password says, in the languages that PAM and sshd are used with.
const PASSWORD_WORDS: [&str; 17] = [
    "password",
    "passwort",
    "kennwort",
    "mot de passe",
    "contraseña",
    "senha",
    "palavra-passe",
    "parola",
    "wachtwoord",
    "lösenord",
    "hasło",
    "пароль",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "암호",
];

/// Words of prompts that want something else, although they may speak of a password too.
const OTHER_WORDS: [&str; 18] = [
    "code",
    "passcode",
    "otp",
    "totp",
    "hotp",
    "oath",
    "onetime",
    "token",
    "pin",
    "2fa",
    "factor",
    "verification",
    "new",
    "retype",
    "again",
    "einmalpasswort",
    "neues",
    "nouveau",
];

/// The same where words are not told apart by blanks.
const OTHER_PHRASES: [&str; 9] = [
    "one-time",
    "one time",
    "新",
    "一次性",
    "动态",
    "動態",
    "验证",
    "ワンタイム",
    "일회용",
];

/// Whether a prompt asks for the login's password, and not for a code, a token or a new password.
fn asks_for_password(prompt: &str) -> bool {
    // Names of users and machines may be any word.
    let words = prompt.split_whitespace().filter(|word| !word.contains('@'));
    let prompt = words.collect::<Vec<_>>().join(" ").to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| prompt.contains(word));
    let mut words = prompt.split(|c: char| !c.is_alphanumeric());
    says(&PASSWORD_WORDS) && !says(&OTHER_PHRASES) && !words.any(|word| OTHER_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prompt_for_the_password_gets_it() {
        for prompt in [
            "Password: ",
            "(ops@10.0.0.1) Password:",
            "root@node-1's password: ",
            "(new@pin.example) Password for token@CODE:",
            "Passwort: ",
            "Mot de passe : ",
            "密码：",
            "口令:",
            "パスワード:",
        ] {
            assert!(asks_for_password(prompt), "{prompt}");
        }
        for prompt in [
            "Verification code: ",
            "One-time password (OATH) for `ops': ",
            "Enter PASSCODE:",
            "Password & verification code: ",
            "Duo passcode or option (1-3): ",
            "Token_Response:",
            "Your OTP password:",
            "New password: ",
            "Retype new password: ",
            "验证码：",
            "动态口令：",
            "一次性密码：",
            "新密码：",
            "Enter PIN for key:",
            "What is your name?",
            "",
        ] {
            assert!(!asks_for_password(prompt), "{prompt}");
        }
    }
}
