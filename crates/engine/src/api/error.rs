//! What can go wrong between us and an API server, always with what was asked.

use std::{fmt, time::Duration};

use kube::core::Status;
use snafu::Snafu;

use super::way::Unreached;

/// What was asked of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The verb: get, list, apply, patch, evict, delete.
    verb: &'static str,
    /// The kind of the object, or a path.
    kind: String,
    /// Namespace and name, where a single object is meant.
    object: Option<String>,
}

impl Operation {
    /// On no single object.
    pub(super) fn new(verb: &'static str, kind: impl Into<String>) -> Self {
        Self {
            verb,
            kind: kind.into(),
            object: None,
        }
    }

    pub(super) fn on(verb: &'static str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let object = match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        Self {
            object: Some(object),
            ..Self::new(verb, kind)
        }
    }

    /// Whether words about it may repeat what is in a Secret.
    pub(super) fn may_tell_secrets(&self) -> bool {
        self.kind == "Secret"
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.kind)?;
        match &self.object {
            Some(object) => write!(f, " {object}"),
            None => Ok(()),
        }
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, Snafu)]
pub enum Error {
    /// Certificate or key cannot be used.
    #[snafu(display("cannot use {what} to reach the API server: {reason}"))]
    Credentials {
        /// Which of them.
        what: &'static str,
        /// Never a part of a key.
        reason: String,
    },
    /// The API server was not reached, or the connection broke.
    #[snafu(display("cannot {operation}: {source}"))]
    Unreached {
        /// What was asked.
        operation: Box<Operation>,
        /// What the connection met with.
        #[snafu(source(from(Unreached, Box::new)))]
        source: Box<Unreached>,
    },
    /// The API server said no.
    #[snafu(display("cannot {operation}: the API server says {code}{}: {message}", match reason.as_str() {
        "" => String::new(),
        reason => format!(" {reason}"),
    }))]
    Refused {
        /// What was asked.
        operation: Box<Operation>,
        /// The HTTP status.
        code: u16,
        /// The API server's reason, such as `Conflict`; may be empty.
        reason: String,
        /// In the API server's words, without what may be secret.
        message: String,
        /// Whether the answer may be another one in a moment.
        passes: bool,
    },
    /// The API server does not know such objects.
    #[snafu(display("cannot {operation}: the API server serves no {kind} in {api_version}{}", match waited {
        Some(waited) => format!(", not even {} s after its definition was made", waited.as_secs()),
        None => String::new(),
    }))]
    UnknownKind {
        /// What was asked.
        operation: Box<Operation>,
        /// The kind that the server does not know.
        kind: String,
        /// Its group and version.
        api_version: String,
        /// How long it was waited for, where there is a definition.
        waited: Option<Duration>,
    },
    /// An object that cannot be applied as it is, or an answer that cannot be read.
    #[snafu(display("cannot {operation}: {reason}"))]
    Invalid {
        /// What was asked.
        operation: Box<Operation>,
        /// What is wrong, and where.
        reason: String,
    },
    /// What was waited for did not come.
    #[snafu(display("waited {:.0} s for {what}: {last}", after.as_secs_f64()))]
    Deadline {
        /// What was waited for.
        what: String,
        /// How long was waited.
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
            Self::Credentials { .. } | Self::UnknownKind { .. } | Self::Invalid { .. } => false,
        }
    }

    /// What the user can do about it, where that is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Unreached { source, .. } => source.remedy(),
            _ => None,
        }
    }

    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }

    pub(super) fn new(operation: &Operation, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::refused(operation, *status),
            kube::Error::BuildRequest(error) => Self::invalid(operation, error.to_string()),
            kube::Error::SerdeError(error) => {
                // The error's own words could repeat what is in a Secret.
                let (class, line, column) = (error.classify(), error.line(), error.column());
                let reason = format!("{class:?} error at line {line} column {column}");
                Self::invalid(operation, format!("the answer cannot be read: {reason}"))
            }
            kube::Error::FromUtf8(_) => Self::invalid(operation, "the answer is not valid UTF-8"),
            error => Self::Unreached {
                operation: Box::new(operation.clone()),
                source: Box::new(unreached(&error)),
            },
        }
    }

    pub(super) fn invalid(operation: &Operation, reason: impl Into<String>) -> Self {
        Self::Invalid {
            operation: Box::new(operation.clone()),
            reason: reason.into(),
        }
    }

    fn refused(operation: &Operation, mut status: Status) -> Self {
        // kube's word for an answer that is only text.
        if status.reason == "Failed to parse error data" {
            status.reason.clear();
            status.message = failed_checks_or_beginning(&status.message);
        }
        Self::Refused {
            operation: Box::new(operation.clone()),
            code: status.code,
            message: message(operation, &status),
            passes: passes(&status),
            reason: status.reason,
        }
    }
}

/// `None` where the object, or its whole kind, is not there.
pub(super) fn if_found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// What the connection met with, or the innermost words of the library, which say most.
pub(super) fn unreached(error: &(dyn std::error::Error + 'static)) -> Unreached {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let own = chain
        .clone()
        .find_map(|error| error.downcast_ref::<Unreached>());
    own.cloned().unwrap_or_else(|| Unreached::Broken {
        reason: chain.last().unwrap_or(error).to_string(),
    })
}

/// Of a list of checks those that failed, of any other text the beginning.
fn failed_checks_or_beginning(text: &str) -> String {
    let failed: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("[-]"))
        .collect();
    match failed.is_empty() {
        true => text.trim().chars().take(300).collect(),
        false => failed.join("\n"),
    }
}

/// The server's message. Where it validates the content of a Secret it repeats what it does not accept, so that only the
/// fields are told.
fn message(operation: &Operation, status: &Status) -> String {
    let validates_content = matches!(status.code, 400 | 413 | 415 | 422 | 500..);
    let causes = status.details.iter().flat_map(|details| &details.causes);
    if status.code == 429 {
        // Which budget it is stands in a cause alone.
        let causes = causes.filter(|cause| cause.reason == "DisruptionBudget");
        return causes.fold(status.message.clone(), |message, cause| {
            message + " " + &cause.message
        });
    }
    if !operation.may_tell_secrets() || !validates_content {
        return status.message.clone();
    }
    let fields: Vec<_> = causes.map(|cause| cause.field.as_str()).collect();
    match fields.as_slice() {
        [] => "the message is withheld, since it may contain the secret".into(),
        fields => format!(
            "it does not accept {} (the message is withheld, since it may contain the secret)",
            fields.join(", ")
        ),
    }
}

fn passes(status: &Status) -> bool {
    let message = status.message.as_str();
    match status.code {
        // Older servers say so of an object that does not fit its schema.
        500 => !message.contains("failed to create typed patch object"),
        408 | 425 | 429 | 500..=599 => true,
        // Another one was faster; a conflict of owners stays one.
        409 => message.contains("the object has been modified"),
        // A controller makes the service account of a new namespace a moment later.
        403 => message.contains("error looking up service account"),
        // The kind is in the discovery already, and not served yet by this API server.
        404 => {
            message.contains("the server could not find the requested resource")
                || message == "404 page not found"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: &str, code: u16, reason: &str, message: &str) -> Error {
        let operation = Operation::on("apply", kind, Some("ns"), "it");
        let status = serde_json::json!({
            "kind": "Status", "code": code, "reason": reason, "message": message,
            "details": {"causes": [{"field": "data.password", "message": message}]},
        });
        let status = serde_json::from_value(status).unwrap();
        Error::new(&operation, kube::Error::Api(status))
    }

    #[test]
    fn what_was_asked_and_the_words_are_told() {
        let told = refused("ConfigMap", 422, "Invalid", "data: no").to_string();
        assert_eq!(
            told,
            "cannot apply ConfigMap ns/it: the API server says 422 Invalid: data: no"
        );
        // As kube tells of an answer that is not a Status.
        let plain = Status::failure("etcd failed", "Failed to parse error data").with_code(500);
        let plain = Error::refused(&Operation::new("get", "/readyz"), plain);
        assert_eq!(
            plain.to_string(),
            "cannot get /readyz: the API server says 500: etcd failed"
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
