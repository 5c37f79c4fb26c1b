//! Kubeconfig files, with everything embedded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::authority::Leaf;

/// How the user of a kubeconfig authenticates.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A client certificate with its key.
    Certificate(Leaf),
    /// A bearer token, as in a kubelet's bootstrap file.
    Token(SecretString),
}

/// A kubeconfig file for one cluster and one user.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// The name of the entry in `clusters`.
    pub cluster: String,
    /// The name of the entry in `users`.
    pub user: String,
    /// The name of the entry in `contexts`, which becomes the current one.
    pub context: String,
    /// The API server's address, `https://host:port`.
    pub server: String,
    /// The certificate of the authority that issued the API server's, in PEM format.
    pub authority_pem: String,
    /// How the user authenticates.
    pub credentials: Credentials,
}

impl Kubeconfig {
    /// The file's text. It contains a key or a token: store it in files that only their owner can read.
    pub fn render(&self) -> SecretString {
        let user = match &self.credentials {
            Credentials::Certificate(leaf) => format!(
                "    client-certificate-data: {}\n    client-key-data: {}\n",
                STANDARD.encode(&leaf.cert_pem),
                STANDARD.encode(leaf.key_pem.expose_secret()),
            ),
            Credentials::Token(token) => format!("    token: {}\n", scalar(token.expose_secret())),
        };
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {name}
  user:
{user}contexts:
- name: {context}
  context:
    cluster: {cluster}
    user: {name}
current-context: {context}
",
            cluster = scalar(&self.cluster),
            server = scalar(&self.server),
            authority = STANDARD.encode(&self.authority_pem),
            name = scalar(&self.user),
            context = scalar(&self.context),
        )
        .into()
    }
}

/// A YAML scalar: a JSON string is one, whatever it holds.
fn scalar(text: &str) -> Value {
    Value::from(text)
}
