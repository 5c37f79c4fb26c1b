//! Asks many machines at once what they are like. A machine that hangs keeps nobody waiting but itself.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use hatchery_host::{
    facts::Facts,
    machine::{Error, Machine, Managed},
};

/// What a machine answered.
pub type Reply = Result<(Facts, Managed), Error>;

/// How machines are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskOptions {
    /// So many at the same time; at least one.
    pub parallel: usize,
    /// Each has so long, from its turn on.
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

/// Asks every machine for its facts; nothing is changed anywhere. `heard` is told of each answer as it comes, with the
/// machine's place in the list. Returns the answers in the machines' order.
pub async fn ask(
    machines: &[Machine],
    options: AskOptions,
    mut heard: impl FnMut(usize, &Reply),
) -> Vec<Reply> {
    let mut answers: Vec<Option<Reply>> = machines.iter().map(|_| None).collect();
    let questions = machines
        .iter()
        .enumerate()
        .map(|(place, machine)| async move {
            let reply = machine.facts(options.deadline).await;
            if !options.stay {
                let _ = tokio::time::timeout(GOODBYE, machine.disconnect()).await;
            }
            (place, reply)
        });
    let mut replies = stream::iter(questions).buffer_unordered(options.parallel.max(1));
    while let Some((place, reply)) = replies.next().await {
        heard(place, &reply);
        answers[place] = Some(reply);
    }
    answers.into_iter().flatten().collect()
}
