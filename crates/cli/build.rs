//! Remembers which commit was built and when, for `version`.

use std::{
    env,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

fn main() {
    println!("cargo::rerun-if-env-changed=HATCHERY_COMMIT");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = env::var("HATCHERY_COMMIT")
        .ok()
        .or_else(|| git(&["rev-parse", "HEAD"]));
    println!(
        "cargo::rustc-env=HATCHERY_COMMIT={}",
        commit.unwrap_or_else(|| "unknown".to_owned())
    );
    let epoch = env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| since.as_secs()).to_string()
    });
    println!("cargo::rustc-env=HATCHERY_BUILD_EPOCH={epoch}");
}

/// The answer of git; nothing where the sources lie outside of a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
