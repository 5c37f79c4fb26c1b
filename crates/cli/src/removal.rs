//! The user's word for machines that are to leave a cluster.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;
use hatchery_engine::name_list::NameList;
use hatchery_spec::Cluster;

use crate::{output::Refused, template::number};

/// What the user says beforehand.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Removal {
    /// Do not ask before machines are removed that the file no longer names
    #[arg(short, long)]
    yes: bool,
    /// Remove up to N machines that the file no longer names, without asking
    #[arg(long, value_name = "N")]
    allow_removal: Option<usize>,
}

impl Removal {
    /// Where the machines that leave are what the user asks for.
    pub(crate) const ASKED_FOR: Self = Self {
        yes: true,
        allow_removal: None,
    };

    /// Whether the machines that leave may do so. Asks on a terminal; elsewhere the user has to have said it.
    pub(crate) fn agreed(&self, cluster: &Cluster) -> anyhow::Result<bool> {
        let names: Vec<_> = cluster
            .leaving()
            .iter()
            .map(|one| one.name.to_string())
            .collect();
        let allowed = self.allow_removal.unwrap_or(0);
        if self.yes || names.len() <= allowed {
            return Ok(true);
        }
        let question = format!(
            "{} that the file no longer names {} removed from cluster {}: {}",
            number(names.len(), "machine"),
            if names.len() == 1 { "is" } else { "are" },
            cluster.id,
            NameList(&names)
        );
        if self.allow_removal.is_some() || !io::stdin().is_terminal() {
            let refused = Refused::new(question);
            let remedy = format!(
                "put back what was left out, or say --yes or --allow-removal {}",
                names.len()
            );
            return Err(refused.remedy(remedy).into());
        }
        eprint!(
            "{question}. Their pods move to other nodes, and the machines are put back as they were. Go on? [y/N] "
        );
        io::stderr().flush().ok();
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        read.context("cannot read the answer")?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}
