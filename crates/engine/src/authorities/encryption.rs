//! The key that Secrets are encrypted with in etcd, and the API server's file that tells of it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret as _, SecretBox, SecretString};

use super::Error;

/// 256 random bits.
#[derive(Debug)]
pub struct EncryptionKey(SecretBox<[u8; 32]>);

impl EncryptionKey {
    pub(super) fn generate() -> Result<Self, Error> {
        let mut bytes = Box::new([0; 32]);
        aws_lc_rs::rand::fill(bytes.as_mut()).map_err(|_| Error::Random)?;
        Ok(Self(SecretBox::new(bytes)))
    }

    /// Reads what [`Self::to_base64`] wrote.
    pub(super) fn from_base64(text: &SecretString) -> Result<Self, &'static str> {
        let mut bytes = Box::new([0; 32]);
        let length = BASE64_STANDARD
            .decode_slice(text.expose_secret().trim_end(), bytes.as_mut())
            .map_err(|_| "it is not base64 of 32 bytes")?;
        if length == bytes.len() {
            Ok(Self(SecretBox::new(bytes)))
        } else {
            Err("it is not base64 of 32 bytes")
        }
    }

    pub(super) fn to_base64(&self) -> SecretString {
        BASE64_STANDARD.encode(self.0.expose_secret()).into()
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
  - aescbc:
      keys:
      - name: key1
        secret: {}
  - identity: {{}}
",
            key.expose_secret()
        )
        .into()
    }
}
