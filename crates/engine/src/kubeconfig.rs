//! The administrator's kubeconfig of a cluster, and its place in a file that holds others.
//!
//! Entries of ours have an extension that says so, to distinguish them from entries that a user made under the
//! same name: those are never replaced.

#[cfg(test)]
mod tests;

use hatchery_pki::{Credentials, Kubeconfig};
use hatchery_spec::Cluster;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};
use serde_saphyr::SerializerOptions;
use snafu::Snafu;
use time::OffsetDateTime;

use crate::{authorities::Authorities, components::control_plane};

/// The name of the extension on entries of ours.
const MARK: &str = "hatchery";

/// Why a kubeconfig cannot be made.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The authority refuses.
    #[snafu(display("cannot issue the administrator's certificate: {source}"))]
    Issue {
        /// The underlying error.
        source: hatchery_pki::Error,
    },
    /// The file to merge into is not a kubeconfig.
    #[snafu(display("it is not a kubeconfig: {reason}"))]
    Unreadable {
        /// What is wrong with it.
        reason: String,
    },
    /// An entry of the same name was not made by Hatchery.
    #[snafu(display("it has {list} with the name {name} that Hatchery did not write"))]
    Taken {
        /// Of which list.
        list: &'static str,
        /// The name of the entry.
        name: String,
    },
}

impl Error {
    /// What to do.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Issue { .. } => None,
            Self::Unreadable { .. } => Some("correct the file, or name another with --kubeconfig"),
            Self::Taken { .. } => {
                Some("rename or remove that entry, or name another file with --kubeconfig")
            }
        }
    }
}

/// Issues a kubeconfig with administrator rights.
///
/// # Errors
/// When the authority refuses.
pub fn issue(
    cluster: &Cluster,
    authorities: &Authorities,
    now: OffsetDateTime,
) -> Result<SecretString, Error> {
    let leaf = authorities
        .cluster
        .issue(&control_plane::administrator(), now)
        .map_err(|source| Error::Issue { source })?;
    let id = cluster.id.as_str();
    // Names are unique among clusters, so that files can be merged.
    let config = Kubeconfig {
        cluster: id.to_owned(),
        user: format!("{id}-admin"),
        context: format!("admin@{id}"),
        server: format!("https://{}", cluster.endpoint),
        authority_pem: authorities.cluster.cert_pem().to_owned(),
        credentials: Credentials::Certificate(leaf),
    };
    Ok(config.render())
}

/// The lists of a kubeconfig, with what their entries hold and how they are called in a sentence.
const LISTS: [(&str, &str, &str); 3] = [
    ("clusters", "cluster", "a cluster"),
    ("users", "user", "a user"),
    ("contexts", "context", "a context"),
];

/// The text of a file that holds what it held and our entries, with our context made the current one.
///
/// # Errors
/// When the file is none, or has entries of the same names that are not ours.
pub fn merge(there: Option<&str>, ours: &SecretString) -> Result<SecretString, Error> {
    let ours = read(ours.expose_secret())?;
    let mut merged = match there.filter(|text| !text.trim().is_empty()) {
        Some(text) => read(text)?,
        None => Map::from_iter([
            ("apiVersion".to_owned(), json!("v1")),
            ("kind".to_owned(), json!("Config")),
        ]),
    };
    for (list, inner, called) in LISTS {
        let mut entries = list_of(&merged, list)?;
        for mut entry in list_of(&ours, list)? {
            entry[inner]["extensions"] = json!([{"name": MARK, "extension": {"provider": MARK}}]);
            let name = entry["name"].clone();
            match entries.iter_mut().find(|one| one["name"] == name) {
                None => entries.push(entry),
                Some(one) if is_ours(&one[inner]) => *one = entry,
                Some(_) => {
                    return Err(Error::Taken {
                        list: called,
                        name: name.as_str().unwrap_or_default().to_owned(),
                    });
                }
            }
        }
        merged.insert(list.to_owned(), Value::Array(entries));
    }
    if let Some(current) = ours.get("current-context") {
        merged.insert("current-context".to_owned(), current.clone());
    }
    // Quoted, so that readers of older YAML take no name or token for a number or a truth value.
    let mut options = SerializerOptions::default();
    options.quote_all = true;
    let text = serde_saphyr::to_string_with_options(&Value::Object(merged), options);
    let text = text.map_err(|error| Error::Unreadable {
        reason: error.to_string(),
    })?;
    Ok(text.into())
}

fn read(text: &str) -> Result<Map<String, Value>, Error> {
    let read: Value = serde_saphyr::from_str(text).map_err(|_| Error::Unreadable {
        // The parser's words could repeat a key of the file.
        reason: "it is not YAML".to_owned(),
    })?;
    match read {
        Value::Object(map) => Ok(map),
        _ => Err(Error::Unreadable {
            reason: "it is not a mapping".to_owned(),
        }),
    }
}

fn list_of(config: &Map<String, Value>, list: &'static str) -> Result<Vec<Value>, Error> {
    match config.get(list) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(entries)) if entries.iter().all(|one| one["name"].is_string()) => {
            Ok(entries.clone())
        }
        Some(_) => Err(Error::Unreadable {
            reason: format!("`{list}` is not a list of entries with names"),
        }),
    }
}

fn is_ours(inner: &Value) -> bool {
    let extensions = inner["extensions"].as_array();
    extensions.is_some_and(|all| all.iter().any(|one| one["name"] == MARK))
}
