//! What a plan says and what a run did, in a form that can be held against each other.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::bench::Bench;

/// Tasks in which something changes: the machine's number, none for the API, and the task's title.
pub(crate) type Tasks = BTreeSet<(Option<usize>, String)>;

/// Tasks about a node, which the API does: events tell them with the machine's name.
const OF_NODES: [&str; 3] = ["node ready", "drain", "delete node"];

/// What a plan says.
pub(crate) struct Planned {
    /// Such as `1 changed unit kubelet.service`, with `API` in place of a machine's number.
    pub(crate) lines: BTreeSet<String>,
    pub(crate) tasks: Tasks,
}

/// The machines among these.
pub(crate) fn machines(tasks: &Tasks) -> Vec<usize> {
    let numbers: BTreeSet<_> = tasks.iter().filter_map(|(number, _)| *number).collect();
    numbers.into_iter().collect()
}

impl Bench {
    fn number(&self, name: &Value) -> Option<usize> {
        let name = name.as_str()?;
        let mut machines = self.lab.machines.iter();
        Some(machines.position(|one| one.name == name).unwrap())
    }

    /// What `plan` says of this file.
    pub(crate) fn planned(&self, file: &Path) -> Planned {
        let said = self.hatchery_with(0, "plan -o json", file);
        let line = said.lines().find(|line| line.starts_with('{')).unwrap();
        let plan: Value = serde_json::from_str(line).unwrap();
        let mut planned = Planned {
            lines: BTreeSet::new(),
            tasks: Tasks::new(),
        };
        for part in plan["parts"].as_array().unwrap() {
            assert_eq!(part["later"], Value::Null, "{part}");
            let number = self.number(&part["machine"]);
            let on = number.map_or("API".to_owned(), |number| number.to_string());
            for change in part["changes"].as_array().unwrap() {
                let (kind, what) = (&change["kind"], &change["what"]);
                let (kind, what) = (kind.as_str().unwrap(), what.as_str().unwrap());
                planned.lines.insert(format!("{on} {kind} {what}"));
                let title = part["title"].as_str().unwrap().to_owned();
                planned.tasks.insert((number, title));
            }
        }
        planned
    }

    /// What the events of a run with `-o json` say that it changed.
    pub(crate) fn changed(&self, said: &str) -> Tasks {
        let events = said
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let finished = events.filter(|event| event["event"] == "finished" && event["changes"] != 0);
        let tasks = finished.map(|event| match event["title"].as_str().unwrap() {
            // A plan tells of all nodes in one part.
            "node ready" => (None, "nodes ready".to_owned()),
            title if OF_NODES.contains(&title) => (None, title.to_owned()),
            title => (self.number(&event["machine"]), title.to_owned()),
        });
        // It is told with the node that goes.
        tasks.filter(|(_, title)| title != "drain").collect()
    }

    /// The plan is exactly this, `deploy` changes just what it says, and there is nothing to do afterwards.
    pub(crate) fn follows(&self, what: &str, file: &Path, lines: &BTreeSet<String>) {
        let planned = self.planned(file);
        assert_eq!(planned.lines, *lines, "{what}: the plan");
        let otherwise = self.does(file, &planned);
        assert!(otherwise.is_empty(), "{what}: {otherwise:#?}");
        println!("{what}: as planned");
    }

    /// `deploy` changes just what is planned, and there is nothing to do afterwards; gives what is not so.
    pub(crate) fn does(&self, file: &Path, planned: &Planned) -> Vec<String> {
        let mut otherwise = Vec::new();
        let done = self.hatchery_with(0, "deploy --yes -o json", file);
        let changed = self.changed(&done);
        let only = |of: &Tasks, not: &Tasks| format!("{:?}", of.difference(not));
        if changed != planned.tasks {
            otherwise.push(format!(
                "changed and not planned: {}; planned and not changed: {}",
                only(&changed, &planned.tasks),
                only(&planned.tasks, &changed)
            ));
        }
        let left = self.planned(file).lines;
        if !left.is_empty() {
            otherwise.push(format!("still to do: {left:?}"));
        }
        otherwise
    }

    /// What is remembered of the cluster, with each file's size, without logs of runs.
    pub(crate) fn state(&self) -> Vec<(String, u64)> {
        let directory = self.home().join("clusters").join(&self.id);
        let mut files = Vec::new();
        let mut directories = vec![directory.clone()];
        while let Some(here) = directories.pop() {
            for entry in fs::read_dir(here).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&directory).unwrap();
                match path.is_dir() {
                    true if name == Path::new("runs") => {}
                    true => directories.push(path),
                    false => files.push((
                        name.display().to_string(),
                        fs::metadata(&path).unwrap().len(),
                    )),
                }
            }
        }
        files.sort();
        files
    }
}
