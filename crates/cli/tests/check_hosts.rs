//! `check --hosts` against real machines: good, wrong, frozen, gone, behind a bastion.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use assert_cmd::Command;
use hatchery_sandbox::{
    docker,
    fault::Fault,
    lab::{Machine, Options},
    settings::{RequestedSettings, Sudo, System},
    test_lab::TestLab,
};
use serde_json::Value;
use tempfile::TempDir;

/// A sandbox, and a user's home with a deploy file for it.
struct Bench {
    lab: TestLab,
    user: TempDir,
}

impl Bench {
    async fn new(name: &str, machines: usize, settings: RequestedSettings) -> Self {
        let options = Options {
            settings,
            ..Options::new(name.parse().unwrap(), machines)
        };
        Self {
            lab: TestLab::up(options).await.unwrap(),
            user: TempDir::new().unwrap(),
        }
    }

    /// Writes the deploy file: the first machine is the master, `arch` is that of the second.
    fn write(&self, more: &str, arch: &str) {
        let hosts = self
            .lab
            .machines
            .iter()
            .enumerate()
            .map(|(number, machine)| {
                let arch = if number == 1 { arch } else { std_arch() };
                format!(
                    "  - {{name: {}, ip: {}, arch: {arch}}}\n",
                    machine.name, machine.address
                )
            });
        let hosts: Vec<String> = hosts.collect();
        let text = format!(
            "cluster-id: demo\nusername: {}\nruntime: containerd\nprivate-key-path: {}\n{more}\nmasters:\n{}workers:\n{}",
            self.lab.settings.user,
            self.lab.key().display(),
            hosts[0],
            hosts.concat(),
        );
        let path = self.user.path().join("deploy.yaml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn check(&self, code: i32, arguments: &str, password: Option<&str>) -> (String, String) {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")));
        command
            .args(["check", "-f", "deploy.yaml", "--hosts"])
            .args(arguments.split_whitespace())
            .current_dir(self.user.path())
            .env("HOME", self.user.path())
            .env_remove("HATCHERY_HOME")
            .env_remove("SSH_AUTH_SOCK");
        if let Some(password) = password {
            command.env("LAB_PASSWORD", password);
        }
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        eprintln!("{stdout}{stderr}");
        assert_eq!(output.status.code(), Some(code));
        if let Some(password) = password {
            assert!(!stdout.contains(password) && !stderr.contains(password));
        }
        (stdout, stderr)
    }
}

fn std_arch() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// All that could be changed on a machine: files with their times and sizes, units, sysctls, rules. Directories of logs and
/// of what is only in memory are the machine's own.
async fn state(machine: &Machine) -> String {
    let walk = "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log \
        -o -path /var/lib/systemd/timers -o -path /var/lib/systemd/random-seed -o -path /var/lib/apt -o -path /var/cache \\) -prune \
        -o -type d -printf '%m %U:%G %p\\n' -o -printf '%y %m %U:%G %s %T@ %p %l\\n' | sort
        systemctl list-unit-files --no-legend --no-pager
        sysctl -a 2>/dev/null | grep -E '^net\\.ipv4\\.(ip_forward|conf\\.(all|default))'
        iptables-save | grep -v '^[#:]\\|127\\.0\\.0\\.11'; ls /sys/module; hostname";
    let text = docker::run(&["exec", &machine.container(), "bash", "-c", walk])
        .await
        .unwrap();
    assert!(text.lines().count() > 3000, "{}", text.lines().count());
    text
}

fn line<'a>(text: &'a str, name: &str) -> &'a str {
    let found = text
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(name));
    found.unwrap_or_else(|| panic!("no line of {name} in {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_machine_gets_its_line_and_nothing_is_changed() {
    let settings = RequestedSettings {
        system: Some(System::Debian),
        ..RequestedSettings::default()
    };
    let bench = Bench::new("t-check", 3, settings).await;
    let [good, wrong, frozen] = &bench.lab.machines[..] else {
        panic!("three machines")
    };
    let other = if std_arch() == "arm64" {
        "amd64"
    } else {
        "arm64"
    };

    // All three are good.
    bench.write("", std_arch());
    let before = [state(good).await, state(wrong).await];
    let (stdout, _) = bench.check(0, "", None);
    for machine in &bench.lab.machines {
        let line = line(&stdout, &machine.name);
        assert!(
            line.starts_with("ok ") && line.contains("Debian GNU/Linux 12") && line.contains("GiB"),
            "{line}"
        );
    }
    assert!(
        stdout
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("3 machines can be used"),
        "{stdout}"
    );
    let known = bench
        .user
        .path()
        .join(".hatchery/clusters/demo/known_hosts");
    assert_eq!(
        fs::read_to_string(&known).unwrap().lines().count(),
        3,
        "recorded at first use"
    );
    assert!(
        !known.with_file_name("cluster.json").exists(),
        "who only asks makes no cluster"
    );

    // One has another processor than the file says, one is frozen.
    bench.write("", other);
    bench.lab.fault(&frozen.name, Fault::Pause).await.unwrap();
    let begin = Instant::now();
    let (stdout, stderr) = bench.check(1, "", None);
    assert!(
        begin.elapsed() < Duration::from_secs(25),
        "{:?}",
        begin.elapsed()
    );
    assert!(line(&stdout, &good.name).starts_with("ok "));
    let said = format!("has {}, but the file says {other}", std_arch());
    assert!(
        line(&stdout, &wrong.name).starts_with("error ")
            && line(&stdout, &wrong.name).contains("; architecture"),
        "{stdout}"
    );
    assert!(
        line(&stdout, &frozen.name).contains("did not answer within"),
        "{stdout}"
    );
    assert!(
        stderr.contains(&format!("error[architecture]: {}: {said}", wrong.name)),
        "{stderr}"
    );
    assert!(
        stderr.contains(&format!("write 'arch: {}' for it in the file", std_arch())),
        "{stderr}"
    );
    let last: Vec<_> = stdout.trim_end().lines().rev().take(3).collect();
    assert_eq!(last[2], "1 of 3 machines can be used; nothing was changed");
    assert_eq!(last[1], format!("  no answer: {}", frozen.name));
    assert_eq!(last[0], format!("  not as needed: {}", wrong.name));

    // The same as data, one at a time.
    let (stdout, stderr) = bench.check(1, "-o json --parallel 1", None);
    assert_eq!(stderr, "");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["ok"], Value::from(false));
    assert_eq!(document["errors"], Value::from(0), "the file is good");
    let machines = document["hosts"]["machines"].as_array().unwrap();
    let ok: Vec<_> = machines
        .iter()
        .map(|one| (one["ok"].as_bool(), one["answered"].as_bool()))
        .collect();
    assert_eq!(
        ok,
        [
            (Some(true), Some(true)),
            (Some(false), Some(true)),
            (Some(false), Some(false))
        ]
    );
    assert_eq!(machines[0]["arch"], Value::from(std_arch()));
    assert!(machines[0]["memoryBytes"].as_u64().unwrap() > 1 << 28);
    let findings = document["hosts"]["findings"].as_array().unwrap();
    let errors: Vec<_> = findings
        .iter()
        .filter(|one| one["severity"] == "error")
        .map(|one| &one["code"])
        .collect();
    assert!(
        errors.contains(&&Value::from("architecture"))
            && errors.contains(&&Value::from("no-answer")),
        "{errors:?}"
    );
    bench.lab.fault(&frozen.name, Fault::Resume).await.unwrap();
    let after = [state(good).await, state(wrong).await];
    assert!(before == after, "{}", first_difference(&before, &after));

    // One is not the machine that it was, and one is off.
    bench.write("", std_arch());
    let renew = "rm /etc/ssh/ssh_host_*_key* && ssh-keygen -A >/dev/null && systemctl restart ssh";
    docker::run(&["exec", &good.container(), "bash", "-c", renew])
        .await
        .unwrap();
    bench.lab.fault(&frozen.name, Fault::Stop).await.unwrap();
    let (stdout, stderr) = bench.check(1, "", None);
    assert!(
        line(&stdout, &good.name).contains("host key that is not trusted"),
        "{stdout}"
    );
    assert!(
        stderr.contains(&format!(
            "ssh-keygen -R '{}' -f '{}'",
            good.address,
            known.display()
        )),
        "{stderr}"
    );
    assert!(line(&stdout, &wrong.name).starts_with("ok "));
    assert!(
        line(&stdout, &frozen.name).contains("cannot be reached at"),
        "{stdout}"
    );
}

fn first_difference(before: &[String], after: &[String]) -> String {
    let pairs = before
        .iter()
        .zip(after)
        .flat_map(|(a, b)| a.lines().zip(b.lines()));
    pairs
        .filter(|(a, b)| a != b)
        .take(3)
        .map(|(a, b)| format!("{a}\n{b}\n"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_a_sudo_password_behind_a_bastion() {
    let settings = RequestedSettings {
        system: Some(System::Rpm),
        user: Some("ops".into()),
        sudo: Some(Sudo::Password),
        bastion: Some(true),
    };
    let bench = Bench::new("t-checkb", 1, settings).await;
    let machine = &bench.lab.machines[0];
    let bastion = bench.lab.bastion.as_ref().unwrap().address;
    bench.write(
        &format!("password-env: LAB_PASSWORD\nbastion: {bastion}"),
        "",
    );

    // Without the variable nothing is touched.
    let (stdout, stderr) = bench.check(2, "", None);
    assert!(
        stderr.contains("environment variable LAB_PASSWORD") && stderr.contains("is not set"),
        "{stderr}"
    );
    assert!(
        stderr.contains("export LAB_PASSWORD") && stderr.contains(&machine.name),
        "{stderr}"
    );
    assert!(
        !stdout.contains(&format!("ok     {}", machine.name)),
        "{stdout}"
    );

    let (stdout, _) = bench.check(0, "", Some(&bench.lab.password().unwrap()));
    let line = line(&stdout, &machine.name);
    assert!(
        line.starts_with("ok ") && line.contains("openEuler 22.03"),
        "{line}"
    );

    let (stdout, stderr) = bench.check(1, "", Some("not this one"));
    assert!(stdout.contains("does not let us become root"), "{stdout}");
    assert!(stderr.contains("error[not-root]"), "{stderr}");
}
