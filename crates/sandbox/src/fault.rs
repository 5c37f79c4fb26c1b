//! Faults: what happens to machines in a data centre, done to one of the sandbox.

use std::{fmt, str::FromStr, time::Duration};

use serde::Deserialize;
use snafu::{OptionExt as _, Snafu, ensure};
use tokio::process::Command;

use crate::{
    boot::{self, Booting, KnownHosts},
    docker, error,
    inventory::{Inventory, State},
    lab::Lab,
    name, packages,
};

/// What can happen to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power fails: everything on it ends at once, nothing is saved.
    Stop,
    /// The power is back; returns when the machine is ready.
    Start,
    /// All its processes are frozen.
    Pause,
    /// It goes on after a freeze.
    Resume,
    /// The cable is pulled: the machine keeps its address and routes. Ended by a start too.
    Cut,
    /// The cable is back.
    Heal,
    /// Slow the network down in both directions. Ended by a start too.
    Slow(Slowness),
    /// Restore the network's normal speed.
    Normal,
}

/// How slow the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowness {
    /// The maximum rate in each direction.
    pub rate: Option<Rate>,
    /// The additional round trip time. Requires a kernel with netem.
    pub delay: Option<Duration>,
}

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u64);

/// The text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display(
    "'{text}' is not a rate: use a number with kbit, mbit or gbit, at least 8kbit, for example 1mbit"
))]
pub struct InvalidRate {
    text: String,
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "kbit" => 1_000,
            "mbit" => 1_000_000,
            "gbit" => 1_000_000_000,
            _ => 0,
        };
        let number: Option<u64> = digits.parse().ok();
        let bits = number
            .and_then(|number| number.checked_mul(factor))
            .unwrap_or(0);
        ensure!(bits >= 8_000, InvalidRateSnafu { text });
        Ok(Self(bits))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit", self.0)
    }
}

/// Why a fault could not be made or ended.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("{machine} is {}", state.word()))]
    State {
        machine: String,
        state: State,
        first: &'static str,
    },
    #[snafu(display("cannot find the network link of {machine}"))]
    NoLink { machine: String },
    #[snafu(display("this kernel cannot delay packets: it has no netem (CONFIG_NET_SCH_NETEM)"))]
    NoDelay,
    #[snafu(display("a slow network needs a rate or a delay"))]
    NotSlow,
    #[snafu(display("{command} failed: {message}"))]
    Host { command: String, message: String },
    #[snafu(transparent)]
    Docker { source: docker::Error },
}

impl Error {
    /// Whether nothing was touched.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::State { .. } | Self::NoDelay | Self::NotSlow)
    }

    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::State {
                state: State::Unfinished,
                ..
            } => Some("run 'hatchery sandbox up' to complete it".into()),
            Self::State { machine, first, .. } => Some(format!(
                "run 'hatchery sandbox fault {first} {machine}' first"
            )),
            Self::NoDelay => Some("limit the rate alone: --rate 1mbit".into()),
            Self::NotSlow => {
                Some("give --rate, for example 1mbit, or --delay, for example 100ms".into())
            }
            Self::Docker { source } => source.remedy(),
            Self::NoLink { .. } | Self::Host { .. } => None,
        }
    }
}

impl Lab {
    /// Causes or ends a fault. Repeating it changes nothing.
    pub async fn fault(&self, machine: &str, fault: Fault) -> Result<(), error::Error> {
        let machine = self.machine(machine)?.name.clone();
        let own = Inventory::read(Some(self.name.as_str())).await?;
        let state = own.container(&machine).map_or(State::Stopped, |c| c.state);
        let container = name::container(&machine);
        match (fault, state) {
            (Fault::Stop, State::Running | State::Paused) => {
                docker::run(&["kill", "--signal=KILL", &container]).await?;
                // `kill` returns before the container has ended.
                docker::run(&["wait", &container]).await?;
            }
            (Fault::Start, State::Stopped) => {
                docker::run(&["start", &container]).await?;
                self.wait_for(&machine).await?;
            }
            (Fault::Start | Fault::Resume, State::Paused) => {
                docker::run(&["unpause", &container]).await?;
            }
            (Fault::Pause, State::Running) => {
                docker::run(&["pause", &container]).await?;
            }
            (Fault::Stop, State::Stopped)
            | (Fault::Start | Fault::Resume, State::Running)
            | (Fault::Pause, State::Paused) => {}
            (Fault::Cut, State::Running) => set_link(&machine, "down").await?,
            (Fault::Heal, State::Running) => set_link(&machine, "up").await?,
            (Fault::Slow(slowness), State::Running) => slow(&machine, slowness).await?,
            (Fault::Normal, State::Running) => normal(&machine).await?,
            (_, State::Paused) => return Err(refuse(&machine, state, "resume").into()),
            (_, State::Stopped | State::Unfinished) => {
                return Err(refuse(&machine, state, "start").into());
            }
        }
        Ok(())
    }

    async fn wait_for(&self, machine: &str) -> Result<(), error::Error> {
        let access = self.directory.ensure_access(self.name.as_str()).await?;
        let booting = Booting {
            machine,
            address: self.machine(machine)?.address,
            user: &self.settings.user,
            access: &access,
            known_hosts: &KnownHosts::open(&self.directory)?,
            within: boot::deadline(1),
            fresh: false,
        };
        // Units that fail after a power cut are what a test of faults wants to see.
        booting.wait().await.map(drop)
    }
}

fn refuse(machine: &str, state: State, first: &'static str) -> Error {
    Error::State {
        machine: machine.to_owned(),
        state,
        first,
    }
}

/// Ends a cut, if there is one.
pub(crate) async fn heal_if_cut(machine: &str) -> Result<(), Error> {
    let link = host_link(machine).await?;
    if !link.flags.iter().any(|flag| flag == "UP") {
        on_host(machine, &["ip", "link", "set", "dev", &link.ifname, "up"]).await?;
    }
    Ok(())
}

async fn set_link(machine: &str, to: &str) -> Result<(), Error> {
    let link = host_link(machine).await?;
    on_host(machine, &["ip", "link", "set", "dev", &link.ifname, to])
        .await
        .map(drop)
}

/// One end of a pair of links, as reported by `ip -json link`.
#[derive(Debug, Deserialize)]
struct Link {
    ifindex: u32,
    ifname: String,
    #[serde(default)]
    flags: Vec<String>,
}

/// The host's end of the machine's cable.
async fn host_link(machine: &str) -> Result<Link, Error> {
    let container = name::container(machine);
    let peer = docker::run(&["exec", &container, "cat", "/sys/class/net/eth0/iflink"]).await?;
    let peer: u32 = peer.trim().parse().ok().context(NoLinkSnafu { machine })?;
    let links = on_host(machine, &["ip", "-json", "link", "show", "type", "veth"]).await?;
    find_link(&links, peer).context(NoLinkSnafu { machine })
}

fn find_link(links: &str, index: u32) -> Option<Link> {
    // iproute2 puts empty objects where its filter left something out.
    let links: Vec<serde_json::Value> = serde_json::from_str(links).ok()?;
    links
        .into_iter()
        .filter_map(|link| serde_json::from_value::<Link>(link).ok())
        .find(|link| link.ifindex == index)
}

/// Runs `ip` or `tc` in the host's network, directly or, without the right to, in a container
/// of the machine's image that shares that network.
async fn on_host(machine: &str, command: &[&str]) -> Result<String, Error> {
    if !(packages::is_root() && packages::has_program(command[0])) {
        let image = docker::run(&[
            "inspect",
            "--format",
            "{{.Image}}",
            &name::container(machine),
        ])
        .await?;
        let mut arguments = vec![
            "run",
            "--rm",
            "--network=host",
            "--cap-drop=ALL",
            "--cap-add=NET_ADMIN",
            image.trim(),
        ];
        arguments.extend(command);
        return Ok(docker::run(&arguments).await?);
    }
    tracing::debug!("{}", command.join(" "));
    let text = command.join(" ");
    let failed = |message: String| HostSnafu {
        command: &text,
        message,
    };
    let output = Command::new(command[0]).args(&command[1..]).output().await;
    let output = output.map_err(|error| failed(error.to_string()).build())?;
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), failed(message));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The queueing discipline for one direction. netem does both; tbf, in every kernel, only
/// limits the rate.
fn discipline(slowness: Slowness) -> Result<Vec<String>, Error> {
    let words = |text: String| text.split(' ').map(str::to_owned).collect();
    // Half of a round trip in each direction.
    let delay = slowness
        .delay
        .map(|delay| format!("delay {}us", delay.as_micros() / 2));
    match (delay, slowness.rate) {
        (Some(delay), Some(rate)) => Ok(words(format!("netem {delay} rate {rate}"))),
        (Some(delay), None) => Ok(words(format!("netem {delay}"))),
        // The burst holds a few full packets, also those that the sender merged.
        (None, Some(rate)) => Ok(words(format!("tbf rate {rate} burst 64kb latency 400ms"))),
        (None, None) => NotSlowSnafu.fail(),
    }
}

async fn slow(machine: &str, slowness: Slowness) -> Result<(), Error> {
    let discipline = discipline(slowness)?;
    let link = host_link(machine).await?;
    let mut to_machine = vec!["tc", "qdisc", "replace", "dev", &link.ifname, "root"];
    to_machine.extend(discipline.iter().map(String::as_str));
    match on_host(machine, &to_machine).await {
        Err(Error::Host { message, .. }) if message.contains("qdisc kind is unknown") => {
            return NoDelaySnafu.fail();
        }
        Err(Error::Docker { source }) if source.mentions("qdisc kind is unknown") => {
            return NoDelaySnafu.fail();
        }
        result => result?,
    };
    let container = name::container(machine);
    let mut from_machine = vec![
        "exec", &container, "tc", "qdisc", "replace", "dev", "eth0", "root",
    ];
    from_machine.extend(discipline.iter().map(String::as_str));
    docker::run(&from_machine).await?;
    Ok(())
}

async fn normal(machine: &str) -> Result<(), Error> {
    let link = host_link(machine).await?;
    let container = name::container(machine);
    let to_machine = on_host(
        machine,
        &["tc", "qdisc", "del", "dev", &link.ifname, "root"],
    )
    .await;
    let from_machine = docker::run(&[
        "exec", &container, "tc", "qdisc", "del", "dev", "eth0", "root",
    ])
    .await;
    // There is nothing to delete on a link that was never slow.
    let nothing =
        |message: &str| message.contains("No such file") || message.contains("handle of zero");
    match to_machine {
        Err(Error::Host { message, .. }) if nothing(&message) => {}
        Err(Error::Docker { source }) if nothing(&source.to_string()) => {}
        result => drop(result?),
    }
    match from_machine {
        Err(error) if nothing(&error.to_string()) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!("1mbit".parse(), Ok(Rate(1_000_000)));
        assert_eq!("500kbit".parse::<Rate>().unwrap().to_string(), "500000bit");
        for bad in [
            "",
            "1",
            "mbit",
            "1 mbit",
            "1kbit",
            "-1mbit",
            "0mbit",
            "1mbit;id",
            "99999999999999gbit",
        ] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_host_s_end_is_found_by_its_index() {
        let links = r#"[{},{"ifindex":7,"ifname":"veth1","flags":["BROADCAST","UP"]},{"ifindex":9,"ifname":"veth2","flags":[]}]"#;
        assert_eq!(find_link(links, 9).unwrap().ifname, "veth2");
        assert!(find_link(links, 8).is_none());
        assert!(find_link("", 8).is_none());
    }

    #[test]
    fn a_delay_is_shared_by_both_directions() {
        let delay = Some(Duration::from_millis(100));
        let words = |rate, delay| discipline(Slowness { rate, delay }).unwrap().join(" ");
        assert_eq!(words(None, delay), "netem delay 50000us");
        assert_eq!(
            words(Some(Rate(8000)), delay),
            "netem delay 50000us rate 8000bit"
        );
        assert!(words(Some(Rate(8000)), None).starts_with("tbf rate 8000bit"));
        assert!(
            discipline(Slowness {
                rate: None,
                delay: None
            })
            .is_err()
        );
    }
}
