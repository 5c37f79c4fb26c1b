//! A hash by which plans are compared: equal for plans that would do the same.

use std::fmt::Write as _;

use hatchery_host::content::Hash;

use super::{ApiWork, Plan, Work};

impl Plan {
    /// A hash of the wanted state of machines and of the API. It covers the sums of files, and secrets and certificates only as
    /// far as they are asked for.
    pub fn hash(&self) -> String {
        let mut text = String::new();
        for task in &self.tasks {
            // Nothing fails that writes into a string.
            let _ = writeln!(text, "{task} {:?} {:?}", task.needs, task.after);
            match &task.work {
                Work::Machine {
                    owner, resources, ..
                } => {
                    let _ = writeln!(text, "{owner}");
                    for resource in resources {
                        let _ = writeln!(text, "{resource:?}");
                    }
                }
                Work::Release { released, .. } => {
                    let _ = writeln!(text, "{released:?}");
                }
                Work::BeforeUndo { .. } | Work::Undo { .. } => {}
                Work::Api(work) => write_api_work(&mut text, work),
            }
        }
        Hash::digest(text.as_bytes()).as_str().to_owned()
    }
}

fn write_api_work(text: &mut String, work: &ApiWork) {
    let _ = match work {
        ApiWork::Apply(manifests) => {
            for manifest in manifests {
                let objects = serde_json::to_string(&manifest.objects);
                let _ = writeln!(text, "{} {}", manifest.name, objects.unwrap_or_default());
            }
            Ok(())
        }
        other => writeln!(text, "{other:?}"),
    };
}
