//! What runs in a machine's pods ends with the machine's time in the cluster.
//!
//! Containers, their mounts, network devices and packet filter rules are made by others (the runtime, plugins,
//! kube-proxy) while the cluster lives. When it is made, only what is there already is listed; when it goes, they go, but
//! for what that list names.

use std::time::Duration;

use hatchery_host::operation::Script;

use super::{NodeContext, network_plugin, runtime};
use crate::resource::{Error, Resources, word};

/// The list. What others have may be called as Kubernetes calls its own.
pub(crate) const MARK: &str = "/var/lib/hatchery/before";
const ENDING: &str = "/var/lib/hatchery/pods";
const DEADLINE: Duration = Duration::from_secs(120);

/// Lists what is there of networks, runtimes and plugins.
fn around() -> String {
    let (runtimes, plugins) = (runtime::before(), network_plugin::before());
    runtimes + &plugins + include_str!("pods_before.sh")
}

/// Ends pods; stands behind [`around`].
fn end() -> String {
    let (runtimes, plugins) = (runtime::end(), network_plugin::end());
    runtimes + &plugins + include_str!("pods.sh")
}

/// Lists what is there before the first package: a package may start its service at once. When everything that was
/// started has been stopped again, what runtimes leave in memory is removed.
pub(crate) fn before(resources: &mut Resources) -> Result<(), Error> {
    let around = around();
    resources.script(Script {
        name: word("look-around")?,
        check: format!("[ -e {MARK} ]"),
        // A release before this list had its own in the other place; now everything of the cluster would be on it.
        apply: format!(
            "{around}if [ -s {ENDING} ]; then cat {ENDING}; else around; fi >{MARK}.new && mv {MARK}.new {MARK}"
        ),
        undo: format!(
            "mark={MARK}\n[ -e {MARK} ] || exit 0\n{around}remove_runtimes\nrm -f {MARK}\n"
        ),
        deadline: DEADLINE,
    });
    Ok(())
}

/// Adds to the list which runtime the pods run in: at the end only what that one left is removed.
pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let kind = node_context.cluster.runtime.kind.name;
    let listed = format!("grep -qsx 'runtime {kind}' {MARK}");
    resources.script(Script {
        name: word("pods")?,
        check: format!("[ -e {ENDING} ] && {listed}"),
        apply: format!(
            "[ -e {MARK} ] && {{ {listed} || echo 'runtime {kind}' >>{MARK}; }} && : >{ENDING}"
        ),
        // Without the list nobody can tell whose a thing is.
        undo: format!(
            "mark={MARK}\n[ -e {MARK} ] || exit 0\n{}{}rm -f {ENDING}\n",
            around(),
            end()
        ),
        deadline: DEADLINE,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use hatchery_host::operation::Operation;

    use super::*;
    use crate::{components::trial::Trial, resource::Resource};

    #[test]
    fn what_runtimes_and_plugins_say_is_one_script() {
        let text = around() + &end();
        for shell in ["sh", "bash"] {
            let mut shell = std::process::Command::new(shell);
            assert!(shell.args(["-nc", &text]).status().unwrap().success());
        }
    }

    #[test]
    fn the_list_of_an_earlier_release_is_carried_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut all = Resources::default();
        before(&mut all).unwrap();
        let [Resource::Operation(Operation::Script(script))] = &all.0[..] else {
            panic!("{all:?}")
        };
        let own = directory.path().display().to_string();
        let listed = |earlier: &str| {
            std::fs::write(directory.path().join("pods"), earlier).unwrap();
            let text = script.apply.replace("/var/lib/hatchery", &own);
            let mut shell = std::process::Command::new("sh");
            assert!(shell.args(["-c", &text]).status().unwrap().success());
            std::fs::read_to_string(directory.path().join("before")).unwrap()
        };
        assert_eq!(listed("link theirs\n"), "link theirs\n");
        assert!(listed("").contains("link lo\n"));
    }

    #[test]
    fn the_list_names_the_runtime_of_the_pods() {
        for (kind, line) in [
            ("docker", "runtime docker\n"),
            ("isulad", "runtime isulad\n"),
            ("containerd", "runtime containerd\n"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let trial = Trial::new(20, &format!("runtime: {kind}"));
            let mut all = Resources::default();
            resources(&trial.node_context(), &mut all).unwrap();
            let [Resource::Operation(Operation::Script(script))] = &all.0[..] else {
                panic!("{all:?}")
            };
            let own = directory.path().display().to_string();
            let run = |text: &str| {
                let text = text.replace("/var/lib/hatchery", &own);
                let mut shell = std::process::Command::new("sh");
                shell.args(["-c", &text]).status().unwrap().success()
            };
            // Without a list everything would seem to be the pods'.
            assert!(!run(&script.check) && !run(&script.apply));
            std::fs::write(directory.path().join("before"), "link lo\n").unwrap();
            assert!(run(&script.apply) && run(&script.check) && run(&script.apply));
            let list = std::fs::read_to_string(directory.path().join("before")).unwrap();
            assert_eq!(list, format!("link lo\n{line}"));
        }
    }
}
