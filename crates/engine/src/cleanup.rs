//! Takes a cluster away from its machines: each is put back as it was found.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use hatchery_host::{
    machine::{Error, Machine, Managed, Undone},
    path::Word,
    script::Identity,
};
use hatchery_spec::value::Name;

use crate::components::pods;

/// What became of one machine.
pub type Cleaned = Result<Undone, Error>;

/// One machine has so long.
const DEADLINE: Duration = Duration::from_secs(600);

/// Puts every machine back, so many at the same time. `heard` is told of each as it is done, by its place.
pub async fn clean(
    machines: &[Arc<Machine>],
    parallel: usize,
    mut heard: impl FnMut(usize, &Cleaned),
) -> Vec<Cleaned> {
    let mut results: Vec<Option<Cleaned>> = machines.iter().map(|_| None).collect();
    let work = machines
        .iter()
        .enumerate()
        .map(|(place, machine)| async move {
            let cleaned = one(machine).await;
            machine.disconnect().await;
            (place, cleaned)
        });
    let mut done = stream::iter(work).buffer_unordered(parallel.max(1));
    while let Some((place, cleaned)) = done.next().await {
        heard(place, &cleaned);
        results[place] = Some(cleaned);
    }
    results.into_iter().flatten().collect()
}

/// Pods first: while they run, nothing below them can go.
async fn one(machine: &Machine) -> Cleaned {
    let mut undone = Undone::default();
    if let Ok(owner) = Word::new(pods::OWNER) {
        let first = machine.undo(&[owner], DEADLINE).await?;
        undone.restored.extend(first.restored);
        undone.kept.extend(first.kept);
    }
    let rest = machine.undo(&[], DEADLINE).await?;
    undone.restored.extend(rest.restored);
    undone.kept.extend(rest.kept);
    undone.left = rest.left;
    Ok(undone)
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
    use super::*;

    fn held(by: Option<(&str, &str)>) -> Managed {
        Managed {
            cluster: by.map(|(id, name)| (id.to_owned(), name.to_owned())),
            resources: Vec::new(),
        }
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
