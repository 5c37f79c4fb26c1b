//! `list`: the clusters of this home, each asked whether it is well.

use std::{path::Path, process::ExitCode, time::Duration};

use futures::{StreamExt as _, stream};
use hatchery_engine::{
    state::{self, DeployFile, Key, Listed},
    status::Status,
};
use serde_json::json;

use crate::{cluster_file, output::Output, refusal, template::number};

/// The time that a machine, or the API, has to answer.
const DEADLINE: Duration = Duration::from_secs(8);
/// The maximum number of clusters examined concurrently; each asks many machines.
const CLUSTERS: usize = 4;

/// A cluster as it is shown.
struct Row {
    name: String,
    machines: usize,
    /// What was found out, or why nothing could be.
    found: Result<Status, String>,
}

pub(crate) async fn run(home: Option<&Path>, output: &Output) -> anyhow::Result<ExitCode> {
    let stores = cluster_file::stores(home)?;
    let listed = state::list(stores.as_ref()).await;
    let listed = listed.map_err(|error| refusal::state(&error))?;
    let rows = listed.into_iter().map(|one| look(one, home));
    let rows: Vec<Row> = stream::iter(rows).buffered(CLUSTERS).collect().await;
    if output.json() {
        output.print_json(&rows.iter().map(Row::document).collect());
    } else if rows.is_empty() {
        eprintln!(
            "no clusters; '{} deploy -f FILE' makes one",
            output.program()
        );
    } else {
        output.print(&table(&rows));
    }
    Ok(ExitCode::SUCCESS)
}

async fn look(listed: Listed, home: Option<&Path>) -> Row {
    let mut row = Row {
        name: listed.name.to_string(),
        machines: 0,
        found: Err(String::new()),
    };
    row.found = async {
        listed.record.map_err(|error| error.to_string())?;
        let session = cluster_file::open(home, &listed.name).await;
        let session = session.map_err(|refused| refused.to_string())?;
        let file = DeployFile::latest(session.store()).await;
        let file = file
            .map_err(|error| error.to_string())?
            .ok_or("its deploy file is not remembered: it was never deployed")?;
        let cluster = file.cluster().ok_or_else(|| {
            let place = session.store().place(Key::DEPLOY_FILE);
            format!("its deploy file is no longer valid: check -f {place}")
        })?;
        row.machines = cluster.machines().len();
        session.status(&cluster, DEADLINE).await
    }
    .await;
    row
}

impl Row {
    fn document(&self) -> serde_json::Value {
        let mut document = json!({"name": self.name, "machines": self.machines});
        match &self.found {
            Ok(status) => {
                document["apiAnswers"] = status.silence.is_none().into();
                document["status"] = json!(status);
            }
            Err(reason) => document["problem"] = reason.clone().into(),
        }
        document
    }

    fn cells(&self) -> [String; 6] {
        let dash = || "-".to_owned();
        match &self.found {
            Err(_) => [self.name.clone(), dash(), dash(), dash(), dash(), dash()],
            Ok(status) => {
                let nodes = match status.silence {
                    None => format!("{}/{} ready", status.ready, status.nodes),
                    Some(_) => dash(),
                };
                let until = status.certificates_until;
                [
                    self.name.clone(),
                    status.kubernetes.clone().unwrap_or_else(dash),
                    if status.silence.is_none() {
                        "answers"
                    } else {
                        "silent"
                    }
                    .to_owned(),
                    nodes,
                    until.map_or_else(dash, |until| format!("until {}", until.date())),
                    format!("{}/{} reached", status.reached, self.machines),
                ]
            }
        }
    }

    /// Why something is not known.
    fn reason(&self) -> Option<&str> {
        match &self.found {
            Ok(status) => status.silence.as_deref(),
            Err(reason) => Some(reason),
        }
    }
}

const HEAD: [&str; 6] = [
    "NAME",
    "KUBERNETES",
    "API",
    "NODES",
    "CERTIFICATES",
    "MACHINES",
];

/// For people, in columns, with what is wrong below.
fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().enumerate().map(|(place, cell)| {
            let width = lines.iter().map(|line| line[place].chars().count());
            let width = width.max().unwrap_or(0);
            format!("{cell:<width$}")
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    for row in rows {
        if let Some(reason) = row.reason() {
            text += &format!("{}: {reason}\n", row.name);
        }
    }
    if rows.len() > 1 {
        text += &format!("{}\n", number(rows.len(), "cluster"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_with_what_is_wrong_below() {
        let well = Status {
            kubernetes: Some("v1.34.1".into()),
            silence: None,
            ready: 2,
            nodes: 3,
            reached: 3,
            certificates_until: Some(time::macros::datetime!(2027-11-16 03:00 UTC)),
        };
        let row = |name: &str, found| Row {
            name: name.into(),
            machines: 3,
            found,
        };
        let silent = Status {
            silence: Some("no answer within 8 s".into()),
            reached: 0,
            ..Status::default()
        };
        let rows = [
            row("lab", Ok(well)),
            row("production", Ok(silent)),
            row("x", Err("damaged".into())),
        ];
        assert_eq!(
            table(&rows),
            "\
NAME        KUBERNETES  API      NODES      CERTIFICATES      MACHINES
lab         v1.34.1     answers  2/3 ready  until 2027-11-16  3/3 reached
production  -           silent   -          -                 0/3 reached
x           -           -        -          -                 -
production: no answer within 8 s
x: damaged
3 clusters
"
        );
    }
}
