//! What the sandbox's `deploy.yaml` names is in the package that it names.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{collections::BTreeSet, net::Ipv4Addr, path::Path, process::Command};

use hatchery_sandbox::{
    deploy_file::{DeployFile, Layout},
    fixtures,
    settings::System,
};

#[tokio::test]
async fn every_package_is_in_the_archive() {
    check("archive-new", false).await;
    check("packages-new", true).await;
}

async fn check(fixture: &str, loadbalance: bool) {
    let fixtures = fixtures::ensure(&[fixture, "images-new"]).await.unwrap();
    let archive = fixtures.path(fixture).join("current.tar.gz");
    let machines = [1, 2, 3].map(|n| (format!("lab-{n}"), Ipv4Addr::new(10, 201, 0, n)));
    let text = DeployFile {
        name: "lab",
        system: System::Debian,
        user: "root",
        password: None,
        key: Path::new("/key"),
        machines: &machines,
        layout: Layout {
            masters: 2,
            loadbalance,
        },
        bastion: None,
        arch: "amd64",
        archive: &archive,
    }
    .render();
    assert!(text.contains(&archive.display().to_string()));

    let listing = output("tar", &["-tzf", archive.to_str().unwrap()]);
    let inside: BTreeSet<&str> = listing.lines().collect();
    let wanted = packages(&text);
    assert!(wanted.len() > 15, "{wanted:?}");
    for (kind, name) in wanted {
        let there = match kind.as_str() {
            "pkg" => inside
                .iter()
                .any(|path| path.starts_with(&format!("pkg/{name}_"))),
            "yaml" => inside.contains(format!("file/{name}").as_str()),
            _ => inside.contains(format!("{kind}/{name}").as_str()),
        };
        assert!(there, "{kind} {name} is not in the archive:\n{listing}");
    }

    let pause = text
        .lines()
        .find_map(|line| line.strip_prefix("pause-image: "))
        .unwrap();
    let images = fixtures.path("images-new").join("images.tar");
    let images = output("tar", &["-xOf", images.to_str().unwrap(), "manifest.json"]);
    assert!(
        images.contains(&format!("\"{pause}\"")),
        "{pause} is not in {images}"
    );
}

/// The entries `- {name: "a,b", type: bin, …}`, each name with its type.
fn packages(text: &str) -> Vec<(String, String)> {
    let value = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!("{key}: "))?;
        let rest = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => rest.split([',', '}']).next()?,
        };
        Some(rest.to_owned())
    };
    text.lines()
        .filter_map(|line| Some((value(line, "type")?, value(line, "{name")?)))
        .flat_map(|(kind, names)| {
            let names: Vec<_> = names.split(',').map(str::to_owned).collect();
            names.into_iter().map(move |name| (kind.clone(), name))
        })
        .collect()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
