use std::{fs, path::Path};

use hatchery_host::{privilege::Privilege, transport::ssh::Auth};
use hatchery_spec::{Cluster, Input, read};
use secrecy::ExposeSecret as _;
use tempfile::TempDir;

use super::*;
use crate::state::Directory;

fn cluster(text: &str) -> Cluster {
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    reading
        .cluster
        .unwrap_or_else(|| panic!("{}", reading.diagnostics.render(false)))
}

/// Two machines; `more` goes to the whole cluster and `first` to the first machine.
fn two(more: &str, first: &str) -> Cluster {
    cluster(&format!(
        "cluster-id: demo\n{more}\nmasters: [{{name: m0, ip: 10.0.0.1{first}}}]\nworkers: [{{name: w0, ip: 10.0.0.2, port: 2222}}]\n"
    ))
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn environment(&self) -> Environment {
        let variables = |name: &str| match name {
            "PW" => Some("from the environment".to_owned()),
            "EMPTY" => Some(String::new()),
            "TWO_LINES" => Some("one\ntwo".to_owned()),
            _ => None,
        };
        Environment::new(
            self.path().join("home/cache"),
            Some(self.path().into()),
            variables,
        )
    }

    fn targets(&self, cluster: &Cluster) -> Vec<(Target, Privilege)> {
        let nodes: Vec<_> = cluster.all_machines().collect();
        routes(&nodes, &self.store(cluster), &self.environment()).unwrap()
    }

    fn store(&self, cluster: &Cluster) -> Directory {
        Directory::new(&self.path().join("home"), &cluster.id)
    }

    fn errors(&self, cluster: &Cluster) -> Vec<String> {
        let identity = crate::state::nobody(&cluster.id);
        let (store, environment) = (self.store(cluster), self.environment());
        let nodes = cluster.machines();
        let timeouts = Timeouts::default();
        let errors = machines(nodes, &store, &identity, &environment, &timeouts).unwrap_err();
        errors
            .iter()
            .map(|error| format!("{error}\n{}", error.remedy.as_deref().unwrap_or_default()))
            .collect()
    }
}

/// Ways in, in few words.
fn ways(auth: &[Auth]) -> Vec<String> {
    let way = |way: &Auth| match way {
        Auth::Password(password) => format!("password {}", password.expose_secret()),
        Auth::Key(key) => key
            .place()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned(),
        Auth::Agent { socket } => format!("agent {socket:?}"),
    };
    auth.iter().map(way).collect()
}

fn sudo(privilege: &Privilege) -> Option<String> {
    match privilege {
        Privilege::Root => Some("root".into()),
        Privilege::Sudo { password } => password.as_ref().map(|p| p.expose_secret().to_owned()),
    }
}

#[test]
fn passwords_come_from_the_file_the_environment_or_another_file() {
    let place = Place::new();
    fs::write(place.path().join("pw"), "from a file\r\n").unwrap();
    for (said, password) in [
        ("password: in the file", "in the file"),
        ("password-env: PW", "from the environment"),
        ("password-file: ~/pw", "from a file"),
    ] {
        let targets = place.targets(&two(&format!("username: ops\n{said}"), ""));
        assert_eq!(ways(&targets[1].0.auth), [format!("password {password}")]);
        assert_eq!(sudo(&targets[1].1).as_deref(), Some(password));
    }
    let targets = place.targets(&two(
        "username: root\npassword: x",
        ", user: ops, password-env: PW",
    ));
    assert_eq!(ways(&targets[0].0.auth), ["password from the environment"]);
    assert_eq!(sudo(&targets[1].1).as_deref(), Some("root"));
}

#[test]
fn without_a_word_the_usual_keys_and_the_agent_are_tried() {
    let place = Place::new();
    assert_eq!(ways(&place.targets(&two("", ""))[0].0.auth), [""; 0]);
    fs::create_dir(place.path().join(".ssh")).unwrap();
    for name in ["id_rsa", "id_ed25519", "id_dsa"] {
        fs::write(place.path().join(".ssh").join(name), "key").unwrap();
    }
    let cluster = two("", "");
    assert_eq!(
        ways(&place.targets(&cluster)[0].0.auth),
        ["id_ed25519", "id_rsa"]
    );
    let agent = |name: &str| (name == "SSH_AUTH_SOCK").then(|| "/run/agent".to_owned());
    let environment = Environment::new(place.path().into(), Some(place.path().into()), agent);
    let nodes: Vec<_> = cluster.all_machines().collect();
    let targets = routes(&nodes, &place.store(&cluster), &environment).unwrap();
    assert_eq!(
        ways(&targets[0].0.auth),
        ["id_ed25519", "id_rsa", "agent Some(\"/run/agent\")"]
    );
    let named = two("private-key-path: ~/.ssh/id_dsa\npassword: x", "");
    assert_eq!(
        ways(&place.targets(&named)[1].0.auth),
        ["id_dsa", "password x"]
    );
}

#[test]
fn what_is_missing_is_told_at_once_with_the_machines_that_need_it() {
    let place = Place::new();
    fs::write(place.path().join("two"), "one\ntwo\n").unwrap();
    let both = place.errors(&two("password-env: NOT_THERE", ""));
    assert_eq!(
        both,
        [
            "m0, w0: the environment variable NOT_THERE, which should contain a password, is not set\n\
          set it for this command: read -rs NOT_THERE && export NOT_THERE"
        ]
    );
    let several = place.errors(&two(
        "private-key-path: ~/none",
        ", password-file: ~/two, private-key-path: /",
    ));
    let [key, first, second] = &several[..] else {
        panic!("{several:?}")
    };
    assert!(
        key.starts_with("m0: ") && key.contains("private key /: it is a directory"),
        "{key}"
    );
    assert!(
        first.starts_with("m0: ") && first.contains("~/two: it has more than one line"),
        "{first}"
    );
    assert!(
        second.starts_with("w0: ") && second.contains("~/none: there is no such file"),
        "{second}"
    );
    for (variable, reason) in [
        ("EMPTY", "is empty"),
        ("TWO_LINES", "has more than one line"),
    ] {
        let [error] = &place.errors(&two(&format!("password-env: {variable}"), ""))[..] else {
            panic!("one thing is wrong")
        };
        assert!(error.contains(reason) && !error.contains("two"), "{error}");
    }
}

#[test]
fn keys_are_pinned_or_known_or_recorded_with_the_cluster() {
    let place = Place::new();
    let print = format!("SHA256:{}", "a".repeat(43));
    let targets = place.targets(&two("", &format!(", host-key: '{print}'")));
    assert_eq!(
        targets[0].0.host_key,
        HostKey::Pinned(vec![print.parse().unwrap()])
    );
    let HostKey::Known { files, record } = &targets[1].0.host_key else {
        panic!("nothing is pinned")
    };
    assert_eq!(files[0], place.path().join(".ssh/known_hosts"));
    assert!(files.contains(&"/etc/ssh/ssh_known_hosts".into()));
    let directory = place.path().join("home/clusters/demo");
    assert_eq!(record.as_ref(), Some(&directory.join("known_hosts")));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(directory).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);

    let bad = two(
        "",
        &format!(", host-key: 'ssh-ed25519 {}'", "AAAA".repeat(17)),
    );
    assert!(
        place.errors(&bad)[0].starts_with("m0: the host-key cannot be used"),
        "{:?}",
        place.errors(&bad)
    );
}

#[test]
fn a_home_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    fs::write(place.path().join("home"), "a file").unwrap();
    let errors = place.errors(&two("", ""));
    assert!(
        errors[0].contains("home/clusters/demo") && errors[0].contains("--home"),
        "{errors:?}"
    );
}

#[test]
fn the_way_leads_through_bastions() {
    let place = Place::new();
    let targets = place.targets(&two(
        "username: ops\npassword: x\nbastion: [gate, 'jump@[fd00::9]:2200']",
        "",
    ));
    let target = &targets[1].0;
    assert_eq!(
        (target.host.as_str(), target.port, target.user.as_str()),
        ("10.0.0.2", 2222, "ops")
    );
    let hops: Vec<_> = target
        .jumps
        .iter()
        .map(|hop| (hop.user.as_str(), hop.host.as_str(), hop.port))
        .collect();
    assert_eq!(hops, [("ops", "gate", 22), ("jump", "fd00::9", 2200)]);
    assert_eq!(ways(&target.auth), ["password x"]);
    assert!(!format!("{targets:?}").contains("password x"));
}

#[test]
fn a_bastion_gets_its_own_password_or_none() {
    let place = Place::new();
    fs::write(place.path().join("key"), "key").unwrap();
    fs::write(place.path().join("gate"), "key").unwrap();
    let print = format!("SHA256:{}", "b".repeat(43));
    let targets = place.targets(&two(
        &format!(
            "username: ops\npassword: x\nprivate-key-path: ~/key\nbastion:\n- plain\n- {{host: gate, user: jump, password-env: PW, \
             private-key-path: ~/gate, host-key: '{print}'}}"
        ),
        "",
    ));
    let target = &targets[0].0;
    assert_eq!(ways(&target.auth), ["key", "password x"]);
    let [plain, gate] = &target.jumps[..] else {
        panic!("{target:?}")
    };
    assert_eq!(ways(&plain.auth), ["key"]);
    assert!(matches!(plain.host_key, HostKey::Known { .. }));
    assert_eq!(gate.user, "jump");
    assert_eq!(ways(&gate.auth), ["gate", "password from the environment"]);
    assert_eq!(gate.host_key, HostKey::Pinned(vec![print.parse().unwrap()]));
    let missing = place.errors(&two("bastion: {host: gate, password-env: NOT_THERE}", ""));
    assert!(
        missing[0].starts_with("m0, w0: ") && missing[0].contains("NOT_THERE"),
        "{missing:?}"
    );
}

#[test]
fn strict_checking_records_no_key() {
    let place = Place::new();
    let targets = place.targets(&two("host-key-checking: strict\nbastion: gate", ""));
    let target = &targets[0].0;
    for host_key in [&target.host_key, &target.jumps[0].host_key] {
        let HostKey::Known { files, record } = host_key else {
            panic!("nothing is pinned")
        };
        assert_eq!(*record, None);
        // A key that was accepted before is known.
        let recorded = place.path().join("home/clusters/demo/known_hosts");
        assert!(files.contains(&recorded), "{files:?}");
    }
}

#[test]
fn every_machine_is_asked_for_traces_of_kubernetes() {
    let place = Place::new();
    let cluster = two("username: ops\npassword: x", "");
    let identity = crate::state::nobody(&cluster.id);
    let environment = place.environment();
    let (store, timeouts) = (place.store(&cluster), Timeouts::default());
    let nodes = cluster.machines();
    let machines = machines(nodes, &store, &identity, &environment, &timeouts).unwrap();
    assert_eq!(machines.len(), 2);
    for machine in machines.values() {
        assert_eq!(machine.questions.units, traces::questions().units);
    }
}
