//! What has to hold before and after a service is restarted of which only one may be away at a time.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::future::join_all;
use hatchery_spec::{
    Cluster,
    cluster::{Component, Role},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{sleep, timeout},
};

use super::{Run, TaskError};
use crate::{name_list::NameList, plan::Lane};

/// A member that is well says so at once.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(200);
/// Members that others have just restarted get so long before they count as lost.
const SETTLING: Duration = Duration::from_secs(15);
/// No answer about health is longer.
const LONGEST: u64 = 16 * 1024;

/// Who was well before a restart, by place, and has to be well after it.
#[derive(Debug)]
pub(super) struct Before(BTreeSet<usize>);

impl Run<'_> {
    /// Whether the service on this machine may be restarted now.
    pub(super) async fn before_restart(
        &self,
        lane: Lane,
        place: usize,
    ) -> Result<Before, TaskError> {
        let begin = Instant::now();
        let healthy = loop {
            let healthy = self.healthy_members().await;
            let all = healthy.len() == self.cluster.etcds().len();
            // A machine that did not answer does not come back by waiting.
            let expected = self.members().len() - self.missing_members();
            if all || healthy.len() >= expected || begin.elapsed() > SETTLING {
                break healthy;
            }
            sleep(PAUSE).await;
        };
        let name = |place: &usize| self.cluster.machine(*place).name.to_string();
        let members = self.members();
        let away: Vec<_> = members
            .iter()
            .filter(|member| !healthy.contains(member))
            .map(name)
            .collect();
        let refusal = match lane {
            Lane::Etcd => refuse_member(members.len(), &healthy, place),
            Lane::ControlPlane => refuse_master(members.len(), healthy.len()),
        };
        match refusal {
            None => Ok(Before(healthy)),
            Some(left) => Err(TaskError::Refused {
                reason: format!(
                    "not restarted: etcd on {} does not answer that it is healthy, and {left}",
                    NameList(&away)
                ),
                remedy: Some(
                    "bring the members back (journalctl -u etcd there), then run again".into(),
                ),
            }),
        }
    }

    /// Waits until the service on this machine is well again, and everybody who was before.
    pub(super) async fn after_restart(
        &self,
        lane: Lane,
        place: usize,
        before: &Before,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(), TaskError> {
        match lane {
            Lane::ControlPlane => {
                step("waiting for the API on this machine");
                let answered = self.api_by(place, self.timeouts.restart, step).await;
                answered.map(drop).map_err(|error| {
                    TaskError::Failed {
                    reason: format!("restarted, and its API server does not come back: {error}"),
                    remedy: Some(
                        "see journalctl -u kube-apiserver there; the other masters are as they were"
                            .into(),
                    ),
                }
                })
            }
            Lane::Etcd => {
                step("waiting for all members of etcd to be healthy");
                let wanted: BTreeSet<_> = before.0.iter().copied().chain([place]).collect();
                let begin = Instant::now();
                loop {
                    let healthy = self.healthy_members().await;
                    if wanted.is_subset(&healthy) {
                        return Ok(());
                    }
                    if begin.elapsed() > self.timeouts.restart {
                        let name = |place: &usize| self.cluster.machine(*place).name.to_string();
                        let missing: Vec<_> = wanted.difference(&healthy).map(name).collect();
                        return Err(TaskError::Failed {
                            reason: format!(
                                "restarted, and {} s later etcd is not healthy on {}",
                                self.timeouts.restart.as_secs(),
                                NameList(&missing)
                            ),
                            remedy: Some(
                                "see journalctl -u etcd there; members that come after it are as they were"
                                    .into(),
                            ),
                        });
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// The machines with a member, by place.
    fn members(&self) -> Vec<usize> {
        let machines = self.cluster.machines().iter().enumerate();
        machines
            .filter(|(_, node)| node.is(Role::Etcd))
            .map(|(place, _)| place)
            .collect()
    }

    fn missing_members(&self) -> usize {
        let members = self.members();
        members
            .iter()
            .filter(|place| self.missing.contains(place))
            .count()
    }

    /// Members that say they are healthy, which they do only while there is a majority.
    async fn healthy_members(&self) -> BTreeSet<usize> {
        let members = self.members().into_iter();
        let members = members.filter(|place| !self.missing.contains(place));
        let Some((host, port)) = health_address(self.cluster) else {
            // Nobody can be asked; systemd at least waits until a member has joined the others.
            return members.collect();
        };
        let host = host.as_str();
        let asked = members.map(|place| async move {
            let answer = timeout(ANSWER, self.is_healthy(place, host, port)).await;
            matches!(answer, Ok(Some(true))).then_some(place)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn is_healthy(&self, place: usize, host: &str, port: u16) -> Option<bool> {
        let connection = self.machines[place].connection().await.ok()?;
        let mut stream = connection.forward(host, port).await.ok()?;
        let question = format!("GET /health HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n");
        stream.write_all(question.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer).await.ok()?;
        says_healthy(&answer)
    }
}

/// Where a member tells its health without a certificate: as etcd is told by us, or by the user, who may want none.
fn health_address(cluster: &Cluster) -> Option<(String, u16)> {
    let user = cluster.extra_args.get(&Component::Etcd);
    let urls = user.and_then(|user| {
        let mut arguments = user.iter();
        let is_it = |name: &str| {
            let name = name.trim_start_matches('-').to_ascii_lowercase();
            name.trim_start_matches("etcd_").replace('_', "-") == "listen-metrics-urls"
        };
        arguments.find_map(|(name, value)| is_it(name).then_some(value))
    });
    let Some(urls) = urls else {
        return Some(("127.0.0.1".into(), 2381));
    };
    urls.split(',').find_map(|url| {
        let (host, port) = url.trim().strip_prefix("http://")?.rsplit_once(':')?;
        let port = port.trim_end_matches('/').parse().ok()?;
        let host = match host.trim_matches(['[', ']']) {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        Some((host.to_owned(), port))
    })
}

/// What an answer of `/health` says.
fn says_healthy(answer: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(answer);
    let (_, body) = text.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body.trim()).ok()?;
    let health = &body["health"];
    Some(health == "true" || *health == true)
}

/// Why a member may not be restarted, if so: the others would be no majority, where they are one with it. While all
/// are well there is no better moment, however few they are; and one that is not well has nothing to lose.
fn refuse_member(count: usize, healthy: &BTreeSet<usize>, place: usize) -> Option<String> {
    let left = healthy.iter().filter(|one| **one != place).count();
    let harms = healthy.contains(&place) && healthy.len() < count && 2 * left <= count;
    harms.then(|| format!("this restart would leave {left} of {count} members"))
}

/// Why a master may not be restarted: it would not come back without etcd.
fn refuse_master(count: usize, healthy: usize) -> Option<String> {
    (2 * healthy <= count).then(|| format!("{healthy} of {count} members are no majority"))
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    #[test]
    fn a_restart_never_takes_the_majority_away() {
        let refuse = |count, healthy: &[usize], place| {
            refuse_member(count, &healthy.iter().copied().collect(), place)
        };
        // All are well.
        for count in 1..6 {
            let all: Vec<_> = (0..count).collect();
            assert_eq!(refuse(count, &all, 0), None, "{count}");
        }
        // One of three is away: no other may go.
        assert_eq!(
            refuse(3, &[0, 1], 0).unwrap(),
            "this restart would leave 1 of 3 members"
        );
        // But the one that is not well may be tried.
        assert_eq!(refuse(3, &[0, 1], 2), None);
        // Five can do without two.
        assert_eq!(refuse(5, &[0, 1, 2, 3], 0), None);
        assert!(refuse(5, &[0, 1, 2], 0).is_some());
        // Where there is no majority anyway nothing can be taken away.
        assert_eq!(refuse(3, &[], 0), None);
        assert_eq!(refuse_master(3, 2), None);
        assert!(refuse_master(3, 1).is_some() && refuse_master(2, 1).is_some());
        assert_eq!(refuse_master(1, 1), None);
    }

    #[test]
    fn health_is_read_from_every_release() {
        let answer = |body: &str| format!("HTTP/1.0 200 OK\r\nX: y\r\n\r\n{body}\n").into_bytes();
        assert_eq!(
            says_healthy(&answer(r#"{"health":"true","reason":""}"#)),
            Some(true)
        );
        assert_eq!(says_healthy(&answer(r#"{"health": true}"#)), Some(true));
        assert_eq!(
            says_healthy(&answer(r#"{"health":"false","reason":"QGET ERROR"}"#)),
            Some(false)
        );
        assert_eq!(says_healthy(b"HTTP/1.0 404 Not Found\r\n\r\nno"), None);
        assert_eq!(says_healthy(b""), None);
    }

    #[test]
    fn the_user_may_have_health_told_elsewhere() {
        let address = |arguments: &str| {
            let text = format!(
                "cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: []\n{arguments}"
            );
            let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
            match health_address(&cluster.unwrap()) {
                Some((host, port)) => format!("{host} {port}"),
                None => "nowhere".into(),
            }
        };
        assert_eq!(address(""), "127.0.0.1 2381");
        let told = |value: &str| {
            address(&format!(
                "config-extra-args: [{{name: etcd, extra-args: {{ETCD_LISTEN_METRICS_URLS: '{value}'}}}}]\n"
            ))
        };
        assert_eq!(
            told("https://10.0.0.1:1,http://0.0.0.0:9000"),
            "127.0.0.1 9000"
        );
        assert_eq!(told("http://[::1]:9001/"), "::1 9001");
        assert_eq!(told("https://10.0.0.1:1"), "nowhere");
    }
}
