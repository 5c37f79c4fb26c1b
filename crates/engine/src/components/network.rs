//! What the pods' network leaves on a machine, whatever its plugin.

use std::time::Duration;

use hatchery_host::operation::Script;
use hatchery_spec::value::AbsolutePath;

use super::{NodeContext, network_plugin};
use crate::resource::{Error, Resources, word};

/// What plugins leave on a machine belongs to the cluster.
pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    for directory in ["/etc/cni/net.d", "/var/lib/cni"] {
        resources.own_directory(directory, 0o755)?;
    }
    let dirs = &node_context.cluster.runtime.cni_bin_dirs;
    let (own, shared): (Vec<_>, Vec<_>) = dirs
        .iter()
        .map(AbsolutePath::as_str)
        .partition(|dir| is_for_plugins(dir));
    for directory in own {
        resources.own_directory(directory, 0o755)?;
    }
    if shared.is_empty() {
        return Ok(());
    }
    resources.script(plugins_in(&shared)?);
    Ok(())
}

/// Whether a directory holds plugins and nothing else, such as `/opt/cni/bin` and `/usr/libexec/cni`. What comes into it
/// while the cluster lives is the cluster's; into `/usr/local/bin` anybody may put a program.
fn is_for_plugins(directory: &str) -> bool {
    directory.split('/').any(|part| part == "cni")
}

/// In directories that hold other programs too, only plugins that came with the cluster go with it. Programs out of the
/// user's packages are in the machine's record by themselves.
fn plugins_in(directories: &[&str]) -> Result<Script, Error> {
    const MARK: &str = "/var/lib/hatchery/plugins";
    const PLUGINS: &str = include_str!("plugins.sh");
    let words = directories
        .iter()
        .map(|directory| format!("'{}'", directory.replace('\'', "'\\''")));
    let words = words.collect::<Vec<_>>().join(" ");
    let programs = network_plugin::ALL.iter().flat_map(|one| one.programs());
    let programs: Vec<_> = programs.copied().collect();
    let programs = programs.join(" ");
    Ok(Script {
        name: word("plugins")?,
        check: format!("[ -e {MARK} ]"),
        apply: format!("{PLUGINS}list {words} >{MARK}.new && mv {MARK}.new {MARK}"),
        undo: format!(
            "mark={MARK}\n[ -e {MARK} ] || exit 0\nprograms='{programs}'\n{PLUGINS}remove {words}\nrm -f {MARK}\n"
        ),
        deadline: Duration::from_secs(60),
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

    use hatchery_host::operation::Operation;

    use super::*;
    use crate::{components::trial::Trial, resource::Resource};

    /// Directories that a component owns, and its scripts.
    fn wanted(cni_bin_dir: &str) -> (Vec<String>, Vec<Script>) {
        let trial = Trial::new(
            28,
            &format!("runtime: containerd\ncni-bin-dir: {cni_bin_dir}"),
        );
        let mut all = Resources::default();
        resources(&trial.node_context(), &mut all).unwrap();
        let (mut directories, mut scripts) = (Vec::new(), Vec::new());
        for resource in all.0 {
            match resource {
                Resource::Operation(Operation::Directory(one)) if one.contents_are_ours => {
                    directories.push(one.path.to_string());
                }
                Resource::Operation(Operation::Script(script)) => scripts.push(script),
                other => panic!("{other:?}"),
            }
        }
        (directories, scripts)
    }

    #[test]
    fn only_directories_for_plugins_are_emptied() {
        let always = ["/etc/cni/net.d", "/var/lib/cni"];
        let (directories, scripts) = wanted("/opt/cni/bin,/usr/libexec/cni");
        assert_eq!(directories[..2], always);
        assert_eq!(directories[2..], ["/opt/cni/bin", "/usr/libexec/cni"]);
        assert!(scripts.is_empty());
        let (directories, scripts) = wanted("/usr/local/bin,/opt/cni/bin");
        assert_eq!(directories[..2], always);
        assert_eq!(directories[2..], ["/opt/cni/bin"]);
        assert_eq!(scripts.len(), 1);
        assert!(scripts[0].undo.contains("remove '/usr/local/bin'\n"));
    }

    #[test]
    fn of_a_shared_directory_only_plugins_that_came_go() {
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            let place = tempfile::tempdir().unwrap();
            let (bin, made) = (place.path().join("it's bin"), place.path().join("deep/er"));
            let put = |name: &str, text: &str| fs::write(bin.join(name), text).unwrap();
            let run = |script: &str| {
                let script = script.replace("/var/lib/hatchery", place.path().to_str().unwrap());
                let mut command = Command::new(shell[0]);
                command.args(&shell[1..]).args(["-c", &script]);
                assert!(command.status().unwrap().success(), "{shell:?}");
            };
            let script = plugins_in(&[bin.to_str().unwrap(), made.to_str().unwrap()]).unwrap();
            fs::create_dir(&bin).unwrap();
            put("bridge", "theirs, getenv CNI_COMMAND");
            put("tool", "theirs");
            run(&script.apply);
            assert!(made.is_dir());

            for plugin in ["flannel", "calico", "calico-ipam", "loopback"] {
                put(plugin, "\u{7f}ELF\0\u{1}CNI_COMMAND\0");
            }
            put(
                "install",
                "#!/bin/sh\n: ${CNI_CONF_NAME:=10-calico.conflist}\n",
            );
            symlink("/opt/cni/bin/other", bin.join("other")).unwrap();
            // Somebody else's since, some of them called like plugins.
            put("firewall", "theirs");
            put("my tool", "theirs");
            symlink("/opt/tool/bin/linked", bin.join("linked")).unwrap();
            run(&script.undo);

            let mut left: Vec<_> = fs::read_dir(&bin)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            let expected = ["bridge", "firewall", "linked", "my tool", "tool"];
            assert_eq!(left, expected, "{shell:?}");
            assert!(!Path::new(&place.path().join("deep")).exists());
            // What was undone in part is undone again.
            run(&script.undo);
        }
    }
}
