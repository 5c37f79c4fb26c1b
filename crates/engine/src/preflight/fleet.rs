//! What machines must not share, and what they must: themselves, and the time.

use std::{collections::BTreeMap, time::Duration};

use hatchery_host::facts::Clock;

use super::{
    Severity::{self, Error, Warning},
    subject::Subject,
};
use crate::finding::{Finding, Findings};

/// Events and logs of machines farther apart cannot be put in order.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// Tokens are accepted a minute before they begin, certificates five.
const CLOCKS_BREAK: Duration = Duration::from_secs(60);

pub(super) fn check(subjects: &[Subject<'_>], findings: &mut Findings) {
    duplicates(subjects, findings);
    clocks(subjects, findings);
}

/// Groups of machines for which a value is the same, with the value.
fn shared<'a>(
    subjects: &[Subject<'a>],
    value: impl Fn(&Subject<'a>) -> Option<String>,
) -> Vec<(String, Vec<String>)> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for subject in subjects {
        if let Some(value) = value(subject) {
            groups.entry(value).or_default().push(subject.name());
        }
    }
    groups
        .into_iter()
        .filter(|(_, machines)| machines.len() > 1)
        .collect()
}

fn duplicates(subjects: &[Subject<'_>], findings: &mut Findings) {
    let mut say = |(severity, code), machines, message: String, remedy: &str| {
        findings.add(Finding {
            severity,
            code,
            machines,
            message,
            remedy: Some(remedy.to_owned()),
        });
    };
    let same = shared(subjects, |subject| {
        let identity = &subject.facts.identity;
        let macs: Vec<_> = subject
            .facts
            .interfaces
            .iter()
            .flatten()
            .filter_map(|i| i.mac.clone())
            .collect();
        Some(format!(
            "{} {} {macs:?}",
            identity.machine_id.as_ref()?,
            identity.boot_id.as_ref()?
        ))
    });
    let one: Vec<String> = same
        .iter()
        .flat_map(|(_, machines)| machines.clone())
        .collect();
    for (_, machines) in same {
        say(
            (Error, "same-machine"),
            machines,
            "are one and the same machine".to_owned(),
            "give each machine once in the file, with one address",
        );
    }
    let others: Vec<_> = subjects
        .iter()
        .filter(|subject| !one.contains(&subject.name()))
        .copied()
        .collect();
    for (id, machines) in shared(&others, |subject| subject.facts.identity.machine_id.clone()) {
        say(
            (Warning, "machine-id"),
            machines,
            format!("share the machine-id {id}"),
            "on each clone: rm /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup; then reboot",
        );
    }
    let uuid = |subject: &Subject<'_>| {
        // Containers show that of the machine they run on.
        let real = !subject.facts.confinement.is_container();
        subject.facts.identity.product_uuid.clone().filter(|_| real)
    };
    for (uuid, machines) in shared(&others, uuid) {
        say(
            (Warning, "product-uuid"),
            machines,
            format!("share the product UUID {uuid}"),
            "give each virtual machine a UUID of its own",
        );
    }
    for (mac, machines) in shared(&others, mac) {
        say(
            (Warning, "mac"),
            machines,
            format!(
                "share the hardware address {mac}, so that on one network only one of them is reached"
            ),
            "give each network interface an address of its own",
        );
    }
    let hostname = |subject: &Subject<'_>| {
        let stays = !subject.node.set_hostname;
        subject.facts.names.hostname.clone().filter(|_| stays)
    };
    for (name, machines) in shared(&others, hostname) {
        say(
            (Warning, "hostname"),
            machines,
            format!("are all called {name}"),
            "give each a host name of its own: hostnamectl set-hostname NAME",
        );
    }
}

/// The hardware address behind the machine's own address.
fn mac(subject: &Subject<'_>) -> Option<String> {
    let mut interfaces = subject.facts.interfaces.iter().flatten();
    let own = |address: &hatchery_host::facts::Address| address.address == subject.node.address;
    interfaces
        .find(|interface| interface.addresses.iter().any(own))?
        .mac
        .clone()
}

fn clocks(subjects: &[Subject<'_>], findings: &mut Findings) {
    let clocks: Vec<(&Subject<'_>, &Clock)> = subjects
        .iter()
        .filter_map(|subject| Some((subject, subject.facts.clock.as_ref()?)))
        .collect();
    let ends = |clock: &Clock| {
        let uncertainty = i64::try_from(clock.uncertainty_micros).unwrap_or(i64::MAX);
        (
            clock.ahead_micros.saturating_sub(uncertainty),
            clock.ahead_micros.saturating_add(uncertainty),
        )
    };
    // The certain distance between the fastest and the slowest.
    let fastest = clocks.iter().max_by_key(|(_, clock)| ends(clock).0);
    let slowest = clocks.iter().min_by_key(|(_, clock)| ends(clock).1);
    let spread = fastest.zip(slowest).map_or(0, |(fastest, slowest)| {
        ends(fastest.1).0.saturating_sub(ends(slowest.1).1).max(0)
    });
    let agree = clocks.len() > 1 && Duration::from_micros(spread.unsigned_abs()) <= CLOCKS_DIFFER;
    for (subject, clock) in &clocks {
        let Some(severity) = severity(|limit| clock.is_off_by_more_than(limit)) else {
            continue;
        };
        let direction = if clock.ahead_micros > 0 {
            "ahead of"
        } else {
            "behind"
        };
        let remedy = if agree {
            "the machines agree, so set the clock of this machine (chrony, systemd-timesyncd)"
        } else {
            "let all machines and this one follow the same time server (chrony, systemd-timesyncd)"
        };
        let off = span(clock.ahead_micros.unsigned_abs());
        subject.say(
            findings,
            (severity, "clock"),
            format!("has a clock {off} {direction} this machine's"),
            remedy,
        );
    }
    if findings.has("clock") {
        return;
    }
    let apart = |limit: Duration| Duration::from_micros(spread.unsigned_abs()) > limit;
    if let (Some(severity), Some((fastest, _)), Some((slowest, _))) =
        (severity(apart), fastest, slowest)
    {
        findings.add(Finding {
            severity,
            code: "clock",
            machines: vec![fastest.name(), slowest.name()],
            message: format!("have clocks {} apart", span(spread.unsigned_abs())),
            remedy: Some(
                "let all machines follow the same time server (chrony, systemd-timesyncd)"
                    .to_owned(),
            ),
        });
    }
}

fn severity(is_more_than: impl Fn(Duration) -> bool) -> Option<Severity> {
    if is_more_than(CLOCKS_BREAK) {
        Some(Error)
    } else if is_more_than(CLOCKS_DIFFER) {
        Some(Warning)
    } else {
        None
    }
}

/// A span of time for people.
fn span(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
