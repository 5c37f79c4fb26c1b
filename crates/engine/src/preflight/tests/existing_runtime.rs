use hatchery_host::{facts::DockerUse, machine::ManagedResource};

use super::*;

fn found(more: &str, facts: Facts, managed: Managed) -> Vec<Finding> {
    let text = format!(
        "cluster-id: demo\n{more}\nmasters: [{{name: m0, ip: 10.201.1.11}}]\nworkers: [{{name: m0, ip: 10.201.1.11}}]\n"
    );
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    let cluster = reading.cluster.unwrap();
    let node = cluster.first_master();
    let mut found = check_machines(&cluster, &own(), &[(node, &Ok((facts, managed)))]);
    found.retain(|finding| finding.code.starts_with("runtime-"));
    found
}

/// Docker with containers and settings.
fn used() -> Facts {
    let mut facts = facts_of(DEBIAN);
    facts.runtime_use.docker = DockerUse {
        containers: 2,
        unit: true,
        settings: true,
        settings_text: Some("{\"data-root\": \"/srv/docker\"}".into()),
        ..DockerUse::default()
    };
    facts
}

const ALLOWED: &str = "runtime: docker\nallow-existing-runtime: true";

#[test]
fn a_docker_in_use_is_shared_only_by_the_users_word() {
    let refused = found("runtime: docker", used(), Managed::default());
    let [refusal] = &refused[..] else {
        panic!("{refused:?}")
    };
    assert_eq!(refusal.severity, Bad);
    assert_eq!(
        refusal.message,
        "has docker in use already (2 containers, settings in /etc/docker/daemon.json)"
    );
    let remedy = refusal.remedy.as_deref().unwrap();
    assert!(remedy.contains("allow-existing-runtime: true"), "{remedy}");

    let allowed = found(ALLOWED, used(), Managed::default());
    assert_eq!(allowed[0].severity, Note, "{allowed:?}");
    // Whoever uses the other runtime does not touch it.
    assert_eq!(found("runtime: containerd", used(), Managed::default()), []);
    let mut one = facts_of(DEBIAN);
    one.runtime_use.containerd_containers = 1;
    assert_eq!(
        found("runtime: docker", one.clone(), Managed::default()),
        []
    );
    let refused = found("runtime: containerd", one, Managed::default());
    assert!(
        refused[0]
            .message
            .contains("containerd in use already (1 container)")
    );
}

#[test]
fn settings_that_cannot_be_read_are_not_replaced() {
    for text in [Some("{\"data-root\": "), Some("[]"), None] {
        let mut facts = used();
        facts.runtime_use.docker.settings_text = text.map(str::to_owned);
        let refused = found(ALLOWED, facts, Managed::default());
        assert_eq!(
            (refused[0].severity, refused[0].code),
            (Bad, "runtime-settings")
        );
    }
}

#[test]
fn the_clusters_own_containers_are_no_use_of_somebody_else() {
    let managed = |name: &str| Managed {
        cluster: Some(("c1".into(), "demo".into())),
        resources: vec![ManagedResource {
            key: hatchery_host::script::RecordKey::parse("k").unwrap(),
            kind: "file".into(),
            name: name.into(),
            state: None,
            size: None,
            put: None,
            text: None,
            owners: Vec::new(),
        }],
    };
    let ours = managed("/etc/docker/daemon.json");
    assert_eq!(found("runtime: docker", used(), ours.clone()), []);
    // A run that died before it came to the runtime changes nothing.
    assert_eq!(
        found("runtime: docker", used(), managed("/etc/hosts")).len(),
        1
    );
    // Nor does the word count that was taken back.
    let mut recorded = used();
    recorded.runtime_use.recorded = true;
    assert_eq!(found("runtime: docker", recorded, ours)[0].severity, Bad);
}
