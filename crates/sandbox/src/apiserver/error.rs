//! What can go wrong with an API server for tests, with the programs' own words.

use std::{io, path::PathBuf, time::Duration};

use kube::config::KubeconfigError;
use snafu::Snafu;

use super::credentials;
use crate::fixtures;

/// What can go wrong with an API server for tests.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("etcd or kube-apiserver is missing: {source}"))]
    Fixtures { source: fixtures::Error },
    #[snafu(display("cannot create a directory in {} for the API server: {source}; set TMPDIR to a writable directory", parent.display()))]
    Directory { parent: PathBuf, source: io::Error },
    #[snafu(transparent)]
    Credentials { source: credentials::Error },
    #[snafu(display("no free port on 127.0.0.1: {source}"))]
    Port { source: io::Error },
    #[snafu(display("cannot run {} under sh: {source}", program.display()))]
    Start { program: PathBuf, source: io::Error },
    #[snafu(display("{program} ended with status {status} while the API server started\n{logs}"))]
    Ended {
        program: &'static str,
        status: String,
        logs: String,
    },
    #[snafu(display(
        "a port of the API server was taken by another process {attempts} times in a row\n{logs}"
    ))]
    PortTaken { attempts: usize, logs: String },
    #[snafu(display("the API server was not ready after {:.1} s: {last}\n{logs}", deadline.as_secs_f64()))]
    NotReady {
        deadline: Duration,
        last: String,
        logs: String,
    },
    #[snafu(display("the client library rejects the API server's kubeconfig: {source}"))]
    Kubeconfig {
        #[snafu(source(from(KubeconfigError, Box::new)))]
        source: Box<KubeconfigError>,
    },
    #[snafu(display("cannot {what} on the API server: {source}"))]
    Request {
        what: &'static str,
        #[snafu(source(from(kube::Error, Box::new)))]
        source: Box<kube::Error>,
    },
}
