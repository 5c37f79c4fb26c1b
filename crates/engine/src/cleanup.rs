//! Takes a cluster away from its machines: each is put back as it was found.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use hatchery_host::{
    machine::{Error, Machine, Managed, Undone},
    path::Word,
    script::Identity,
    transport::{Error as Transport, Unreachable},
};
use hatchery_spec::{Cluster, cluster::Machine as Node, value::Name};

use crate::{
    components::{hooks, pods},
    deployment,
    state::Claim,
};

/// What became of one machine.
pub type Cleaned = Result<Undone, Error>;

/// The machines to be cleaned: those of a deploy file, then those that the cluster has claimed beside them, as remembered
/// files say how they are reached.
///
/// # Errors
/// Claims on machines that no file tells how to reach.
pub fn machines<'a, 'c>(
    file: &'a Cluster,
    remembered: &'a [Cluster],
    claims: &'c [Claim],
) -> Result<Vec<&'a Node>, Vec<&'c Claim>> {
    let mut nodes: Vec<_> = file.machines().iter().collect();
    let mut lost = Vec::new();
    for claim in claims {
        // Under whatever name: it is the same machine.
        if nodes.iter().any(|node| node.address == claim.address) {
            continue;
        }
        match deployment::known(claim, remembered) {
            Some(node) => nodes.push(node),
            None => lost.push(claim),
        }
    }
    match lost.is_empty() {
        true => Ok(nodes),
        false => Err(lost),
    }
}

/// Whether a machine could not be cleaned because nothing at all is where it was. Whatever answers, if only by refusing the
/// connection, may be the machine while it boots or is overloaded: forgotten, it would run on without anybody who has its
/// keys. Nor is one missing behind a bastion that is away.
pub fn is_missing(cleaned: &Cleaned) -> bool {
    let Err(Error::Transport {
        source: Transport::Unreachable { reason, .. },
    }) = cleaned
    else {
        return false;
    };
    *reason != Unreachable::Refused
}

/// Whether a machine has nothing of the cluster: all was put back, or it serves another one today. A machine is held by one
/// cluster at a time, by an id that no other has, so another's has nothing of ours.
pub fn is_clean(cleaned: &Cleaned) -> bool {
    match cleaned {
        Ok(undone) => undone.left.is_empty(),
        Err(error) => matches!(error, Error::Held { .. }),
    }
}

/// Whether the machine did not let anybody in, so that nothing was done there.
pub fn is_unanswered(error: &Error) -> bool {
    let Error::Transport { source } = error else {
        return false;
    };
    matches!(
        source,
        Transport::Unreachable { .. } | Transport::Handshake { .. } | Transport::Deadline { .. }
    )
}

/// One machine has so long.
const DEADLINE: Duration = Duration::from_secs(600);
/// Scripts of the user's have limits of their own.
const HOOKS: Duration = Duration::from_secs(2 * 3600);

/// On whose behalf machines have what they have, but for scripts that wait for the end.
const OWNERS: [&str; 10] = [
    "prepare",
    "prejoin",
    "etcd",
    "load-balancer",
    "master",
    pods::OWNER,
    "runtime",
    "worker",
    "postjoin",
    // What came along with packages of a run that died.
    "unowned",
];

/// Puts every machine back, so many at the same time. `heard` is told of each as it is done, by its place.
///
/// The user's own scripts for this come first, while the whole cluster is there. A machine on which one fails is left as it
/// is: it may have had something to save.
pub async fn clean(
    machines: &[Arc<Machine>],
    parallel: usize,
    mut heard: impl FnMut(usize, &Cleaned),
) -> Vec<Cleaned> {
    let mut results: Vec<Option<Cleaned>> = machines.iter().map(|_| None).collect();
    let places = || machines.iter().enumerate();
    let before = places().map(|(place, machine)| async move { (place, before(machine).await) });
    let mut before = stream::iter(before).buffer_unordered(parallel.max(1));
    while let Some((place, done)) = before.next().await {
        if !done.as_ref().is_ok_and(|undone| undone.left.is_empty()) {
            machines[place].disconnect().await;
            heard(place, &done);
            results[place] = Some(done);
        }
    }
    let work: Vec<_> = places()
        .filter(|(place, _)| results[*place].is_none())
        .map(|(place, machine)| async move {
            let cleaned = one(machine).await;
            machine.disconnect().await;
            (place, cleaned)
        })
        .collect();
    let mut done = stream::iter(work).buffer_unordered(parallel.max(1));
    while let Some((place, cleaned)) = done.next().await {
        heard(place, &cleaned);
        results[place] = Some(cleaned);
    }
    results.into_iter().flatten().collect()
}

/// Puts one machine back that leaves a cluster which stays.
pub(crate) async fn leave(machine: &Machine) -> Cleaned {
    let before = before(machine).await?;
    match before.left.is_empty() {
        true => one(machine).await,
        false => Ok(before),
    }
}

async fn before(machine: &Machine) -> Cleaned {
    machine.undo(&owners(&[hooks::BEFORE]), HOOKS).await
}

/// Pods first: while they run, nothing below them can go. What the user wants to be run afterwards is the last.
async fn one(machine: &Machine) -> Cleaned {
    let mut undone = Undone::default();
    for owners in [owners(&[pods::OWNER]), owners(&OWNERS)] {
        let some = machine.undo(&owners, DEADLINE).await?;
        undone.restored.extend(some.restored);
        undone.kept.extend(some.kept);
        undone.left = some.left;
    }
    // What could not be put back is in the way of what comes after all has been.
    if undone.left.is_empty() {
        let rest = machine.undo(&[], HOOKS).await?;
        undone.restored.extend(rest.restored);
        undone.kept.extend(rest.kept);
        undone.left = rest.left;
    }
    Ok(undone)
}

/// Ours are words.
fn owners(names: &[&str]) -> Vec<Word> {
    names
        .iter()
        .filter_map(|name| Word::new(*name).ok())
        .collect()
}

/// For whom machines are held that say they belong to a cluster of this name, for whoever has lost what was remembered of
/// it. `None` when none of them says so.
///
/// # Errors
/// The ids, when there are several clusters of this name among them.
pub fn holder<'a>(
    name: &Name,
    machines: impl IntoIterator<Item = &'a Managed>,
) -> Result<Option<Identity>, Vec<String>> {
    let mut ids = Vec::new();
    for (id, called) in machines.into_iter().filter_map(|one| one.cluster.as_ref()) {
        if called == name.as_str() && !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    match ids.as_slice() {
        [] => Ok(None),
        [id] => match (Word::new(id.as_str()), Word::new(name.as_str())) {
            (Ok(cluster), Ok(cluster_name)) => Ok(Some(Identity {
                cluster,
                cluster_name,
            })),
            // No id of ours.
            _ => Err(ids),
        },
        _ => Err(ids),
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn held(by: Option<(&str, &str)>) -> Managed {
        Managed {
            cluster: by.map(|(id, name)| (id.to_owned(), name.to_owned())),
            resources: Vec::new(),
        }
    }

    fn lab(machines: &str) -> Cluster {
        let text = format!("cluster-id: lab\nmasters: [{machines}]\n");
        let reading = hatchery_spec::read(hatchery_spec::Input::private("x", text.as_bytes()));
        reading.cluster.unwrap()
    }

    #[test]
    fn what_was_claimed_is_cleaned_beside_what_the_file_names() {
        let made = lab("{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2, user: me, port: 2222}");
        let claims = Claim::on_all(&made);
        let names = |file: &Cluster, remembered: &[Cluster]| {
            let nodes = machines(file, remembered, &claims);
            nodes
                .map(|nodes| {
                    nodes
                        .iter()
                        .map(|node| node.name.to_string())
                        .collect::<Vec<_>>()
                })
                .map_err(|lost| lost.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(names(&made, &[]).unwrap(), ["m0", "m1"]);
        let shorter = lab("{name: m0, ip: 10.0.0.1}");
        assert_eq!(
            names(&shorter, slice::from_ref(&made)).unwrap(),
            ["m0", "m1"]
        );
        assert_eq!(
            names(&shorter, &[]).unwrap_err(),
            ["m1 (me@10.0.0.2, port 2222)"]
        );
        // One machine is cleaned once, whatever it is called.
        let renamed = lab("{name: m0, ip: 10.0.0.1}, {name: x1, ip: 10.0.0.2}");
        assert_eq!(
            names(&renamed, slice::from_ref(&made)).unwrap(),
            ["m0", "x1"]
        );
        let longer = lab("{name: m0, ip: 10.0.0.1}, {name: m9, ip: 10.0.0.9}");
        assert_eq!(
            names(&longer, slice::from_ref(&made)).unwrap(),
            ["m0", "m9", "m1"]
        );
    }

    fn unreachable(reason: Unreachable) -> Transport {
        Transport::Unreachable {
            host: "m0".into(),
            address: "10.0.0.1:22".into(),
            reason,
        }
    }

    fn held_by_another() -> Error {
        Error::Held {
            host: "m0".into(),
            cluster: "a1".into(),
            name: "prod".into(),
        }
    }

    #[test]
    fn only_a_machine_where_nothing_answers_is_missing() {
        let host = || "m0".to_owned();
        let missing = |source| is_missing(&Err(Error::Transport { source }));
        let late = Unreachable::Timeout(Duration::from_secs(10));
        for reason in [Unreachable::NoRoute, late] {
            assert!(missing(unreachable(reason)));
        }
        let there = [
            unreachable(Unreachable::Refused),
            Transport::Handshake {
                host: host(),
                reason: "the other side closes the connection before it says a word".into(),
            },
            Transport::Deadline {
                host: host(),
                step: "logging in",
                after: Duration::from_secs(30),
            },
            Transport::Lost {
                host: host(),
                reason: String::new(),
            },
            Transport::Bastion {
                host: host(),
                bastion: "b".into(),
                source: Box::new(unreachable(Unreachable::NoRoute)),
            },
        ];
        for source in there {
            assert!(!missing(source.clone()), "{source}");
        }
        assert!(!is_missing(&Ok(Undone::default())));
        assert!(!is_missing(&Err(held_by_another())));
    }

    #[test]
    fn a_machine_that_serves_another_cluster_has_nothing_of_this_one() {
        assert!(is_clean(&Ok(Undone::default())));
        assert!(is_clean(&Err(held_by_another())));
        let source = unreachable(Unreachable::NoRoute);
        assert!(!is_clean(&Err(Error::Transport { source })));
    }

    #[test]
    fn a_cluster_is_known_by_what_its_machines_say() {
        let name = Name::parse("lab").unwrap();
        let found = |by: &[Option<(&str, &str)>]| {
            let machines: Vec<_> = by.iter().map(|one| held(*one)).collect();
            holder(&name, &machines).map(|found| found.map(|one| one.cluster.to_string()))
        };
        assert_eq!(found(&[None, None]), Ok(None));
        assert_eq!(found(&[None, Some(("a1", "lab"))]), Ok(Some("a1".into())));
        let two = [Some(("a1", "lab")), Some(("a1", "lab"))];
        assert_eq!(found(&two), Ok(Some("a1".into())));
        // Another cluster's machine stays that cluster's.
        let other = [Some(("b2", "prod")), Some(("a1", "lab"))];
        assert_eq!(found(&other), Ok(Some("a1".into())));
        assert_eq!(found(&other[..1]), Ok(None));
        let both = [Some(("a1", "lab")), Some(("b2", "lab"))];
        assert_eq!(found(&both), Err(vec!["a1".into(), "b2".into()]));
    }
}
