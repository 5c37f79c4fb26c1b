//! A docker that was in use before the cluster came: it keeps its unit, its settings and its containers.
//!
//! Only what a cluster cannot do without is added to its settings, and nothing that would cut its containers off.

use std::time::Duration;

use hatchery_host::{
    content::Hash,
    facts::{DOCKER_SETTINGS, RUNTIME_USE, RuntimeUse},
    operation::Script,
};
use hatchery_spec::cluster::{Arguments, Component};
use serde_json::{Map, Value, json};

use super::{CONFIGURATION, registries, setting};
use crate::{
    components::{NodeContext, runtime::containers},
    resource::{Error, Resources, word},
};

/// The script that has docker read its settings.
pub(super) const SETTINGS: &str = "docker-settings";
const DRIVER: &str = "native.cgroupdriver=";

/// Whether the user allows the cluster to share docker with other users of it.
pub(super) fn is_shared(node_context: &NodeContext<'_>) -> bool {
    node_context.cluster.runtime.allow_existing && node_context.facts.runtime_use.uses_docker()
}

/// Whether the docker that is shared has a unit of its own.
pub(super) fn has_own_unit(node_context: &NodeContext<'_>) -> bool {
    is_shared(node_context) && node_context.facts.runtime_use.docker.unit
}

/// Who makes control groups, where the user has said so.
pub(super) fn driver(node_context: &NodeContext<'_>) -> Option<&'static str> {
    if !is_shared(node_context) {
        return None;
    }
    let theirs = theirs(node_context);
    let options = theirs.get("exec-opts").and_then(Value::as_array)?;
    let said = options.iter().filter_map(Value::as_str);
    match said
        .filter_map(|one| one.strip_prefix(DRIVER))
        .next_back()?
    {
        "systemd" => Some("systemd"),
        "cgroupfs" => Some("cgroupfs"),
        _ => None,
    }
}

/// What a docker with a unit of its own needs.
pub(super) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let wanted = configuration(node_context);
    let loaded = is_loaded(&wanted);
    // The user's may hold a proxy's password.
    resources.file(CONFIGURATION, 0o600, wanted)?;
    let names = format!("use={RUNTIME_USE}\nsettings={DOCKER_SETTINGS}\n");
    resources.script(Script {
        name: word(SETTINGS)?,
        check: format!("systemctl -q is-active docker.service && {loaded}"),
        apply: format!(
            "{names}{}{}",
            include_str!("restart.sh"),
            include_str!("load.sh")
        ),
        // Done when all of the runtime is undone: by then the settings are the user's.
        undo: String::new(),
        deadline: Duration::from_secs(300),
    });
    Ok(())
}

/// A check whether docker has read these settings, and they have not been changed since. It comes before they are written.
fn is_loaded(wanted: &str) -> String {
    let directory = RUNTIME_USE
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory);
    let loaded = format!("{directory}/docker-loaded");
    let hash = Hash::digest(wanted.as_bytes());
    format!(
        "[ \"$(sha256sum 2>/dev/null <{loaded})\" = '{}  -' ] && cmp -s {CONFIGURATION} {loaded}",
        hash.as_str()
    )
}

/// The user's settings of before, as far as they can be read. Preflight refuses the others.
fn theirs(node_context: &NodeContext<'_>) -> Map<String, Value> {
    let text = node_context
        .facts
        .runtime_use
        .docker
        .settings_text
        .as_deref();
    text.and_then(|text| parse(text).ok()).unwrap_or_default()
}

/// What docker was used for.
pub(super) fn uses(before: &RuntimeUse) -> Option<String> {
    if !before.uses_docker() {
        return None;
    }
    let mut uses = Vec::new();
    if before.docker.containers > 0 {
        uses.push(containers(before.docker.containers));
    }
    if before.docker.settings {
        uses.push(format!("settings in {CONFIGURATION}"));
    }
    Some(uses.join(", "))
}

/// Why the user's settings cannot be completed.
pub(super) fn unreadable(before: &RuntimeUse) -> Option<String> {
    match (before.docker.settings, &before.docker.settings_text) {
        (true, None) => Some("it cannot be read".to_owned()),
        (_, Some(text)) => parse(text).err(),
        (false, None) => None,
    }
}

/// Reads a `daemon.json`; docker takes an empty one too.
///
/// # Errors
/// Why it is none.
fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The user's settings with what the cluster needs beside them.
pub(super) fn configuration(node_context: &NodeContext<'_>) -> String {
    let before = &node_context.facts.runtime_use.docker;
    let mut settings = theirs(node_context);
    if before.containers == 0 && !before.unit {
        without_bridge(&mut settings);
    }
    let driver = format!("{DRIVER}{}", node_context.cgroup_driver());
    if let Some(list) = list(&mut settings, "exec-opts") {
        list.retain(|one| !one.as_str().is_some_and(|one| one.starts_with(DRIVER)));
    }
    add(&mut settings, "exec-opts", &[driver]);
    for (name, registries) in registries(node_context) {
        add(&mut settings, name, &registries);
    }
    // Containers outlive restarts. A swarm's cannot.
    if !before.swarm {
        settings.insert("live-restore".into(), json!(true));
    }
    let said = node_context.extra(Component::ContainerEngine);
    for (name, value) in said.into_iter().flat_map(Arguments::iter) {
        argument(&mut settings, name, value);
    }
    // Docker refuses to be told twice.
    for flag in &before.flags {
        settings.remove(setting(flag));
    }
    format!("{:#}\n", Value::Object(settings))
}

/// Where there was no docker, only settings for one, no container of the user's needs docker's own network, whose rules
/// and device would stay behind when docker goes.
fn without_bridge(settings: &mut Map<String, Value>) {
    // Docker refuses an address for a bridge that it shall not make.
    settings.remove("bip");
    settings.insert("bridge".into(), json!("none"));
    settings.insert("iptables".into(), json!(false));
}

fn list<'a>(settings: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Vec<Value>> {
    settings.get_mut(name).and_then(Value::as_array_mut)
}

/// Adds what a list lacks.
fn add(settings: &mut Map<String, Value>, name: &str, more: &[String]) {
    if more.is_empty() {
        return;
    }
    let all = settings.entry(name).or_insert_with(|| json!([]));
    if !all.is_array() {
        *all = json!([]);
    }
    let Value::Array(all) = all else { return };
    for one in more {
        if !all.iter().any(|other| other == one) {
            all.push(json!(one));
        }
    }
}

/// An argument for docker's command line, which is the user's own, as a setting.
fn argument(settings: &mut Map<String, Value>, name: &str, value: &str) {
    let name = setting(name);
    match (name, value.split_once('=')) {
        ("log-opts", Some((option, value))) => {
            let options = settings.entry(name).or_insert_with(|| json!({}));
            if let Value::Object(options) = options {
                options.insert(option.to_owned(), json!(value));
            }
        }
        ("exec-opts" | "registry-mirrors" | "insecure-registries", _) => {
            if value.starts_with(DRIVER)
                && let Some(list) = list(settings, name)
            {
                list.retain(|one| !one.as_str().is_some_and(|one| one.starts_with(DRIVER)));
            }
            add(settings, name, &[value.to_owned()]);
        }
        _ => {
            let value = match value {
                "true" | "" => json!(true),
                "false" => json!(false),
                text => text
                    .parse::<i64>()
                    .map_or_else(|_| json!(text), Value::from),
            };
            settings.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::{runtime, trial::Trial};

    const THEIRS: &str = r#"{"data-root": "/srv/docker", "bip": "172.30.0.1/16", "exec-opts": ["native.cgroupdriver=cgroupfs", "isolation=x"],
        "registry-mirrors": ["https://theirs.example"], "log-driver": "journald"}"#;

    fn trial(more: &str) -> Trial {
        let mut trial = Trial::new(
            20,
            &format!("runtime: docker\nregistry-mirrors: [mirror.example]\n{more}"),
        );
        let docker = &mut trial.facts.runtime_use.docker;
        docker.containers = 1;
        docker.unit = true;
        docker.settings = true;
        docker.settings_text = Some(THEIRS.to_owned());
        trial
    }

    fn merged(trial: &Trial) -> Value {
        serde_json::from_str(&configuration(&trial.node_context())).unwrap()
    }

    #[test]
    fn their_settings_stay_and_what_is_needed_is_added() {
        let trial =
            trial("allow-existing-runtime: true\ninsecure-registries: ['http://plain.example']");
        let settings = merged(&trial);
        assert_eq!(
            settings,
            json!({
                "data-root": "/srv/docker",
                "bip": "172.30.0.1/16",
                "exec-opts": ["isolation=x", "native.cgroupdriver=cgroupfs"],
                "registry-mirrors": ["https://theirs.example", "https://mirror.example"],
                "insecure-registries": ["plain.example"],
                "live-restore": true,
                "log-driver": "journald",
            })
        );
        // The kubelet does as docker does.
        assert_eq!(trial.node_context().cgroup_driver(), "cgroupfs");
    }

    #[test]
    fn the_unit_and_the_data_are_theirs() {
        let mut trial = trial("allow-existing-runtime: true");
        let paths: Vec<_> = trial.paths(runtime::resources).collect();
        for path in ["/etc/systemd/system/docker.service", "/var/lib/docker"] {
            assert!(!paths.contains(&path.to_owned()), "{paths:?}");
        }
        // Where there are but settings, docker is ours and the settings are kept.
        trial.facts.runtime_use.docker.unit = false;
        trial.facts.runtime_use.docker.containers = 0;
        let paths: Vec<_> = trial.paths(runtime::resources).collect();
        assert!(paths.contains(&"/etc/systemd/system/docker.service".to_owned()));
        let settings = merged(&trial);
        assert_eq!(settings["data-root"], "/srv/docker");
        // Nobody needs a bridge of docker's, which would stay behind.
        assert_eq!(
            (&settings["bridge"], &settings["iptables"]),
            (&json!("none"), &json!(false))
        );
        assert_eq!(settings.get("bip"), None);
    }

    #[test]
    fn without_a_word_nothing_is_shared() {
        let trial = trial("");
        assert!(!is_shared(&trial.node_context()));
        assert_eq!(trial.node_context().cgroup_driver(), "systemd");
    }

    #[test]
    fn settings_that_change_are_loaded_in_the_same_run() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        let is_loaded = |wanted: &str| {
            let own = |path: &str| directory.path().join(path).display().to_string();
            let check = is_loaded(wanted)
                .replace(CONFIGURATION, &own("daemon.json"))
                .replace("/var/lib/hatchery/docker-loaded", &own("docker-loaded"));
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &check]).status().unwrap().success()
        };
        assert!(!is_loaded("new"));
        // It is asked before the new file is written.
        put("daemon.json", "old");
        put("docker-loaded", "old");
        assert!(is_loaded("old") && !is_loaded("new"));
        // Somebody else wrote into the file, and may have had docker read it.
        put("daemon.json", "theirs");
        assert!(!is_loaded("old"));
    }

    #[test]
    fn what_stands_on_its_command_line_is_not_said_again() {
        let mut trial = trial(
            "allow-existing-runtime: true\nconfig-extra-args: [{name: container-engine, extra-args: {--log-level: warn, \
             --max-concurrent-downloads: 5, --exec-opt: native.cgroupdriver=systemd}}]",
        );
        trial.facts.runtime_use.docker.swarm = true;
        trial.facts.runtime_use.docker.flags = vec!["--registry-mirror".into(), "-H".into()];
        let settings = merged(&trial);
        assert_eq!(settings.get("registry-mirrors"), None);
        assert_eq!(settings.get("live-restore"), None);
        assert_eq!(settings["log-level"], "warn");
        assert_eq!(settings["max-concurrent-downloads"], 5);
        assert_eq!(
            settings["exec-opts"],
            json!(["isolation=x", "native.cgroupdriver=systemd"])
        );
    }
}
