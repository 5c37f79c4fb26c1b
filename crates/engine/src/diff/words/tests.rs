use hatchery_host::{
    content::Content,
    operation::{Access, File, Sysctl, Unit, UnitName},
};
use hatchery_pki::Request;

use super::*;
use crate::resource::{Issuer, Kubeconfig, Leaf};

fn at(path: &str) -> MachinePath {
    MachinePath::new(path).unwrap()
}

fn file(path: &str) -> Operation {
    Operation::File(File {
        path: at(path),
        content: Content::bytes(Vec::new()),
        access: Access::root(0o644).unwrap(),
    })
}

fn unit(running: bool) -> Operation {
    Operation::Unit(Unit {
        name: UnitName::new("kubelet.service").unwrap(),
        enabled: Some(running),
        running: Some(running),
        restart_on: Vec::new(),
    })
}

/// The lines for one operation and what a machine says of it.
fn lines(operation: Operation, reasons: &[&str]) -> Vec<String> {
    let reasons = reasons.iter().map(ToString::to_string).collect();
    let changes = of_machine(&[], &[], &[operation], &[Difference::Change(reasons)]);
    let line = |change: &Change| format!("{} {}: {}", change.kind.mark(), change.what, change.why);
    changes.iter().map(line).collect()
}

#[test]
fn files_and_the_directories_above_them() {
    let a = || file("/a/b");
    assert_eq!(
        lines(a(), &["directory /a: absent", "absent"]),
        ["+ directory /a: new", "+ file /a/b: new"]
    );
    assert_eq!(
        lines(a(), &["content"]),
        ["~ file /a/b: its content changes"]
    );
    assert_eq!(
        lines(a(), &["mode 600 0 0"]),
        ["~ file /a/b: its mode or owner changes from 600"]
    );
    assert_eq!(
        lines(Operation::Absent(at("/a")), &["there"]),
        ["- no file /a: removed"]
    );
}

#[test]
fn units_say_what_is_done_to_them() {
    for (running, said, read) in [
        (true, "disabled inactive", "enabled, started"),
        (true, "disabled inactive trigger", "enabled, started"),
        (true, "failed", "started"),
        (true, "trigger", "restarted, since its files change"),
        (true, "pending trigger", "restarted, since its files change"),
        (false, "enabled active", "disabled, stopped"),
    ] {
        let expected = format!("~ unit kubelet.service: {read}");
        assert_eq!(lines(unit(running), &[said]), [expected], "{said}");
    }
}

#[test]
fn values_are_told_with_what_they_were() {
    let forward = || Operation::Sysctl(Sysctl::new("net.ipv4.ip_forward", "1").unwrap());
    assert_eq!(
        lines(forward(), &["value 0"]),
        ["~ sysctl net.ipv4.ip_forward: 0 becomes 1"]
    );
    assert_eq!(
        lines(forward(), &["absent"]),
        ["+ sysctl net.ipv4.ip_forward: becomes 1"]
    );
}

#[test]
fn packages_are_one_line() {
    let reasons = ["package socat: absent", "package conntrack: version"].map(str::to_owned);
    let reasons: Vec<_> = reasons.iter().collect();
    let change = packages(&reasons);
    assert_eq!(
        (change.what.as_str(), change.why.as_str(), change.kind),
        (
            "packages",
            "installed: socat, conntrack (another version)",
            Kind::Changed
        )
    );
}

#[test]
fn a_certificate_is_one_line_with_its_reason() {
    let resource = Resource::Leaf(Leaf {
        issuer: Issuer::Cluster,
        request: Request::client("x"),
        certificate: at("/p/x.crt"),
        key: at("/p/x.key"),
        kubeconfig: Some(Kubeconfig {
            path: at("/p/x.conf"),
            user: "x".into(),
            server: "https://x".into(),
            server_file: at("/p/x.server"),
        }),
    });
    let operations = ["/p/x.crt", "/p/x.key", "/p/x.conf", "/p/y"].map(file);
    let differences = ["content", "content", "content", "absent"]
        .map(|said| Difference::Change(vec![said.to_owned()]));
    let issued = [(at("/p/x.crt"), "it ends soon".to_owned())];
    let changes = of_machine(
        std::slice::from_ref(&resource),
        &issued,
        &operations,
        &differences,
    );
    let read: Vec<_> = changes
        .iter()
        .map(|change| (change.kind, change.what.as_str(), change.why.as_str()))
        .collect();
    assert_eq!(
        read,
        [
            (
                Kind::Changed,
                "certificate /p/x.crt",
                "issued, since it ends soon"
            ),
            (Kind::New, "file /p/y", "new"),
        ]
    );
    // One that stays, of which only the mode is wrong, is the file that it is.
    let changes = of_machine(&[resource], &[], &operations[..1], &differences[..1]);
    assert_eq!(changes[0].what, "file /p/x.crt");
}

#[test]
fn what_is_so_is_not_told() {
    assert_eq!(
        of_machine(&[], &[], &[file("/a")], &[Difference::Unchanged]),
        []
    );
    assert_eq!(applied("x".into(), &Effect::Unchanged), None);
}
