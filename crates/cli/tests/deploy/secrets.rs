//! No secret where others could read it, searched for by value.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::bench::Bench;

/// Looks at the command lines of all processes while something runs, machines' ones included: these run here too.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<String>,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !ends.load(Ordering::Relaxed) {
                for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
                    for file in ["cmdline", "environ"] {
                        let text = fs::read(process.path().join(file)).unwrap_or_default();
                        seen.insert(String::from_utf8_lossy(&text).into_owned());
                    }
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            seen.into_iter().collect::<Vec<_>>().join("\n")
        });
        Self { stop, thread }
    }

    pub(crate) async fn end(self) -> String {
        self.stop.store(true, Ordering::Relaxed);
        tokio::task::spawn_blocking(move || self.thread.join().unwrap())
            .await
            .unwrap()
    }
}

/// None of the cluster's private keys is in a text, a log, or a file that others may read, here or on a machine.
pub(crate) async fn are_nowhere(bench: &Bench, texts: &[&str]) {
    let cluster = bench.home().join("clusters").join(&bench.id);
    let mut secrets = Vec::new();
    for name in [
        "ca.key",
        "front-proxy-ca.key",
        "etcd-ca.key",
        "sa.key",
        "encryption.key",
    ] {
        let text = fs::read_to_string(cluster.join("pki").join(name)).unwrap();
        // A line in the middle is enough, and is the same in any framing.
        let line = text
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .max_by_key(|line| line.len());
        secrets.push(line.unwrap().to_owned());
    }
    assert!(secrets.iter().all(|secret| secret.len() > 30));
    for secret in &secrets {
        for text in texts {
            assert!(!text.contains(secret), "a secret was shown");
        }
    }
    let is_secret = |text: &str| secrets.iter().any(|secret| text.contains(secret));
    walk(&cluster.join("runs"), &mut |path, text| {
        assert!(!is_secret(text), "{} holds a secret", path.display());
        assert!(
            !text.contains("PRIVATE KEY"),
            "{} holds a key",
            path.display()
        );
    });
    walk(&cluster, &mut |path, text| {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        let open = mode & 0o077 != 0;
        assert!(
            !(open && is_secret(text)),
            "others can read {}",
            path.display()
        );
    });
    // On the machines: whatever others may read.
    let search = "grep -rlE -e '-BEGIN [A-Z ]*PRIVATE KEY' /etc /var/lib/hatchery /var/lib/kubelet /var/log /run /tmp /opt 2>/dev/null | \
                  grep -v '^/etc/ssh/\\|^/run/containerd\\|^/run/docker' | while read -r f; do stat -c '%a %n' \"$f\"; done";
    for number in 0..bench.lab.machines.len() {
        let found = bench.inside(number, search).await;
        let open: Vec<_> = found
            .lines()
            .filter(|line| !line.starts_with("600 "))
            .collect();
        assert!(open.is_empty(), "{open:?}");
        assert!(
            number > 0 || found.contains("/etc/kubernetes/pki/ca.key"),
            "{found}"
        );
        assert!(
            number == 0 || !found.contains("/ca.key"),
            "a worker has an authority's key: {found}"
        );
    }
}

fn walk(directory: &Path, each: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, each);
        } else {
            each(&path, &String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
}
