//! What can go wrong between us and an API server, always with what was asked.

use std::{fmt, time::Duration};

use kube::core::Status;
use snafu::Snafu;

use super::way::Unreached;

/// What was asked of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In a word: get, list, apply, patch, delete.
    pub method: &'static str,
    /// The kind of the object, or a path.
    pub kind: String,
    /// The object's namespace, where it has one.
    pub namespace: Option<String>,
    /// The object's name, where one is meant.
    pub name: Option<String>,
}

impl Asked {
    /// For something without a name.
    pub(super) fn of(method: &'static str, kind: impl Into<String>) -> Self {
        Self {
            method,
            kind: kind.into(),
            namespace: None,
            name: None,
        }
    }

    /// For an error.
    pub(super) fn boxed(&self) -> Box<Self> {
        Box::new(self.clone())
    }

    pub(super) fn named(mut self, namespace: Option<&str>, name: &str) -> Self {
        self.namespace = namespace.map(Into::into);
        self.name = Some(name.into());
        self
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.kind)?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (None, Some(name)) => write!(f, " {name}"),
            _ => Ok(()),
        }
    }
}

/// Why an answer is none, or not the one that was hoped for.
#[derive(Clone, Debug, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum Error {
    /// Certificate or key cannot be used.
    #[snafu(display("cannot use {what} to reach the API server: {reason}"))]
    Credentials {
        /// Which.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The API server was not reached, or the connection broke.
    #[snafu(display("cannot {asked}: {source}"))]
    Unreached {
        /// What was asked.
        asked: Box<Asked>,
        /// Why.
        #[snafu(source(from(Unreached, Box::new)))]
        source: Box<Unreached>,
    },
    /// The API server said no.
    #[snafu(display("cannot {asked}: the API server says {code} {reason}: {words}"))]
    Refused {
        /// What was asked.
        asked: Box<Asked>,
        /// The HTTP status.
        code: u16,
        /// Its reason in a word; may be empty.
        reason: String,
        /// Its own words.
        words: String,
        /// Whether the answer may be another one in a moment.
        passes: bool,
    },
    /// The answer makes no sense.
    #[snafu(display("cannot {asked}: the answer makes no sense: {reason}"))]
    Garbled {
        /// What was asked.
        asked: Box<Asked>,
        /// Why.
        reason: String,
    },
    /// The API server does not know such objects.
    #[snafu(display("cannot {asked}: the API server serves no {kind} in {api_version}{}", match waited {
        Some(waited) => format!(", not even {} s after its definition was made", waited.as_secs()),
        None => String::new(),
    }))]
    UnknownKind {
        /// What was asked.
        asked: Box<Asked>,
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
        /// How long it was waited for, where there is a definition.
        waited: Option<Duration>,
    },
    /// An object that cannot be applied as it is.
    #[snafu(display("cannot {asked}: {reason}"))]
    Object {
        /// What was asked.
        asked: Box<Asked>,
        /// What is wrong with it.
        reason: String,
    },
    /// What was waited for did not come.
    #[snafu(display("waited {:.0} s for {what}: {last}", after.as_secs_f64()))]
    Deadline {
        /// What was waited for.
        what: String,
        /// So long.
        after: Duration,
        /// What was seen last.
        last: String,
    },
}

impl Error {
    /// Whether trying again in a moment may help.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreached { source, .. } => source.may_pass(),
            Self::Refused { passes, .. } => *passes,
            Self::Deadline { .. } => true,
            Self::Credentials { .. }
            | Self::Garbled { .. }
            | Self::UnknownKind { .. }
            | Self::Object { .. } => false,
        }
    }

    /// What the user can do about it, where that is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Unreached { source, .. } => source.remedy(),
            _ => None,
        }
    }

    /// Whether the object is not there.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }

    /// From an answer that is no success.
    pub(super) fn refused(asked: &Asked, code: u16, body: &[u8]) -> Self {
        let status = serde_json::from_slice::<Status>(body).unwrap_or_else(|_no_status| Status {
            message: plain_words(&String::from_utf8_lossy(body)),
            ..Status::default()
        });
        Self::Refused {
            asked: asked.boxed(),
            code,
            words: words(asked, code, &status),
            passes: passes(code, &status),
            reason: status.reason,
        }
    }
}

/// Of a list of checks those that failed, of any other text the beginning.
fn plain_words(text: &str) -> String {
    let failed: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("[-]"))
        .collect();
    match failed.is_empty() {
        true => text.trim().chars().take(300).collect(),
        false => failed.join("\n"),
    }
}

/// The server's words. Where it judges the content of a Secret it repeats what it does not like, so that only the
/// fields are told.
fn words(asked: &Asked, code: u16, status: &Status) -> String {
    let judges_content = matches!(code, 400 | 413 | 415 | 422 | 500..);
    let causes = status.details.iter().flat_map(|details| &details.causes);
    if code == 429 {
        // Which budget it is stands in a cause alone.
        let causes = causes.filter(|cause| cause.reason == "DisruptionBudget");
        return causes.fold(status.message.clone(), |words, cause| {
            words + " " + &cause.message
        });
    }
    if asked.kind != "Secret" || !judges_content {
        return status.message.clone();
    }
    let fields: Vec<_> = causes.map(|cause| cause.field.as_str()).collect();
    match fields.as_slice() {
        [] => "its words are withheld, they may hold the secret".into(),
        fields => format!(
            "it does not accept {} (its words are withheld, they may hold the secret)",
            fields.join(", ")
        ),
    }
}

fn passes(code: u16, status: &Status) -> bool {
    let words = status.message.as_str();
    match code {
        // Older servers say so of an object that does not fit its schema.
        500 => !words.contains("failed to create typed patch object"),
        408 | 425 | 429 | 500..=599 => true,
        // Another one was faster; a conflict of owners stays one.
        409 => words.contains("the object has been modified"),
        // A controller makes the service account of a new namespace a moment later.
        403 => words.contains("error looking up service account"),
        // The kind is in the discovery already, and not served yet by this API server.
        404 => {
            words.contains("the server could not find the requested resource")
                || words == "404 page not found"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: &str, code: u16, reason: &str, message: &str) -> Error {
        let asked = Asked::of("apply", kind).named(Some("ns"), "it");
        let body = serde_json::json!({
            "kind": "Status", "code": code, "reason": reason, "message": message,
            "details": {"causes": [{"field": "data.password", "message": message}]},
        });
        Error::refused(&asked, code, body.to_string().as_bytes())
    }

    #[test]
    fn what_was_asked_and_the_words_are_told() {
        let told = refused("ConfigMap", 422, "Invalid", "data: no").to_string();
        assert_eq!(
            told,
            "cannot apply ConfigMap ns/it: the API server says 422 Invalid: data: no"
        );
        let plain = Error::refused(&Asked::of("get", "/readyz"), 500, b"etcd failed\n");
        assert_eq!(
            plain.to_string(),
            "cannot get /readyz: the API server says 500 : etcd failed"
        );
    }

    #[test]
    fn a_secret_stays_one() {
        for code in [400, 422, 500] {
            let told = refused("Secret", code, "Invalid", "expected string, got hunter2");
            assert!(!format!("{told} {told:?}").contains("hunter2"), "{told:?}");
            assert!(told.to_string().contains("data.password"), "{told}");
        }
        let conflict = refused("Secret", 409, "Conflict", "conflict with kubectl: .data.a");
        assert!(conflict.to_string().contains("kubectl"), "{conflict}");
    }

    #[test]
    fn what_may_pass() {
        let passes = [
            (429, "TooManyRequests", "slow down"),
            (500, "InternalError", "failed calling webhook"),
            (503, "ServiceUnavailable", ""),
            (
                409,
                "Conflict",
                "the object has been modified; please apply",
            ),
            (
                403,
                "Forbidden",
                "error looking up service account a/default",
            ),
            (
                404,
                "NotFound",
                "the server could not find the requested resource",
            ),
        ];
        for (code, reason, words) in passes {
            assert!(refused("Pod", code, reason, words).may_pass(), "{words}");
        }
        let stays = [
            (401, "Unauthorized", ""),
            (403, "Forbidden", "cannot list"),
            (404, "NotFound", "pods \"a\" not found"),
            (409, "Conflict", "Apply failed with 1 conflict"),
            (422, "Invalid", ""),
            (500, "", "failed to create typed patch object: .spec"),
        ];
        for (code, reason, words) in stays {
            assert!(!refused("Pod", code, reason, words).may_pass(), "{words}");
        }
    }
}
