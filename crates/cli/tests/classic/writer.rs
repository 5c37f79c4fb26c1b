//! Somebody who writes all the time, and remembers what the API has acknowledged.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use hatchery_sandbox::{docker, lab::Machine};
use tokio::time::sleep;

use crate::bench::{inside, kubectl};

/// Every object has a name of its own, so that a request without an answer is not made twice. `acknowledged` has a line for
/// each that was made: its number, and when.
const LOOP: &str = r#"
cd /tmp/writer
n=0
while [ ! -e stop ]; do
  n=$((n + 1))
  code=$(curl -s -o answer -w '%{http_code}' --max-time 5 --cacert ca.crt --cert admin.crt --key admin.key \
    -H 'Content-Type: application/json' -d '{"metadata": {"name": "written-'$n'"}}' \
    https://ENDPOINT/api/v1/namespaces/default/configmaps)
  [ "$code" != 201 ] || echo "$n $(date +%s.%N)" >>acknowledged
  sleep 0.05
done
touch ended
"#;

pub(crate) struct Writer {
    machine: Machine,
}

impl Writer {
    /// Writes from this machine, as a master's administrator.
    pub(crate) async fn begin(machine: &Machine, master: &Machine, endpoint: &str) -> Self {
        inside(
            machine,
            "mkdir -p /tmp/writer && : >/tmp/writer/acknowledged",
        )
        .await;
        for file in ["ca.crt", "admin.crt", "admin.key"] {
            let text = inside(master, &format!("cat /etc/kubernetes/pki/{file}")).await;
            let put = format!("cat >/tmp/writer/{file}");
            let container = machine.container();
            let arguments = ["exec", "-i", &container, "bash", "-c", &put];
            docker::run_with_input(&arguments, text.as_bytes())
                .await
                .unwrap();
        }
        let script = LOOP.replace("ENDPOINT", endpoint);
        docker::run(&["exec", "-d", &machine.container(), "bash", "-c", &script])
            .await
            .unwrap();
        Self {
            machine: machine.clone(),
        }
    }

    async fn acknowledged(&self) -> Vec<(u64, f64)> {
        let text = inside(&self.machine, "cat /tmp/writer/acknowledged").await;
        let line = |line: &str| {
            let (number, time) = line.split_once(' ').unwrap();
            (number.parse().unwrap(), time.parse().unwrap())
        };
        text.lines().map(line).collect()
    }

    /// Waits until ten more are acknowledged than there are now; no longer than this.
    pub(crate) async fn goes_on(&self, within: Duration) {
        let before = self.acknowledged().await.len();
        let begin = Instant::now();
        while self.acknowledged().await.len() < before + 10 {
            assert!(begin.elapsed() < within, "nothing is written any more");
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Ends the writer and counts: everything acknowledged is there, as another machine sees it.
    pub(crate) async fn lost_nothing(self, from: &Machine) {
        let stop = "touch /tmp/writer/stop; until [ -e /tmp/writer/ended ]; do sleep 0.2; done";
        inside(&self.machine, stop).await;
        let acknowledged = self.acknowledged().await;
        let gap = acknowledged.windows(2).map(|two| two[1].1 - two[0].1);
        let gap = gap.fold(0.0, f64::max);
        eprintln!(
            "{} writes acknowledged, at most {gap:.1} s between two",
            acknowledged.len()
        );
        let there = kubectl(from, "get configmaps -o name").await;
        let there: BTreeSet<u64> = there
            .lines()
            .filter_map(|name| name.strip_prefix("configmap/written-")?.parse().ok())
            .collect();
        let lost = acknowledged.iter().map(|(number, _)| *number);
        let lost: Vec<_> = lost.filter(|number| !there.contains(number)).collect();
        assert!(acknowledged.len() > 50, "{}", acknowledged.len());
        assert!(lost.is_empty(), "lost: {lost:?}");
        inside(&self.machine, "rm -r /tmp/writer").await;
    }
}
