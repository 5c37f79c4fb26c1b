//! Real machines: what `up` promises, what faults do, and that nothing is left in the end.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
    str::FromStr as _,
    time::{Duration, Instant},
};

use hatchery_sandbox::{
    docker,
    fault::{Fault, Rate, Slowness},
    inventory::{Inventory, State},
    lab::{self, Machine, Options},
    name::Name,
    progress::Progress,
    settings::{RequestedSettings, Sudo, System, TEST},
    test_lab::{Reservation, TestLab},
};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

fn options(name: &str, machines: usize) -> Options {
    Options::new(Name::from_str(name).unwrap(), machines)
}

/// Runs a command that must succeed, and returns what it printed.
async fn ok(machine: &Machine, command: &str) -> String {
    let output = machine.run(command).await.unwrap();
    assert!(output.success(), "{} {command}: {output:?}", machine.name);
    output.stdout.trim().to_owned()
}

async fn answers(machine: &Machine) -> bool {
    let connect = TcpStream::connect((machine.address, 22));
    matches!(timeout(Duration::from_secs(2), connect).await, Ok(Ok(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn debian_machines_live_through_faults_and_growth() {
    let mut lab = TestLab::up(options("t-deb", 2)).await.unwrap();
    let first = lab.machines[0].clone();
    let second = lab.machines[1].clone();

    is_a_machine(&first).await;
    sees_the_world_outside(&first, &second).await;
    assert_eq!(ok(&first, "readlink /bin/sh").await, "dash");
    copies_arrive(&first, lab.home()).await;

    power_cut(&lab, &second).await;
    freeze(&lab, &second).await;
    pulled_cable(&lab, &second).await;
    slow_network(&lab, &second).await;

    grows_without_touching_the_first(&mut lab, &first).await;
    forgets_its_key(&mut lab, &first).await;
    respects_what_its_user_did(&mut lab, &first).await;
    refuses_other_settings(&mut lab).await;
    leaves_nothing(&lab).await;
}

async fn is_a_machine(machine: &Machine) {
    assert_eq!(ok(machine, "hostname").await, machine.name);
    assert_eq!(ok(machine, "systemctl is-system-running").await, "running");
    assert_eq!(ok(machine, "id -un").await, "root");
    // Docker's mounts over these would make a rename onto them fail.
    let rename = "for f in hosts hostname resolv.conf; do
        test -f /etc/$f && ! mountpoint -q /etc/$f && cp /etc/$f /etc/$f.new && mv /etc/$f.new /etc/$f || exit 1; done";
    ok(machine, rename).await;
    let volumes =
        "for d in containerd kubelet etcd docker; do mountpoint -q /var/lib/$d || exit 1; done";
    ok(machine, volumes).await;
    // One tree of control groups, or one for each controller.
    let groups = "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do
        test -e $f || continue; d=${f%/*}; mkdir $d/probe && rmdir $d/probe || exit 1; done";
    ok(machine, groups).await;
    ok(machine, "sysctl -qw net.ipv4.ip_forward=1").await;
}

async fn sees_the_world_outside(one: &Machine, other: &Machine) {
    assert!(
        ok(one, "curl -sf http://www.outside.test/")
            .await
            .contains("outside")
    );
    assert!(!ok(one, "cat /etc/resolv.conf").await.contains("127.0.0."));
    ok(one, "getent hosts repo.outside.test").await;
    let unknown = one.run("getent hosts nothing.outside.test").await.unwrap();
    assert!(
        !unknown.success(),
        "a name that nobody has must not resolve"
    );
    ok(one, &format!("ping -c 1 -W 2 {}", other.address)).await;
}

async fn copies_arrive(machine: &Machine, scratch: &Path) {
    let tree = scratch.join("tree/below");
    std::fs::create_dir_all(&tree).unwrap();
    std::fs::write(tree.join("it's a file"), "content").unwrap();
    machine
        .copy_to(&scratch.join("tree"), "/srv/deep/copied tree")
        .await
        .unwrap();
    assert_eq!(
        ok(machine, "cat \"/srv/deep/copied tree/below/it's a file\"").await,
        "content"
    );
    machine
        .copy_to(&tree.join("it's a file"), "/single")
        .await
        .unwrap();
    assert_eq!(ok(machine, "cat /single").await, "content");
    let error = machine
        .copy_to(Path::new("/does/not/exist"), "/x")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/does/not/exist"), "{error}");
}

async fn power_cut(lab: &TestLab, machine: &Machine) {
    ok(machine, "touch /run/before /root/before; sync").await;
    lab.fault(&machine.name, Fault::Stop).await.unwrap();
    assert!(!answers(machine).await);
    assert!(machine.run("true").await.is_err());
    lab.fault(&machine.name, Fault::Stop).await.unwrap();
    lab.fault(&machine.name, Fault::Start).await.unwrap();
    assert_eq!(ok(machine, "systemctl is-system-running").await, "running");
    ok(machine, "test -e /root/before && test ! -e /run/before").await;
    ok(
        machine,
        "! mountpoint -q /etc/hosts && curl -sf http://www.outside.test/",
    )
    .await;
}

async fn freeze(lab: &TestLab, machine: &Machine) {
    lab.fault(&machine.name, Fault::Pause).await.unwrap();
    let answer = timeout(Duration::from_secs(2), machine.run("true")).await;
    assert!(!matches!(answer, Ok(Ok(_))), "a frozen machine answered");
    let refused = lab.fault(&machine.name, Fault::Cut).await.unwrap_err();
    assert!(refused.is_refusal(), "{refused}");
    lab.fault(&machine.name, Fault::Resume).await.unwrap();
    ok(machine, "true").await;
}

async fn pulled_cable(lab: &TestLab, machine: &Machine) {
    lab.fault(&machine.name, Fault::Cut).await.unwrap();
    assert!(
        !answers(machine).await,
        "a machine without a cable answered"
    );
    let inside = [
        "exec",
        &machine.container(),
        "ip",
        "-4",
        "address",
        "show",
        "eth0",
    ];
    let inside = docker::run(&inside).await.unwrap();
    assert!(inside.contains(&machine.address.to_string()), "{inside}");
    lab.fault(&machine.name, Fault::Heal).await.unwrap();
    ok(machine, "curl -sf http://www.outside.test/").await;
}

async fn slow_network(lab: &TestLab, machine: &Machine) {
    let transfer = async || {
        let begin = Instant::now();
        let output = machine.run("head -c 500000 /dev/zero").await.unwrap();
        assert_eq!(output.stdout.len(), 500_000);
        begin.elapsed()
    };
    let slowness = Slowness {
        rate: Some(Rate::from_str("1mbit").unwrap()),
        delay: None,
    };
    lab.fault(&machine.name, Fault::Slow(slowness))
        .await
        .unwrap();
    // Four megabits at one per second, less what the first burst carries.
    let slow = transfer().await;
    assert!(slow > Duration::from_millis(2500), "{slow:?}");
    lab.fault(&machine.name, Fault::Normal).await.unwrap();
    lab.fault(&machine.name, Fault::Normal).await.unwrap();
    let normal = transfer().await;
    assert!(normal < slow / 2, "{normal:?} against {slow:?}");
}

async fn grows_without_touching_the_first(lab: &mut TestLab, first: &Machine) {
    ok(first, "touch /run/alive").await;
    let known = std::fs::read_to_string(lab.known_hosts()).unwrap();
    lab.fault(&lab.machines[1].name, Fault::Cut).await.unwrap();
    lab.up_again(|options| options.machines = Some(3))
        .await
        .unwrap();
    assert_eq!(lab.machines.len(), 3);
    ok(first, "test -e /run/alive").await;
    ok(&lab.machines[1], "true").await;
    ok(&lab.machines[2], "true").await;
    let now = std::fs::read_to_string(lab.known_hosts()).unwrap();
    assert!(
        now.starts_with(&known),
        "host keys must stay:\n{known}\n{now}"
    );
    let deploy = std::fs::read_to_string(lab.deploy_file()).unwrap();
    assert_eq!(
        deploy.matches(&lab.machines[2].address.to_string()).count(),
        1,
        "{deploy}"
    );
    assert_eq!(
        deploy.matches(&format!("{},", first.address)).count(),
        2,
        "{deploy}"
    );
}

/// All files of the control machine are lost: the next `up` makes new ones.
async fn forgets_its_key(lab: &mut TestLab, first: &Machine) {
    std::fs::remove_dir_all(lab.home().join("sandbox")).unwrap();
    assert!(lab.require_access().unwrap_err().is_refusal());
    lab.up_again(|options| options.machines = None)
        .await
        .unwrap();
    ok(first, "test -e /run/alive").await;
    assert_eq!(lab.machines.len(), 3);
}

/// Units that failed and files that were changed are their user's affair.
async fn respects_what_its_user_did(lab: &mut TestLab, first: &Machine) {
    let fail = "systemd-run --quiet --unit=broken --wait false; systemctl is-system-running";
    assert_eq!(first.run(fail).await.unwrap().stdout.trim(), "degraded");
    let changed = std::fs::read_to_string(lab.deploy_file()).unwrap() + "# mine\n";
    std::fs::write(lab.deploy_file(), &changed).unwrap();
    lab.up_again(|options| options.masters = Some(2))
        .await
        .unwrap();
    assert_eq!(std::fs::read_to_string(lab.deploy_file()).unwrap(), changed);
    let beside = lab.deploy_file().with_extension("yaml.new");
    let beside = std::fs::read_to_string(beside).unwrap();
    assert_ne!(beside, changed);
    assert_eq!(
        beside
            .matches(&format!("{},", lab.machines[1].address))
            .count(),
        2,
        "{beside}"
    );
}

async fn refuses_other_settings(lab: &mut TestLab) {
    let refused = lab
        .up_again(|options| options.settings.system = Some(System::Rpm))
        .await
        .unwrap_err();
    assert!(refused.is_refusal());
    assert!(
        refused.to_string().contains("system debian, not rpm"),
        "{refused}"
    );
    let meant = lab
        .machine(&lab.machines[0].name.replace("-1", "1"))
        .unwrap_err();
    assert!(
        meant.remedy().unwrap().contains("did you mean"),
        "{meant:?}"
    );
}

async fn leaves_nothing(lab: &TestLab) {
    let name = lab.name.as_str();
    let own = Inventory::read(Some(name)).await.unwrap();
    let ids: Vec<_> = own.containers.iter().map(|c| c.id.as_str()).collect();
    let mounts = r#"{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}"#;
    let volumes = docker::run(&[&["inspect", "--format", mounts], ids.as_slice()].concat())
        .await
        .unwrap();
    let volumes: BTreeSet<_> = volumes.split_whitespace().map(str::to_owned).collect();
    assert_eq!(volumes.len(), 3 * 4, "{volumes:?}");

    lab::down(&lab.name, lab.home(), &Progress::silent())
        .await
        .unwrap();

    assert!(Inventory::read(Some(name)).await.unwrap().is_empty());
    let left = docker::run(&["volume", "ls", "--quiet"]).await.unwrap();
    assert!(
        !left
            .split_whitespace()
            .any(|volume| volumes.contains(volume)),
        "volumes are left"
    );
    let files: Vec<_> = std::fs::read_dir(lab.home())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(!files.contains(&"sandbox".into()), "{files:?}");
    let again = lab::down(&lab.name, lab.home(), &Progress::silent())
        .await
        .unwrap_err();
    assert!(
        again.is_refusal() && again.to_string().contains("there is no sandbox"),
        "{again}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rpm_machines_behind_a_bastion_with_a_sudo_password() {
    let settings = RequestedSettings {
        system: Some(System::Rpm),
        user: Some("ops".into()),
        sudo: Some(Sudo::Password),
        bastion: Some(true),
    };
    let behind = Options {
        settings,
        ..options("t-rpm", 1)
    };
    // A second sandbox beside it.
    let (lab, beside) = tokio::join!(TestLab::up(behind), TestLab::up(options("t-side", 1)));
    let (lab, beside) = (lab.unwrap(), beside.unwrap());
    assert_ne!(lab.subnet, beside.subnet);
    ok(&beside.machines[0], "true").await;

    let machine = &lab.machines[0];
    assert_eq!(ok(machine, "id -un").await, "ops");
    assert_eq!(ok(machine, "readlink /bin/sh").await, "bash");
    assert_eq!(
        ok(machine, ". /etc/os-release; echo $ID").await,
        "openEuler"
    );
    ok(machine, "command -v dnf rpm && ! command -v apt-get").await;

    let password = format!("{}\n", lab.password().unwrap());
    let id = machine
        .run_with_input("sudo -S -p '' id -un", password.as_bytes())
        .await
        .unwrap();
    assert_eq!(id.stdout.trim(), "root", "{id:?}");
    assert!(!machine.run("sudo -n true").await.unwrap().success());
    assert!(
        !machine
            .run_with_input("sudo -S -p '' true", b"wrong\n")
            .await
            .unwrap()
            .success()
    );
    let forwarding = machine
        .run_with_input(
            "sudo -S -p '' sshd -T | grep -i allowtcpforwarding",
            password.as_bytes(),
        )
        .await
        .unwrap();
    assert_eq!(forwarding.stdout.trim(), "allowtcpforwarding no");

    assert!(
        !answers(machine).await,
        "the machine can be reached without the bastion"
    );
    let bastion = lab.bastion.as_ref().unwrap();
    assert!(answers(bastion).await);
    ok(bastion, "true").await;
    ok(machine, "curl -sf http://www.outside.test/").await;
    let deploy = std::fs::read_to_string(lab.deploy_file()).unwrap();
    assert!(
        deploy.contains(password.trim()) && deploy.contains("username: ops"),
        "{deploy}"
    );

    // Both are gone when dropped, also when a test panics.
    let names = [lab.name.to_string(), beside.name.to_string()];
    let panicked = std::thread::spawn(move || {
        let _both = (lab, beside);
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    for name in names {
        assert!(Inventory::read(Some(&name)).await.unwrap().is_empty());
    }
}

const VICTIM: &str = "HATCHERY_TEST_VICTIM";

/// Not a test: the process that [`a_killed_up_can_be_repeated`] kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run as a process of its own by another test"]
async fn victim() {
    let Ok(order) = std::env::var(VICTIM) else {
        return;
    };
    let mut words = order.split(' ');
    let mut word = || words.next().unwrap().to_owned();
    let mut options = options(&word(), 3);
    let home = word();
    options.labels.insert(TEST.into(), word());
    lab::up(&options, Path::new(&home)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_up_can_be_repeated() {
    let reservation = Reservation::new(options("t-kill", 3)).await.unwrap();
    let asked = &reservation.options;
    let home = reservation.home().display();
    let order = format!("{} {home} {}", asked.name, asked.labels[TEST]);
    let mut seen = BTreeSet::new();
    for moment in [100, 400, 700, 1000, 1500, 2200, 3000, 4500] {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["victim", "--exact", "--ignored"])
            .env(VICTIM, &order)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(moment)).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        let left = Inventory::read(Some(asked.name.as_str())).await.unwrap();
        let running = left
            .machines()
            .filter(|m| m.state == State::Running)
            .count();
        seen.insert((left.networks.len(), left.machines().count(), running));
    }
    assert!(
        seen.len() > 1,
        "every kill came too early or too late: {seen:?}"
    );

    let lab = reservation.up().await.unwrap();
    assert_eq!(lab.machines.len(), 3);
    for machine in &lab.machines {
        assert_eq!(ok(machine, "hostname").await, machine.name);
        ok(machine, "curl -sf http://www.outside.test/").await;
    }
}
