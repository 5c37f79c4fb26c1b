//! A plan in a file: what was shown is what is done, or nothing is.
//!
//! The file says what the plan was made from and what it would change, not how: it holds no secrets and nothing that is executed.
//! `deploy --plan` looks at everything again, and goes on only when it would do the same.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use hatchery_engine::{
    diff::Part,
    session::{Planned, Session},
};
use serde::{Deserialize, Serialize};

use crate::{
    cluster_file::{Given, GoodFile},
    output::Refused,
    plan::{self, look},
};

/// The form of these files.
const FORMAT: u32 = 1;
/// No plan is longer.
const LARGEST: u64 = 64 << 20;

/// A plan that was shown.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedPlan {
    format: u32,
    /// Which release of Hatchery made it: another one may mean something else by the same words.
    hatchery: String,
    cluster: String,
    /// The id of the cluster, where it exists.
    uid: Option<String>,
    kubernetes: String,
    /// Where the deploy file is, and its variables.
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    vars: Option<PathBuf>,
    /// What stood in them.
    file_hash: String,
    /// The wanted state of all machines and of the API, also where it is reached already.
    plan_hash: String,
    parts: Vec<Part>,
    #[serde(skip)]
    path: PathBuf,
}

impl SavedPlan {
    /// The plan as it is now.
    pub(crate) fn new(
        session: &Session,
        file: &GoodFile,
        planned: &Planned,
        parts: &[Part],
    ) -> Option<Self> {
        let (path, vars) = file.paths.as_ref()?;
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Some(Self {
            format: FORMAT,
            hatchery: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: session.id().to_string(),
            uid: session.record().map(|record| record.uid().to_owned()),
            kubernetes: planned.wanted.versions.kubernetes.to_string(),
            file: absolute(path),
            vars: vars.as_ref().map(absolute),
            file_hash: file.file.hash(),
            plan_hash: planned.plan.hash(),
            parts: parts
                .iter()
                .filter(|part| !part.is_empty())
                .cloned()
                .collect(),
            path: PathBuf::new(),
        })
    }

    /// Reads the file that `plan --save` wrote.
    pub(crate) fn read(path: &Path) -> Result<Self, Refused> {
        let shown = path.display();
        let cannot = |reason: String| {
            Refused::new(format!("cannot read the plan {shown}: {reason}"))
                .remedy("name a file that 'plan --save' has written")
        };
        let facts = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
        if !facts.is_file() || facts.len() > LARGEST {
            return Err(cannot("it is not a plan".to_owned()));
        }
        let bytes = fs::read(path).map_err(|error| cannot(error.to_string()))?;
        let mut plan: Self =
            serde_json::from_slice(&bytes).map_err(|error| cannot(error.to_string()))?;
        if plan.format != FORMAT || plan.hatchery != env!("CARGO_PKG_VERSION") {
            let refused = Refused::new(format!(
                "the plan {shown} was made by Hatchery {}, and this is {}",
                plan.hatchery,
                env!("CARGO_PKG_VERSION")
            ));
            return Err(refused.remedy("make it again with 'plan --save'"));
        }
        plan.path = path.to_owned();
        Ok(plan)
    }

    /// The deploy file that it was made from.
    pub(crate) fn given(&self) -> Given {
        Given::at(self.file.clone(), self.vars.clone())
    }

    /// Writes it, wholly or not at all, for this user alone.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let shown = path.display();
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let write = || -> std::io::Result<()> {
            // Made with mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().with_context(|| format!("cannot write the plan {shown}"))
    }

    /// Refuses whatever is not exactly this plan.
    pub(crate) async fn agree(
        &self,
        session: &Session,
        file: &GoodFile,
        planned: &Planned,
    ) -> anyhow::Result<()> {
        let (diff, _) = look(session, planned).await?;
        let now = Self::new(session, file, planned, &diff.parts);
        let differences = match &now {
            Some(now) => self.differences(now),
            None => vec!["it was made from a file, and this is none".to_owned()],
        };
        if differences.is_empty() {
            return Ok(());
        }
        let refused = Refused::new(format!(
            "something has changed since the plan {} was made; nothing was changed:\n  {}",
            self.path.display(),
            differences.join("\n  ")
        ));
        let remedy = "look at it again with 'plan --save', and deploy that";
        Err(refused.remedy(remedy).into())
    }

    /// What another plan says otherwise, a sentence each.
    fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, then: &str, now: &str| {
            if then != now {
                differences.push(format!("{what} was {then} and is {now}"));
            }
        };
        let uid = |uid: &Option<String>| uid.clone().unwrap_or("not made yet".into());
        compare("the cluster", &self.cluster, &now.cluster);
        compare("its id", &uid(&self.uid), &uid(&now.uid));
        compare("Kubernetes", &self.kubernetes, &now.kubernetes);
        if self.file_hash != now.file_hash {
            differences.push(format!(
                "the deploy file {} was edited",
                self.file.display()
            ));
        }
        let lines = |parts: &[Part]| -> Vec<String> {
            let lines = parts.iter().flat_map(|part| {
                let subject = part.machine.as_deref().unwrap_or("API");
                plan::lines(part)
                    .into_iter()
                    .map(move |line| format!("{subject}: {}: {line}", part.title))
            });
            lines.collect()
        };
        let (then, now_lines) = (lines(&self.parts), lines(&now.parts));
        let more = now_lines.iter().filter(|line| !then.contains(line));
        differences.extend(more.map(|line| format!("new: {line}")));
        let less = then.iter().filter(|line| !now_lines.contains(line));
        differences.extend(less.map(|line| format!("no longer: {line}")));
        if differences.is_empty() && (&self.plan_hash, &self.parts) != (&now.plan_hash, &now.parts)
        {
            differences.push("the wanted state of the machines has changed".to_owned());
        }
        differences
    }
}
