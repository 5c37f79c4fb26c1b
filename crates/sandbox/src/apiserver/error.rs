//! What can go wrong with an API server for tests, with the programs' own words.

use std::{io, path::PathBuf, time::Duration};

use kube::config::KubeconfigError;
use snafu::Snafu;

use super::credentials;
use crate::fixtures;

/// What can go wrong with an API server for tests.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum Error {
    /// etcd or kube-apiserver is not there and could not be made.
    #[snafu(display("the programs of the API server are not there: {source}"))]
    Fixtures {
        /// Why.
        source: fixtures::Error,
    },
    /// The temporary directory could not be made.
    #[snafu(display("cannot make a directory in {} for the API server: {source}; set TMPDIR to a directory of yours", parent.display()))]
    Directory {
        /// Where.
        parent: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The certificates could not be made.
    #[snafu(transparent)]
    Credentials {
        /// Why.
        source: credentials::Error,
    },
    /// No free port was found.
    #[snafu(display("no free port on 127.0.0.1: {source}"))]
    Port {
        /// Why.
        source: io::Error,
    },
    /// A program could not be started at all.
    #[snafu(display("cannot run {} under sh: {source}", program.display()))]
    Start {
        /// Which.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program ended while the server started.
    #[snafu(display("{program} ended with status {status} while the API server started\n{logs}"))]
    Ended {
        /// Which.
        program: &'static str,
        /// Its exit status.
        status: String,
        /// The last lines of both programs.
        logs: String,
    },
    /// Each time another process took one of the chosen ports before the program did.
    #[snafu(display(
        "a port of the API server was taken by another process {attempts} times in a row\n{logs}"
    ))]
    PortTaken {
        /// How often it was tried.
        attempts: usize,
        /// The last lines of both programs.
        logs: String,
    },
    /// The server did not get ready in time.
    #[snafu(display("the API server was not ready after {:.1} s: {last}\n{logs}", deadline.as_secs_f64()))]
    NotReady {
        /// How long it had.
        deadline: Duration,
        /// What it said when last asked.
        last: String,
        /// The last lines of both programs.
        logs: String,
    },
    /// The kubeconfig was not understood by the client library.
    #[snafu(display("the client library refuses the API server's kubeconfig: {source}"))]
    Kubeconfig {
        /// Why.
        #[snafu(source(from(KubeconfigError, Box::new)))]
        source: Box<KubeconfigError>,
    },
    /// A client could not be made, or the server refused a request.
    #[snafu(display("cannot {what} on the API server: {source}"))]
    Request {
        /// What was asked.
        what: &'static str,
        /// Why not.
        #[snafu(source(from(kube::Error, Box::new)))]
        source: Box<kube::Error>,
    },
}
