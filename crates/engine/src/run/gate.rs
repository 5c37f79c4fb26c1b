//! What has to hold before and after a service is restarted of which only one may be away at a time.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::future::join_all;
use hatchery_spec::{
    Cluster,
    cluster::{Arguments, Component},
    value::Name,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{sleep, timeout},
};

use super::{Cause, Run, TaskError};
use crate::{name_list::NameList, plan::Lane};

/// A member that is well says so at once.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(200);
/// The time that members have to come back after a restart before they count as lost.
const SETTLING: Duration = Duration::from_secs(15);
/// No answer about health is longer.
const LONGEST: u64 = 16 * 1024;

/// What was well before a restart, and has to be well after it.
#[derive(Debug)]
pub(super) enum Before {
    /// These members of etcd were.
    Etcd(BTreeSet<Name>),
    /// An API server comes back when etcd has a majority, which it has.
    ControlPlane,
    /// Whether the kubelet was.
    Worker(bool),
}

impl Before {
    /// Whether the machine itself was.
    pub(super) fn is_well(&self) -> bool {
        !matches!(self, Self::Worker(false))
    }
}

impl Run<'_> {
    /// Whether the service on this machine may be restarted now.
    pub(super) async fn before_restart(
        &self,
        lane: Lane,
        machine: &Name,
    ) -> Result<Before, TaskError> {
        if lane == Lane::Workers {
            let kubelet = timeout(ANSWER, self.has_healthy_kubelet(machine)).await;
            return Ok(Before::Worker(kubelet.unwrap_or(false)));
        }
        let begin = Instant::now();
        let members = self.members();
        let healthy = loop {
            let healthy = self.healthy_members().await;
            // A machine that did not answer does not come back by waiting.
            let silent = members.iter().filter(|name| self.is_silent(name));
            let is_all = healthy.len() >= members.len() - silent.count();
            if is_all || begin.elapsed() > SETTLING {
                break healthy;
            }
            sleep(PAUSE).await;
        };
        let away = members.iter().filter(|member| !healthy.contains(member));
        let away: Vec<_> = away.map(ToString::to_string).collect();
        let refusal = match lane {
            Lane::Etcd => refuse_member(members.len(), &healthy, machine),
            Lane::ControlPlane | Lane::Workers => refuse_master(members.len(), healthy.len()),
        };
        match (refusal, lane) {
            (None, Lane::Etcd) => Ok(Before::Etcd(healthy)),
            (None, _) => Ok(Before::ControlPlane),
            (Some(left), _) => Err(TaskError::Alone(Cause::new(
                format!(
                    "not restarted: etcd on {} does not answer that it is healthy, and {left}",
                    NameList(&away)
                ),
                Some("bring the members back (journalctl -u etcd there), then run again".into()),
            ))),
        }
    }

    /// Waits until the service on this machine is well again, and everybody who was before.
    pub(super) async fn after_restart(
        &self,
        machine: &Name,
        before: &Before,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(), TaskError> {
        let limit = self.context.settings.restart;
        match before {
            // It was not well, and whether it ever is says the node.
            Before::Worker(false) => Ok(()),
            Before::Worker(true) => {
                let begin = Instant::now();
                let healthy = || timeout(ANSWER, self.has_healthy_kubelet(machine));
                while healthy().await != Ok(true) {
                    if begin.elapsed() > limit {
                        return Err(not_back(
                            &format!("and {} s later the kubelet is not healthy", limit.as_secs()),
                            "see journalctl -u kubelet there; nodes that come after it are as they were",
                        ));
                    }
                    sleep(PAUSE).await;
                }
                Ok(())
            }
            Before::ControlPlane => {
                step("waiting for the API on this machine");
                let answered = self.access()?.by(machine, limit, step).await;
                answered.map(drop).map_err(|error| {
                    not_back(
                        &format!("and its API server does not come back: {error}"),
                        "see journalctl -u kube-apiserver there; the other masters are as they were",
                    )
                })
            }
            Before::Etcd(healthy) => {
                step("waiting for all members of etcd to be healthy");
                let mut wanted = healthy.clone();
                wanted.insert(machine.clone());
                let begin = Instant::now();
                loop {
                    let healthy = self.healthy_members().await;
                    if wanted.is_subset(&healthy) {
                        return Ok(());
                    }
                    if begin.elapsed() > limit {
                        let missing = wanted.difference(&healthy).map(ToString::to_string);
                        let missing: Vec<_> = missing.collect();
                        return Err(not_back(
                            &format!(
                                "and {} s later etcd is not healthy on {}",
                                limit.as_secs(),
                                NameList(&missing)
                            ),
                            "see journalctl -u etcd there; members that come after it are as they were",
                        ));
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn members(&self) -> Vec<Name> {
        let members = self.context.cluster.etcds();
        members.map(|node| node.name.clone()).collect()
    }

    fn is_silent(&self, machine: &Name) -> bool {
        self.context.observed.is_silent(machine)
    }

    /// Members that say they are healthy, which they do only while there is a majority.
    async fn healthy_members(&self) -> BTreeSet<Name> {
        let members = self.members().into_iter();
        let members = members.filter(|name| !self.is_silent(name));
        let Some((host, port)) = health_address(self.context.cluster) else {
            // Nobody can be asked; systemd at least waits until a member has joined the others.
            return members.collect();
        };
        let host = host.as_str();
        let asked = members.map(|name| async move {
            let answer = timeout(ANSWER, self.ask_health(&name, host, port, "/health")).await;
            let is_healthy = matches!(answer, Ok(Some(text)) if says_healthy(&text) == Some(true));
            is_healthy.then_some(name)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn has_healthy_kubelet(&self, machine: &Name) -> bool {
        let port = kubelet_port(self.context.cluster);
        let answer = self.ask_health(machine, "127.0.0.1", port, "/healthz");
        answer.await.is_some_and(|text| is_ok(&text))
    }

    /// What a service on a machine answers.
    async fn ask_health(
        &self,
        machine: &Name,
        host: &str,
        port: u16,
        path: &str,
    ) -> Option<Vec<u8>> {
        let connection = self.machine(machine).ok()?.connection().await.ok()?;
        let mut stream = connection.forward(host, port).await.ok()?;
        let question = format!("GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n");
        stream.write_all(question.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer).await.ok()?;
        Some(answer)
    }
}

fn not_back(what: &str, remedy: &str) -> TaskError {
    TaskError::Failed(Cause::new(
        format!("restarted, {what}"),
        Some(remedy.to_owned()),
    ))
}

/// The port of the kubelets' health endpoint: 10248 unless the user sets another.
fn kubelet_port(cluster: &Cluster) -> u16 {
    let user = cluster.extra_args.get(&Component::Kubelet);
    let mut arguments = user.into_iter().flat_map(Arguments::iter);
    let port = arguments.find_map(|(name, value)| {
        let is_it = name.trim_start_matches('-') == "healthz-port";
        is_it.then(|| value.parse().ok()).flatten()
    });
    port.unwrap_or(10_248)
}

/// Whether an answer of `/healthz` says that all is well.
fn is_ok(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let mut words = text.split_ascii_whitespace();
    words.next().is_some_and(|word| word.starts_with("HTTP/")) && words.next() == Some("200")
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
fn refuse_member(count: usize, healthy: &BTreeSet<Name>, member: &Name) -> Option<String> {
    let left = healthy.iter().filter(|one| *one != member).count();
    let harms = healthy.contains(member) && healthy.len() < count && 2 * left <= count;
    harms.then(|| format!("this restart would leave {left} of {count} members"))
}

/// Why a master may not be restarted: it would not come back without etcd.
fn refuse_master(count: usize, healthy: usize) -> Option<String> {
    (2 * healthy <= count).then(|| format!("{healthy} of {count} members are not a majority"))
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    #[test]
    fn a_restart_never_takes_the_majority_away() {
        let name = |number: &usize| Name::parse(&format!("m{number}")).unwrap();
        let refuse = |count, healthy: &[usize], member| {
            refuse_member(count, &healthy.iter().map(name).collect(), &name(&member))
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
    fn a_kubelet_is_well_when_it_says_so() {
        assert!(is_ok(b"HTTP/1.0 200 OK\r\n\r\nok"));
        for bad in [
            &b"HTTP/1.0 500 Internal Server Error\r\n\r\nok"[..],
            b"",
            b"200",
            b"ok 200",
        ] {
            assert!(!is_ok(bad), "{bad:?}");
        }
        let port = |arguments: &str| {
            let text = format!(
                "cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: []\n{arguments}"
            );
            let reading = read(Input::private("deploy.yaml", text.as_bytes()));
            let said = reading.diagnostics.render(false);
            kubelet_port(&reading.cluster.expect(&said))
        };
        assert_eq!(port(""), 10_248);
        let other =
            "config-extra-args: [{name: kubelet, extra-args: {'--healthz-port': '10249'}}]\n";
        assert_eq!(port(other), 10_249);
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
