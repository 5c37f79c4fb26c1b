//! Settings of etcd.

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::Field;
use crate::source::Spanned;
use crate::template::page::Page;
use crate::tree::{Key, Node};
use crate::value::Mismatch;
use crate::walk::{boolean, value, word};

/// Settings of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Etcd {
    /// The value of `--initial-cluster-token`.
    pub token: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct EtcdDraft {
    pub(crate) token: Field<String>,
}

impl EtcdDraft {
    /// Reads a key of the file if it is one of these.
    pub(crate) fn read(&mut self, key: &Key, node: &Node, diagnostics: &mut Diagnostics) -> bool {
        match key.text.as_str() {
            "etcd-external" => refuse_external(node, diagnostics),
            "etcd-token" => self.token = value(node, "bad-token", token, diagnostics),
            _ => return false,
        }
        true
    }

    pub(crate) fn resolve(&self) -> Etcd {
        Etcd {
            token: self.token.unwrap_or("etcd-cluster".to_owned()),
        }
    }
}

fn refuse_external(node: &Node, diagnostics: &mut Diagnostics) {
    if let Field::Given(Spanned { value: true, span }) =
        value(node, "bad-boolean", boolean, diagnostics)
    {
        diagnostics.push(
            Diagnostic::error("unsupported", span, "an external etcd is not supported")
                .remedy("set it to false, and list the machines for etcd in `etcds` (the masters by default)"),
        );
    }
}

/// etcd's token goes into its environment file.
fn token(text: &str) -> Result<String, Mismatch> {
    let text = word(text)?;
    if text
        .chars()
        .any(|c| c.is_whitespace() || "'\"\\$`".contains(c))
    {
        return Err(Mismatch::new(
            "not a token",
            "use letters, digits and '-' only",
        ));
    }
    Ok(text)
}

/// The lines of a new file.
pub(crate) fn template(page: &mut Page) {
    page.set("", "etcd-external", false);
    page.set("", "etcd-token", "etcd-cluster");
}
