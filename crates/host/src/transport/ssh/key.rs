//! Private keys: read and deciphered once, however many machines they open.

use std::{fmt, path::PathBuf, sync::Arc};

use russh::keys::{self, PrivateKey};
use secrecy::{ExposeSecret, SecretString};
use snafu::Snafu;
use tokio::sync::OnceCell;

/// The environment variable that holds the passphrase of private keys.
pub const PASSPHRASE_VARIABLE: &str = "HATCHERY_KEY_PASSPHRASE";

/// Why a private key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum KeyError {
    /// The file cannot be read.
    #[snafu(display("cannot read the private key {place}: {reason}"))]
    Unreadable {
        /// The path of the file.
        place: String,
        reason: String,
    },
    /// It is enciphered.
    #[snafu(display("the private key {place} needs a passphrase"))]
    NeedsPassphrase {
        /// Where it is.
        place: String,
    },
    /// The passphrase does not open it.
    #[snafu(display("the passphrase does not open the private key {place}"))]
    WrongPassphrase {
        /// Where it is.
        place: String,
    },
    /// It is a public key.
    #[snafu(display("{place} is a public key, not a private one"))]
    Public {
        /// Where it is.
        place: String,
    },
    /// A number in it is shorter than the library reads, as in one of 256 ECDSA keys.
    #[snafu(display(
        "the private key {place} cannot be read in this format: it is cut off, or an ECDSA key whose number begins with zeros"
    ))]
    Short {
        /// Where it is.
        place: String,
    },
    /// The format is unknown.
    #[snafu(display("{place} is not a readable private key: {reason}"))]
    Unknown {
        /// Where it is.
        place: String,
        reason: String,
    },
}

impl KeyError {
    /// What the user can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreadable { .. } => "check the path and who may read the file".into(),
            Self::NeedsPassphrase { .. } | Self::WrongPassphrase { .. } => {
                format!(
                    "put the passphrase into the environment variable {PASSPHRASE_VARIABLE}, or load the key into ssh-agent"
                )
            }
            Self::Public { .. } => "name the file without '.pub'".into(),
            Self::Short { .. } => {
                "write it in the other format with 'ssh-keygen -p -m PEM -f FILE', or use an ed25519 key".into()
            }
            Self::Unknown { .. } => {
                "convert it with 'ssh-keygen -p -f FILE', which writes OpenSSH's own format".into()
            }
        }
    }
}

/// A private key in OpenSSH's format or PEM. Clones share what was read.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    source: Source,
    passphrase: Option<SecretString>,
    opened: OnceCell<Result<Arc<PrivateKey>, KeyError>>,
}

enum Source {
    File(PathBuf),
    Text(SecretString),
}

impl Key {
    /// A key in a file.
    pub fn file(path: impl Into<PathBuf>, passphrase: Option<SecretString>) -> Self {
        Self::new(Source::File(path.into()), passphrase)
    }

    /// A key in memory.
    pub fn text(text: SecretString, passphrase: Option<SecretString>) -> Self {
        Self::new(Source::Text(text), passphrase)
    }

    fn new(source: Source, passphrase: Option<SecretString>) -> Self {
        Self(Arc::new(Inner {
            source,
            passphrase,
            opened: OnceCell::new(),
        }))
    }

    /// The file, or that there is none.
    pub fn place(&self) -> String {
        match &self.0.source {
            Source::File(path) => path.display().to_string(),
            Source::Text(_) => "given as text".into(),
        }
    }

    /// The key, ready for use. Deciphering takes a while by design and happens once.
    pub(super) async fn open(&self) -> Result<Arc<PrivateKey>, KeyError> {
        let open = || async {
            let this = self.clone();
            let opened = tokio::task::spawn_blocking(move || this.read()).await;
            opened.unwrap_or_else(|error| {
                Err(KeyError::Unknown {
                    place: self.place(),
                    reason: error.to_string(),
                })
            })
        };
        self.0.opened.get_or_init(open).await.clone()
    }

    fn read(&self) -> Result<Arc<PrivateKey>, KeyError> {
        let place = self.place();
        let text = match &self.0.source {
            Source::Text(text) => text.clone(),
            Source::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => text.into(),
                Err(error) => {
                    let reason = error.to_string();
                    return Err(KeyError::Unreadable { place, reason });
                }
            },
        };
        let passphrase = self.0.passphrase.as_ref().map(ExposeSecret::expose_secret);
        let text = text.expose_secret();
        keys::decode_secret_key(text, passphrase)
            .map(Arc::new)
            .map_err(|error| explain(text, passphrase, place, &error))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.place()).finish()
    }
}

/// The library's words for a wrong passphrase differ by format; the key says itself whether it
/// is enciphered.
fn explain(text: &str, passphrase: Option<&str>, place: String, error: &keys::Error) -> KeyError {
    if is_short(text, passphrase) {
        return KeyError::Short { place };
    }
    let enciphered = matches!(error, keys::Error::KeyIsEncrypted)
        || text.contains("ENCRYPTED")
        || PrivateKey::from_openssh(text.trim()).is_ok_and(|key| key.is_encrypted());
    let is_private = text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File");
    match (enciphered, passphrase.is_some()) {
        (true, false) => KeyError::NeedsPassphrase { place },
        (true, true) => KeyError::WrongPassphrase { place },
        _ if !is_private && text.trim_start().starts_with(['s', 'e']) && text.contains(" AAAA") => {
            KeyError::Public { place }
        }
        _ => KeyError::Unknown {
            place,
            reason: error.to_string(),
        },
    }
}

/// Whether OpenSSH's format was understood, and its cipher, but for the length of what is in it.
fn is_short(text: &str, passphrase: Option<&str>) -> bool {
    use keys::ssh_key::{Error, encoding::Error::Length};
    let error = match PrivateKey::from_openssh(text.trim()) {
        Err(error) => Some(error),
        Ok(key) => passphrase.and_then(|word| key.decrypt(word).err()),
    };
    matches!(error, Some(Error::Encoding(Length)))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

    fn keygen(arguments: &[&str], path: &Path) {
        let output = Command::new("ssh-keygen")
            .args(arguments)
            .args(["-q", "-C", "", "-f"])
            .arg(path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    fn secret(text: &str) -> Option<SecretString> {
        Some(text.into())
    }

    /// The same key, whose number begins with a zero: plain, and enciphered.
    const SHORT: [(&str, Option<&str>); 2] = [
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\n\
             b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS\n\
             1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQTNcG8mtc3ORqrD6nWsRSCcRymmSjjC\n\
             dp8kGwi8icussGCrzbq+ptoyp6gZJ2pbxQ48eXxQ5cBmdQGShjUd6ZpDAAAAoETgrnFE4K\n\
             5xAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBM1wbya1zc5GqsPq\n\
             daxFIJxHKaZKOMJ2nyQbCLyJy6ywYKvNur6m2jKnqBknalvFDjx5fFDlwGZ1AZKGNR3pmk\n\
             MAAAAfMtlVlx8n6ymrP1J+MvtzqBolKPQQ3XwVNCeHfOYVjgAAAAR0ZXN0AQIDBAU=\n\
             -----END OPENSSH PRIVATE KEY-----",
            None,
        ),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\n\
             b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABBKLzjDHJ\n\
             wAxjiP3PkkW5kcAAAAEAAAAAEAAABoAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlz\n\
             dHAyNTYAAABBBM1wbya1zc5GqsPqdaxFIJxHKaZKOMJ2nyQbCLyJy6ywYKvNur6m2jKnqB\n\
             knalvFDjx5fFDlwGZ1AZKGNR3pmkMAAACgbRbAP2EwXtaB2Z+6cmUGCybo0nvl1OrcYZgC\n\
             hf+uLdlIp5onUYbmezbDrR8YclmXB4czjg38hYQQzhM42rcjQ8OpL6BbIz8vJC0sRTSKY4\n\
             EfmmXksroZykPtmyrAmQ+M9Pvr+1IUHMWUUhKplJGHLVWZLEJHA9n0vhzLtnNtEec2/PCd\n\
             E2ytIbyBZwaWXsoJTCNrxrhE3e6SsyLPk7fAtg==\n\
             -----END OPENSSH PRIVATE KEY-----",
            Some("hush hush"),
        ),
    ];

    #[tokio::test]
    async fn a_number_that_begins_with_zeros_is_not_a_wrong_passphrase() {
        for (text, passphrase) in SHORT {
            let open = async |passphrase: Option<&str>| {
                let key = Key::text(text.into(), passphrase.and_then(secret));
                key.open().await.unwrap_err()
            };
            let short = open(passphrase).await;
            assert!(matches!(short, KeyError::Short { .. }), "{short:?}");
            assert!(short.remedy().contains("-m PEM"));
            if passphrase.is_some() {
                let wrong = open(Some("wrong")).await;
                assert!(
                    matches!(wrong, KeyError::WrongPassphrase { .. }),
                    "{wrong:?}"
                );
            }
        }
        // The way out that is named.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, format!("{}\n", SHORT[0].0)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
        let done = Command::new("ssh-keygen")
            .args(["-q", "-p", "-m", "PEM", "-P", "", "-N", "", "-f"])
            .arg(&path)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        Key::file(&path, None).open().await.unwrap();
    }

    #[tokio::test]
    async fn every_usual_format_opens() {
        let dir = tempfile::tempdir().unwrap();
        for (number, (kind, more, passphrase)) in [
            ("ed25519", &[][..], ""),
            ("ed25519", &[], "hush hush"),
            ("ecdsa", &[], "hush hush"),
            ("rsa", &["-b", "2048"], "hush hush"),
            ("rsa", &["-b", "2048", "-m", "PEM"], ""),
            ("rsa", &["-b", "2048", "-m", "PEM"], "hush hush"),
            ("rsa", &["-b", "2048", "-m", "PKCS8"], ""),
            ("rsa", &["-b", "2048", "-m", "PKCS8"], "hush hush"),
            ("ecdsa", &["-m", "PEM"], ""),
            ("ecdsa", &["-m", "PKCS8"], "hush hush"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = dir.path().join(number.to_string());
            let given = || secret(passphrase).filter(|_| !passphrase.is_empty());
            let key = loop {
                keygen(&[&["-t", kind, "-N", passphrase], more].concat(), &path);
                match Key::file(&path, given()).open().await {
                    // One of 256.
                    Err(KeyError::Short { .. }) if kind == "ecdsa" => {
                        std::fs::remove_file(&path).unwrap();
                    }
                    key => break key,
                }
            };
            assert!(key.is_ok(), "{kind} {more:?} {passphrase:?}: {key:?}");
            if !passphrase.is_empty() {
                let none = Key::file(&path, None).open().await.unwrap_err();
                assert!(
                    matches!(none, KeyError::NeedsPassphrase { .. }),
                    "{kind} {more:?}: {none:?}"
                );
                assert!(none.remedy().contains(PASSPHRASE_VARIABLE));
                let wrong = Key::file(&path, secret("wrong")).open().await.unwrap_err();
                assert!(
                    matches!(wrong, KeyError::WrongPassphrase { .. }),
                    "{kind} {more:?}: {wrong:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_private_key_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        keygen(&["-t", "ed25519", "-N", ""], &path);
        let public = Key::file(path.with_extension("pub"), None).open().await;
        assert!(matches!(public, Err(KeyError::Public { .. })), "{public:?}");
        let missing = Key::file(dir.path().join("none"), None).open().await;
        assert!(
            matches!(missing, Err(KeyError::Unreadable { .. })),
            "{missing:?}"
        );
        let junk = Key::text("junk".into(), None).open().await;
        assert!(matches!(junk, Err(KeyError::Unknown { .. })), "{junk:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = format!("{:?}", Key::text(text.clone().into(), secret("hush")));
        assert!(
            !shown.contains("hush") && !shown.contains("OPENSSH"),
            "{shown}"
        );
        assert!(Key::text(text.into(), None).open().await.is_ok());
    }
}
