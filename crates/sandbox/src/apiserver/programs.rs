//! etcd and kube-apiserver as a pair: both running, and ready.

use std::time::{Duration, Instant};

use kube::{Client, Config};
use snafu::ResultExt as _;
use tempfile::TempDir;
use tokio::time;

use super::{
    error::{EndedSnafu, Error, NotReadySnafu, RequestSnafu},
    supervised::Supervised,
};

/// Between two looks at whether the server is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How long one answer may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Both programs and their directory.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) apiserver: Supervised,
    pub(super) etcd: Supervised,
    pub(super) dir: TempDir,
}

impl Programs {
    /// Waits until the server says it is ready, or a program has ended, or time is up.
    pub(super) async fn wait_ready(
        &self,
        config: &Config,
        deadline: Duration,
    ) -> Result<(), Error> {
        let mut config = config.clone();
        config.default_retry = false;
        let client = Client::try_from(config).context(RequestSnafu {
            what: "create a client",
        })?;
        let end = Instant::now() + deadline;
        loop {
            let last = match readiness(&client).await {
                Ok(()) => return Ok(()),
                Err(answer) => answer,
            };
            for program in [&self.etcd, &self.apiserver] {
                if let Some(status) = program.ended() {
                    return EndedSnafu {
                        program: program.name(),
                        status,
                        logs: self.logs(),
                    }
                    .fail();
                }
            }
            if Instant::now() >= end {
                let logs = self.logs();
                return NotReadySnafu {
                    deadline,
                    last,
                    logs,
                }
                .fail();
            }
            time::sleep(POLL_INTERVAL).await;
        }
    }

    fn logs(&self) -> String {
        [&self.etcd, &self.apiserver]
            .map(|program| {
                let name = program.name();
                format!("---- end of {name}'s log\n{}\n", program.log_tail())
            })
            .concat()
            + "----"
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // Both at once; each is then waited for in turn.
        self.apiserver.release();
        self.etcd.release();
    }
}

/// What the server says about itself; an error is its answer so far.
async fn readiness(client: &Client) -> Result<(), String> {
    let request = http::Request::get("/readyz?verbose")
        .body(Vec::new())
        .map_err(|error| error.to_string())?;
    match time::timeout(REQUEST_TIMEOUT, client.request_text(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) => Err(failed_checks(&status.message)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())),
    }
}

/// Of the list of checks, those that have not passed.
fn failed_checks(answer: &str) -> String {
    let failed: Vec<&str> = answer
        .lines()
        .filter_map(|line| line.strip_prefix("[-]"))
        .map(|check| check.split(' ').next().unwrap_or(check))
        .collect();
    if failed.is_empty() {
        return answer.to_owned();
    }
    format!("still waiting for {}", failed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_checks_that_fail_are_told() {
        let answer = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed";
        assert_eq!(
            failed_checks(answer),
            "still waiting for etcd, informer-sync"
        );
        assert_eq!(failed_checks("forbidden"), "forbidden");
    }
}
