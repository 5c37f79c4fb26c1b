//! Scripts that the command line names, run on the machines of a role before and after a command.
//!
//! eggo's flags `--cluster-prehook`, `--cluster-posthook`, `--prehook` and `--posthook` take `PATH[,ROLE]`. What eggo
//! demanded of a script is demanded here too, but for its mode: eggo wanted exactly 0750. Unlike scripts of the deploy
//! file (`type: shell`) these run each time the command does, and nothing of them stays on a machine.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use futures::{StreamExt as _, stream};
use hatchery_host::machine::{self, OneOff};
use hatchery_spec::{
    Cluster,
    cluster::{Machine as Node, Role},
    value::Name,
};
use snafu::Snafu;

use crate::{api_access::Machines, components::hooks};

/// The timeout of one script, as eggo's.
const LIMIT: Duration = Duration::from_secs(120);
/// No script is bigger.
const LARGEST: u64 = 1 << 20;

/// What a flag says: `PATH[,ROLE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFlag {
    path: PathBuf,
    role: Option<Role>,
}

/// Why a flag cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{message}"))]
pub struct Problem {
    message: String,
    /// What to do about it.
    pub remedy: String,
}

fn problem(message: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem {
        message: message.into(),
        remedy: remedy.into(),
    }
}

impl FromStr for HookFlag {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut parts = text.split(',');
        let path = parts.next().unwrap_or_default();
        let role = match parts.next() {
            None => None,
            Some("master") => Some(Role::Master),
            Some("worker" | "node") => Some(Role::Worker),
            Some("etcd") => Some(Role::Etcd),
            Some("loadbalance") => Some(Role::LoadBalancer),
            Some(other) => {
                return Err(problem(
                    format!("{other:?} is not a role"),
                    "write PATH,ROLE with one of master, worker, etcd and loadbalance",
                ));
            }
        };
        if parts.next().is_some() {
            return Err(problem(
                format!("{text:?} has more than one comma"),
                "write PATH or PATH,ROLE; a path with a comma in it cannot be given",
            ));
        }
        if !path.starts_with('/') {
            return Err(problem(
                format!("{path:?} is not an absolute path"),
                "write the whole path, beginning with /",
            ));
        }
        Ok(Self {
            path: PathBuf::from(path),
            role,
        })
    }
}

/// The scripts of a flag, read.
#[derive(Clone, Debug)]
pub struct CommandHook {
    role: Option<Role>,
    scripts: Vec<OneOff>,
    /// What lies in the directory and is not run, each with the reason.
    pub skipped: Vec<String>,
}

impl HookFlag {
    /// Reads the script, or all scripts that lie directly in the directory, in the order of their names.
    ///
    /// # Errors
    /// When the script cannot be used, or when the directory holds none that can.
    pub fn load(&self) -> Result<CommandHook, Problem> {
        let path = &self.path;
        let facts = fs::metadata(path).map_err(|error| {
            problem(
                format!("cannot read {}: {}", path.display(), reason(&error)),
                "correct the path",
            )
        })?;
        let mut skipped = Vec::new();
        let mut scripts = Vec::new();
        if facts.is_dir() {
            for entry in entries(path)? {
                match script(&entry) {
                    Ok(script) => scripts.push(script),
                    Err(wrong) => skipped.push(format!("{}: {}", entry.display(), wrong.0)),
                }
            }
            if scripts.is_empty() {
                let found = match skipped.as_slice() {
                    [] => "it is empty".to_owned(),
                    reasons => reasons.join("; "),
                };
                return Err(problem(
                    format!(
                        "{} holds no script that can be run: {found}",
                        path.display()
                    ),
                    "put scripts there that end in .sh or .bash, are yours, executable for you and writable for nobody else",
                ));
            }
        } else {
            let wrong =
                |wrong: Unusable| problem(format!("{}: {}", path.display(), wrong.0), wrong.1);
            scripts.push(script(path).map_err(wrong)?);
        }
        Ok(CommandHook {
            role: self.role,
            scripts,
            skipped,
        })
    }
}

/// Why a file is not run, and what to do about it.
struct Unusable(String, &'static str);

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Problem> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(directory)?;
        let mut paths = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    };
    read().map_err(|error| {
        problem(
            format!("cannot read {}: {}", directory.display(), reason(&error)),
            "make the directory readable",
        )
    })
}

fn script(path: &Path) -> Result<OneOff, Unusable> {
    let unreadable = |error: io::Error| Unusable(reason(&error), "make the file readable");
    let facts = fs::metadata(path).map_err(unreadable)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        return Err(Unusable(
            "its name is not valid UTF-8".into(),
            "give it another name",
        ));
    };
    check_script(path, &facts)?;
    let bytes = fs::read(path).map_err(unreadable)?;
    Ok(OneOff {
        name: name.to_owned(),
        bytes,
    })
}

fn check_script(path: &Path, facts: &Metadata) -> Result<(), Unusable> {
    let mode = facts.permissions().mode() & 0o777;
    let ours = facts.uid() == rustix::process::geteuid().as_raw()
        || facts.gid() == rustix::process::getegid().as_raw();
    let extension = path.extension().and_then(|extension| extension.to_str());
    let unusable = |message: &str, remedy| Err(Unusable(message.to_owned(), remedy));
    if !facts.is_file() {
        return unusable("it is not a regular file", "name a script");
    }
    if !matches!(extension, Some("sh" | "bash")) {
        return unusable(
            "its name does not end in .sh or .bash",
            "give it such a name",
        );
    }
    match facts.len() {
        0 => return unusable("it is empty", "write something into it"),
        1..=LARGEST => {}
        _ => return unusable("it is larger than 1 MiB", "split it"),
    }
    if !ours {
        return unusable(
            "it belongs neither to this user nor to this user's group",
            "make it yours with chown",
        );
    }
    // Whoever may write it would be root on every machine.
    if mode & 0o022 != 0 {
        return unusable("others than its owner may write it", "chmod 750");
    }
    if mode & 0o100 == 0 {
        return unusable("its owner may not execute it", "chmod 750");
    }
    Ok(())
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        _ => error.to_string(),
    }
}

/// When scripts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the command's own work.
    Before,
    /// After the command's own work.
    After,
}

/// For which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `deploy`.
    Deploy,
    /// `cleanup`.
    Cleanup,
    /// `join`.
    Join,
    /// `delete`.
    Delete,
}

impl CommandHook {
    /// Runs the scripts on every machine of their role that is not left out, on a limited number concurrently, and returns what
    /// failed where.
    pub async fn run(
        &self,
        cluster: &Cluster,
        machines: &Machines,
        without: &BTreeSet<Name>,
        operator: Operator,
        moment: Moment,
        parallel: usize,
    ) -> Vec<machine::Error> {
        let kind = match moment {
            Moment::Before => "prehook",
            Moment::After => "posthook",
        };
        let operator = match operator {
            Operator::Deploy => "deploy",
            Operator::Cleanup => "cleanup",
            Operator::Join => "join",
            Operator::Delete => "delete",
        };
        let is_meant = |node: &Node| match self.role {
            Some(role) => node.is(role),
            // Of machines that come or go, all are meant.
            None => matches!(operator, "join" | "delete") || node.is(Role::Master),
        };
        let nodes = cluster.all_machines();
        let nodes = nodes.filter(|node| is_meant(node) && !without.contains(&node.name));
        let nodes = nodes.filter_map(|node| Some((node, machines.get(&node.name)?)));
        let work: Vec<_> = nodes
            .map(|(node, machine)| async move {
                let variables = hooks::variables(cluster, node, kind, operator).into_iter();
                let environment: Vec<_> = variables
                    .flat_map(|(name, value)| {
                        ["EGGO", "HATCHERY"]
                            .map(|prefix| (format!("{prefix}_{name}"), value.clone()))
                    })
                    .collect();
                let ran = machine.run_once(&self.scripts, &environment, LIMIT).await;
                ran.err()
            })
            .collect();
        let results = stream::iter(work).buffer_unordered(parallel.max(1));
        results.filter_map(async |failed| failed).collect().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hatchery_host::machine::Machine;

    use super::*;

    fn said(text: &str) -> String {
        text.parse::<HookFlag>().unwrap_err().to_string()
    }

    #[test]
    fn flags_are_a_path_and_perhaps_a_role() {
        let flag = |text: &str| text.parse::<HookFlag>().unwrap();
        assert_eq!(flag("/a/b.sh").role, None);
        assert_eq!(flag("/a/b.sh").path, Path::new("/a/b.sh"));
        assert_eq!(flag("/a,worker").role, Some(Role::Worker));
        assert_eq!(flag("/a,etcd").role, Some(Role::Etcd));
        assert_eq!(flag("/a,loadbalance").role, Some(Role::LoadBalancer));
        assert_eq!(said("a.sh"), "\"a.sh\" is not an absolute path");
        assert_eq!(said(""), "\"\" is not an absolute path");
        assert_eq!(said("/a,slave"), "\"slave\" is not a role");
        assert_eq!(said("/a,etcd,b"), "\"/a,etcd,b\" has more than one comma");
    }

    struct Place(tempfile::TempDir);

    impl Place {
        fn put(&self, name: &str, text: &str, mode: u32) -> String {
            let path = self.0.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path.display().to_string()
        }
    }

    #[test]
    fn each_demand_is_told_by_name() {
        let place = Place(tempfile::tempdir().unwrap());
        let refused = |path: &str| {
            let flag: HookFlag = path.parse().unwrap();
            let said = flag.load().unwrap_err().to_string();
            said.rsplit(": ").next().unwrap().to_owned()
        };
        for mode in [0o750, 0o700, 0o755, 0o550] {
            let good: HookFlag = place.put("good.sh", "echo", mode).parse().unwrap();
            assert_eq!(good.load().unwrap().scripts[0].bytes, b"echo");
        }
        assert_eq!(refused(&place.put("a.sh", "", 0o750)), "it is empty");
        assert_eq!(
            refused(&place.put("a.py", "x", 0o750)),
            "its name does not end in .sh or .bash"
        );
        assert_eq!(
            refused(&place.put("a.sh", "x", 0o640)),
            "its owner may not execute it"
        );
        assert_eq!(
            refused(&place.put("a.sh", "x", 0o770)),
            "others than its owner may write it"
        );
        let large = "x".repeat(1_048_577);
        assert_eq!(
            refused(&place.put("a.sh", &large, 0o750)),
            "it is larger than 1 MiB"
        );
        assert_eq!(refused("/nowhere/a.sh"), "there is no such file");
        assert_eq!(refused("/dev/null"), "it is not a regular file");
    }

    #[test]
    fn a_directory_is_read_one_level_deep_in_order() {
        let place = Place(tempfile::tempdir().unwrap());
        let directory: HookFlag = place.0.path().display().to_string().parse().unwrap();
        let said = directory.load().unwrap_err().to_string();
        assert!(said.ends_with("it is empty"), "{said}");
        fs::create_dir(place.0.path().join("below.sh")).unwrap();
        place.put("note.txt", "x", 0o640);
        let said = directory.load().unwrap_err().to_string();
        assert!(
            said.contains("below.sh: it is not a regular file; ") && said.contains("note.txt: "),
            "{said}"
        );
        place.put("b.sh", "b", 0o750);
        place.put("a.bash", "a", 0o750);
        let hook = directory.load().unwrap();
        let names: Vec<_> = hook.scripts.iter().map(|script| &script.name).collect();
        assert_eq!(names, ["a.bash", "b.sh"]);
        assert_eq!(hook.skipped.len(), 2, "{:?}", hook.skipped);
    }

    /// On this machine, which stands for those of a cluster: two of one role and one of another.
    #[tokio::test]
    async fn scripts_run_on_the_machines_of_their_role_with_eggos_environment() {
        use hatchery_host::{privilege::Privilege, transport::local::Local};
        use hatchery_spec::{Input, read};

        let place = Place(tempfile::tempdir().unwrap());
        let text = "cluster-id: demo\nruntime: containerd\n\
            masters: [{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2}]\nworkers: [{name: w0, ip: 10.0.0.3}]\n\
            apiserver-endpoint: api.example:8443\netcds: [{name: m0, ip: 10.0.0.1}]\n";
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        let cluster = reading.cluster.unwrap();
        let identity = crate::state::nobody(&cluster.id);
        let machine = |node: &Node| {
            let local = Arc::new(Local::new(node.name.as_str()));
            let machine = Machine::new(local, Privilege::Root, identity.clone());
            (node.name.clone(), Arc::new(machine))
        };
        let machines: Machines = cluster.machines().iter().map(machine).collect();
        let out = place.0.path().join("out");
        fs::create_dir(&out).unwrap();
        let script = format!(
            "env | grep -E '^(EGGO|HATCHERY)_(CLUSTER|NODE|HOOK|OPERATOR)' | LC_ALL=C sort >{}/$EGGO_NODE_NAME",
            out.display()
        );
        let run = async |path: String, operator, moment, without: &[&str]| {
            let without = without.iter().map(|name| Name::parse(name).unwrap());
            let without: BTreeSet<_> = without.collect();
            let hook = path.parse::<HookFlag>().unwrap().load().unwrap();
            hook.run(&cluster, &machines, &without, operator, moment, 2)
                .await
        };
        let good = place.put("good.sh", &script, 0o750);
        let failed = run(good.clone(), Operator::Deploy, Moment::Before, &["m1"]).await;
        assert!(failed.is_empty(), "{failed:?}");
        let written = |name: &str| fs::read_to_string(out.join(name));
        // m1 is left out, w0 has another role.
        assert!(written("m1").is_err() && written("w0").is_err());
        insta::assert_snapshot!(written("m0").unwrap());
        let failed = run(
            format!("{good},worker"),
            Operator::Cleanup,
            Moment::After,
            &[],
        )
        .await;
        assert!(failed.is_empty(), "{failed:?}");
        let said = written("w0").unwrap();
        assert!(
            said.contains("EGGO_HOOK_TYPE=posthook\n") && said.contains("EGGO_OPERATOR=cleanup\n"),
            "{said}"
        );
        let bad = place.put("bad.sh", "echo no room on $EGGO_NODE_NAME; exit 3", 0o750);
        let failed = run(bad, Operator::Deploy, Moment::After, &[]).await;
        let mut failed: Vec<_> = failed.iter().map(ToString::to_string).collect();
        failed.sort();
        assert_eq!(
            failed,
            [
                "m0: script bad.sh failed: it ended with 3\nno room on m0",
                "m1: script bad.sh failed: it ended with 3\nno room on m1"
            ]
        );
    }
}
