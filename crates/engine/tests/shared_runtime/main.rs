//! A runtime that somebody used before the cluster came, and has again afterwards. The scripts run in every shell on a directory
//! that stands for a machine, with programs that stand for docker, containerd and systemd.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

const SHELLS: [&[&str]; 3] = [&["dash"], &["bash", "--posix"], &["busybox", "sh"]];

const LIST: &str = include_str!("../../src/components/runtime/containerd/list.sh");
const BEFORE: &str = include_str!("../../src/components/runtime/before.sh");
const AFTER: &str = include_str!("../../src/components/runtime/after.sh");
const RESTART: &str = include_str!("../../src/components/runtime/docker/restart.sh");
const LOAD: &str = include_str!("../../src/components/runtime/docker/load.sh");

struct Place {
    root: TempDir,
    shell: &'static [&'static str],
}

impl Place {
    fn new(shell: &'static [&'static str]) -> Self {
        let place = Self {
            root: tempfile::tempdir().unwrap(),
            shell,
        };
        for directory in [
            "bin",
            "active",
            "units",
            "containers",
            "images",
            "used-by",
            "ctr",
            "etc/docker",
            "record",
        ] {
            fs::create_dir_all(place.path(directory)).unwrap();
        }
        for (name, text) in [
            ("docker", include_str!("fakes/docker")),
            ("systemctl", include_str!("fakes/systemctl")),
            ("ctr", include_str!("fakes/ctr")),
            ("sleep", "#!/bin/sh\n"),
        ] {
            place.put(&format!("bin/{name}"), text);
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(place.path(&format!("bin/{name}")), executable).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Runs scripts one behind the other, with the machine's paths in this directory.
    fn run(&self, lines: &str, scripts: &[&str]) -> Output {
        let root = self.root.path().display();
        let mut text = format!(
            "use={root}/record/runtime-use\nsettings={root}/record/docker-settings\nmark={root}/record/before\nlines='{lines}'\n"
        );
        text.extend(scripts.iter().copied());
        for path in [
            "/etc/docker/",
            "/etc/containerd/",
            "/var/lib/containerd",
            "/run/",
        ] {
            text = text.replace(&format!(" {path}"), &format!(" {root}{path}"));
            text = text.replace(&format!(":-{path}"), &format!(":-{root}{path}"));
            text = text.replace(&format!(">{path}"), &format!(">{root}{path}"));
        }
        let path = format!("{root}/bin:{}", std::env::var("PATH").unwrap());
        let output = Command::new(self.shell[0])
            .args(&self.shell[1..])
            .args(["-c", &text, "hatchery"])
            .env("PATH", path)
            .env("FAKE", self.root.path())
            .output()
            .unwrap();
        eprintln!("{:?}: {output:?}", self.shell);
        output
    }

    fn before(&self, lines: &str) -> bool {
        self.run(lines, &[LIST, BEFORE]).status.success()
    }

    fn after(&self) -> bool {
        self.run("", &[LIST, RESTART, AFTER]).status.success()
    }

    fn load(&self) -> bool {
        self.run("", &[RESTART, LOAD]).status.success()
    }

    /// A containerd that answers, with these things in it.
    fn containerd(&self, things: &[(&str, &str)]) -> UnixListener {
        self.put("active/containerd.service", "");
        self.put("units/containerd.service", "");
        for (name, lines) in things {
            self.put(&format!("ctr/{name}"), lines);
        }
        fs::create_dir_all(self.path("run/containerd")).unwrap();
        UnixListener::bind(self.path("run/containerd/containerd.sock")).unwrap()
    }
}

fn everywhere(test: impl Fn(&Place)) {
    for shell in SHELLS {
        test(&Place::new(shell));
    }
}

/// Docker in use: what runs, what is removed when it ends, and a pod.
fn docker(place: &Place) {
    place.put("active/docker.service", "");
    for (id, state) in [
        ("aaa", "true true"),
        ("bbb", "true false"),
        ("ccc", "true false"),
        ("ddd", "false false"),
    ] {
        place.put(&format!("containers/{id}"), &format!("{state}\n"));
    }
    place.put("etc/docker/daemon.json", "{}\n");
    assert!(place.before("docker containers 4\ndocker unit\n"));
    place.put("etc/docker/daemon.json", "{\"merged\": true}\n");
}

#[test]
fn what_ran_in_docker_runs_again_whatever_became_of_the_others() {
    everywhere(|place| {
        docker(place);
        assert!(place.load());
        assert!(!place.has("containers/aaa"));
        for (id, state) in [("bbb", "true"), ("ccc", "true"), ("ddd", "false")] {
            assert!(
                place.text(&format!("containers/{id}")).starts_with(state),
                "{id}"
            );
        }
        assert!(!place.has("record/docker-running"));
        assert_eq!(place.text("record/docker-loaded"), "{\"merged\": true}\n");
    });
}

#[test]
fn a_container_that_does_not_start_keeps_no_other_down() {
    everywhere(|place| {
        docker(place);
        place.put("unstartable-bbb", "");
        assert!(!place.load());
        assert!(place.text("containers/ccc").starts_with("true"));
        assert_eq!(place.text("etc/docker/daemon.json"), "{}\n");
        // A second run still knows that it ran.
        place.remove("unstartable-bbb");
        place.put("etc/docker/daemon.json", "{\"merged\": true}\n");
        assert!(place.load());
        assert!(place.text("containers/bbb").starts_with("true"));
        assert!(!place.has("record/docker-running"));

        // The same at the end, where docker is not restarted again for it.
        place.put("unstartable-bbb", "");
        place.put("etc/docker/daemon.json", "{}\n");
        assert!(!place.after());
        assert!(place.text("containers/ccc").starts_with("true"));
        assert!(place.has("record/runtime-use"));
        let restarts = || place.text("systemctl-log").matches("restart").count();
        let before = restarts();
        place.remove("unstartable-bbb");
        assert!(place.after());
        assert!(place.text("containers/bbb").starts_with("true"));
        assert_eq!(restarts(), before);
        assert_eq!(fs::read_dir(place.path("record")).unwrap().count(), 0);
    });
}

#[test]
fn a_docker_that_refuses_the_settings_has_its_containers_again() {
    everywhere(|place| {
        docker(place);
        place.put("docker-breaks", "");
        assert!(!place.load());
        assert_eq!(place.text("etc/docker/daemon.json"), "{}\n");
        for id in ["bbb", "ccc"] {
            assert!(
                place.text(&format!("containers/{id}")).starts_with("true"),
                "{id}"
            );
        }
    });
}

#[test]
fn a_docker_that_does_not_tell_what_runs_is_not_restarted() {
    everywhere(|place| {
        docker(place);
        place.put("docker-fails", "");
        assert!(!place.load());
        assert!(!place.text("systemctl-log").contains("restart docker"));
        assert!(place.text("containers/aaa").starts_with("true"));
    });
}

#[test]
fn images_that_the_user_built_stay_in_docker() {
    everywhere(|place| {
        place.put("active/docker.service", "");
        place.put("images/old", "1");
        assert!(place.before("docker unit\n"));
        for (id, digests) in [("pulled", "1"), ("built", "0"), ("used", "2")] {
            place.put(&format!("images/{id}"), digests);
        }
        place.put("used-by/used", "ccc\n");
        let of_pods = "old\npulled\nbuilt\nused\n";
        place.put("record/docker-pod-images", of_pods);
        assert!(place.after());
        assert!(!place.has("images/pulled"));
        for id in ["old", "built", "used"] {
            assert!(place.has(&format!("images/{id}")), "{id}");
        }
        // Where containerd keeps them, one that was built has a digest too.
        place.put("images/pulled", "1");
        place.put("driver", "[[driver-type io.containerd.snapshotter.v1]]");
        assert!(place.before("docker unit\n"));
        place.remove("record/docker-images");
        place.put("record/docker-images", "old\n");
        place.put("record/docker-pod-images", of_pods);
        assert!(place.after());
        assert!(place.has("images/pulled"));
    });
}

const THEIRS: [(&str, &str); 4] = [
    ("namespaces", "default\nk8s.io\n"),
    ("images", "theirs:1\n"),
    ("containers", "theirs\n"),
    ("sandboxes", "theirs-too\n"),
];
const BOTH: [(&str, &str); 3] = [
    ("images", "theirs:1\npause:3\n"),
    ("containers", "theirs\npod\n"),
    ("sandboxes", "theirs-too\npod\n"),
];

/// Pods run in containerd.
fn with_pods(place: &Place) {
    place.put("record/before", "runtime containerd\n");
    for (name, lines) in BOTH {
        place.put(&format!("ctr/{name}"), lines);
    }
}

#[test]
fn only_what_came_is_taken_out_of_containerd() {
    everywhere(|place| {
        let _socket = place.containerd(&THEIRS);
        place.put("var/lib/containerd/x", "");
        assert!(place.before("containerd containers 1\n"));
        with_pods(place);
        assert!(place.after());
        for (name, lines) in THEIRS {
            assert_eq!(place.text(&format!("ctr/{name}")), lines, "{name}");
        }
    });
}

#[test]
fn a_containerd_with_its_data_elsewhere_is_somebodys_too() {
    everywhere(|place| {
        let _socket = place.containerd(&[
            ("namespaces", "default\n"),
            ("images", ""),
            ("containers", ""),
        ]);
        let root = place.path("srv/containerd");
        fs::create_dir_all(root.join("io.containerd.content.v1.content")).unwrap();
        let lines = [
            "containerd containers 1\n".to_owned(),
            format!("containerd directory root = \"{}\"\n", root.display()),
        ];
        for lines in lines {
            assert!(place.before(&lines));
            place.put("ctr/namespaces", "default\nk8s.io\n");
            with_pods(place);
            assert!(place.after());
            assert_eq!(place.text("ctr/namespaces"), "default\n");
            assert_eq!(place.text("ctr/images"), "");
            place.remove("ctr/sandboxes");
        }
    });
}

#[test]
fn a_containerd_that_does_not_tell_what_it_has_is_not_emptied() {
    everywhere(|place| {
        let _socket = place.containerd(&THEIRS);
        for list in ["namespaces", "images", "containers", "sandboxes"] {
            let fails = format!("ctr-fails-{list}");
            place.put(&fails, "");
            assert!(!place.before("containerd containers 1\n"), "{list}");
            assert!(!place.has("record/runtime-use"));
            place.remove(&fails);
        }
        assert!(place.before("containerd containers 1\n"));
        with_pods(place);
        for list in ["namespaces", "images", "containers", "sandboxes"] {
            let fails = format!("ctr-fails-{list}");
            place.put(&fails, "");
            assert!(!place.after(), "{list}");
            assert!(!place.text("ctr-log").contains(" rm "));
            assert!(place.has("record/containerd-before"));
            place.remove(&fails);
        }
        assert!(place.after());
        assert_eq!(place.text("ctr/containers"), "theirs\n");
        // Nor is it asked where pods ran in another runtime.
        assert!(place.before("containerd containers 1\n"));
        place.put("record/before", "runtime docker\n");
        place.put("ctr-fails-namespaces", "");
        assert!(place.after());
    });
}

#[test]
fn of_a_containerd_that_was_stopped_only_new_containers_are_removed() {
    everywhere(|place| {
        place.put("units/containerd.service", "");
        let database = "var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db";
        place.put(database, "\0\u{1}v1\0\0k8s.io\0\u{3}\0default");
        place.put(
            "run/containerd/io.containerd.runtime.v2.task/k8s.io/runs/x",
            "",
        );
        assert!(place.before(""));
        let known = place.text("record/containerd-before");
        assert!(known.starts_with("unknown 20"), "{known}");
        assert!(known.contains("\ncontainer runs\n"), "{known}");

        let _socket = place.containerd(&THEIRS);
        with_pods(place);
        place.put("ctr/created-pod", "2999-01-01T00:00:00.5Z");
        place.remove("active/containerd.service");
        assert!(place.after());
        assert_eq!(place.text("ctr/containers"), "theirs\n");
        assert_eq!(place.text("ctr/images"), BOTH[0].1);
        assert!(!place.has("active/containerd.service"));

        // One that has nothing of Kubernetes in it gives all of that back.
        place.put(database, "\0v1\0\0default\0registry.k8s.io/pause:3\0");
        fs::remove_file(place.path("run/containerd/containerd.sock")).unwrap();
        assert!(place.before(""));
        assert_eq!(place.text("record/containerd-before"), "");
        let _socket = place.containerd(&[]);
        with_pods(place);
        assert!(place.after());
        assert_eq!(place.text("ctr/images"), "");
        assert_eq!(place.text("ctr/namespaces"), "default\n");
    });
}

#[test]
fn a_containerd_whose_unit_is_gone_is_in_nobodys_way() {
    everywhere(|place| {
        place.put("var/lib/containerd/x", "");
        assert!(place.before(""));
        with_pods(place);
        assert!(place.after());
        assert!(!place.has("record/runtime-use"));
    });
}

#[test]
fn containerd_is_asked_where_it_listens() {
    everywhere(|place| {
        let socket = place.path("elsewhere.sock");
        let text = format!(
            "version = 2\n[debug]\n  address = '/x'\n[grpc]\n  address = \"{}\"\n[ttrpc]\n  address = '/y'\n",
            socket.display()
        );
        place.put("etc/containerd/config.toml", &text);
        let _usual = place.containerd(&THEIRS);
        fs::remove_file(place.path("run/containerd/containerd.sock")).unwrap();
        let _socket = UnixListener::bind(Path::new(&socket)).unwrap();
        assert!(place.before("containerd containers 1\n"));
        let known = place.text("record/containerd-before");
        assert!(known.contains("container theirs\n"), "{known}");
    });
}
