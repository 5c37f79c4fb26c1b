//! The key that Secrets are encrypted with in etcd, and the API server's file that contains it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret as _, SecretBox, SecretString};

use super::Error;

/// How the API server encrypts with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    /// XSalsa20 with Poly1305, which notices changes.
    SecretBox,
    /// What clusters were made with at first. They keep it: masters restart one after another, and one that has not yet
    /// loaded another provider could not read what the others write with it.
    AesCbc,
}

impl Provider {
    fn word(self) -> &'static str {
        match self {
            Self::SecretBox => "secretbox",
            Self::AesCbc => "aescbc",
        }
    }
}

/// 256 random bits, and what they are for.
#[derive(Debug)]
pub struct EncryptionKey {
    provider: Provider,
    bytes: SecretBox<[u8; 32]>,
}

impl EncryptionKey {
    pub(super) fn generate() -> Result<Self, Error> {
        let mut bytes = Box::new([0; 32]);
        aws_lc_rs::rand::fill(bytes.as_mut()).map_err(|_| Error::Random)?;
        Ok(Self {
            provider: Provider::SecretBox,
            bytes: SecretBox::new(bytes),
        })
    }

    /// Reads what [`Self::to_text`] wrote. A key without the name of a provider is from the time when there was one.
    pub(super) fn from_text(text: &SecretString) -> Result<Self, &'static str> {
        let text = text.expose_secret().trim_end();
        let (provider, text) = match text.strip_prefix("secretbox:") {
            Some(text) => (Provider::SecretBox, text),
            None => (Provider::AesCbc, text),
        };
        let mut bytes = Box::new([0; 32]);
        let length = BASE64_STANDARD
            .decode_slice(text, bytes.as_mut())
            .map_err(|_| "it is not base64 of 32 bytes")?;
        if length == bytes.len() {
            Ok(Self {
                provider,
                bytes: SecretBox::new(bytes),
            })
        } else {
            Err("it is not base64 of 32 bytes")
        }
    }

    pub(super) fn to_text(&self) -> SecretString {
        let key = self.to_base64();
        match self.provider {
            Provider::SecretBox => format!("secretbox:{}", key.expose_secret()).into(),
            Provider::AesCbc => key,
        }
    }

    fn to_base64(&self) -> SecretString {
        BASE64_STANDARD.encode(self.bytes.expose_secret()).into()
    }

    /// The API server's `--encryption-provider-config`, the same for every version that is supported, and the same
    /// bytes every time. Secrets from before it was used can still be read.
    pub fn configuration(&self) -> SecretString {
        let key = self.to_base64();
        format!(
            "apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources:
  - secrets
  providers:
  - {}:
      keys:
      - name: key1
        secret: {}
  - identity: {{}}
",
            self.provider.word(),
            key.expose_secret()
        )
        .into()
    }
}
