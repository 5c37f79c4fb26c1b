//! Asks many machines concurrently for their facts. A machine that does not answer delays no other.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use hatchery_host::{
    facts::Facts,
    machine::{Error, Managed},
};
use hatchery_spec::value::Name;

use crate::{api_access::Machines, observed::Observed};

/// What a machine answered.
pub type Reply = Result<(Facts, Managed), Error>;

/// How machines are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskOptions {
    /// The maximum number of machines asked concurrently; at least one.
    pub parallel: usize,
    /// The timeout for each machine, from its turn on.
    pub deadline: Duration,
    /// Whether the connections stay for what comes next.
    pub stay: bool,
}

impl Default for AskOptions {
    fn default() -> Self {
        Self {
            parallel: 32,
            deadline: Duration::from_secs(20),
            stay: false,
        }
    }
}

/// Saying goodbye may take no longer.
const GOODBYE: Duration = Duration::from_secs(1);

/// Asks every machine for its facts; nothing is changed anywhere. `on_reply` is called for each answer as it comes.
pub async fn ask(
    machines: &Machines,
    options: AskOptions,
    mut on_reply: impl FnMut(&Name, &Reply),
) -> Observed {
    let questions: Vec<_> = machines
        .iter()
        .map(|(name, machine)| {
            let (name, machine) = (name.clone(), Arc::clone(machine));
            async move {
                let reply = machine.facts(options.deadline).await;
                if !options.stay {
                    let _ = tokio::time::timeout(GOODBYE, machine.disconnect()).await;
                }
                (name, reply)
            }
        })
        .collect();
    let mut replies = stream::iter(questions).buffer_unordered(options.parallel.max(1));
    let mut all = Vec::new();
    while let Some((name, reply)) = replies.next().await {
        on_reply(&name, &reply);
        all.push((name, reply));
    }
    Observed::new(all)
}
