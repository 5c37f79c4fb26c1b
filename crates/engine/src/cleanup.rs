//! Takes a cluster away from its machines: each is put back as it was found.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use hatchery_host::{
    machine::{Error, Machine, Undone},
    path::Word,
};

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
