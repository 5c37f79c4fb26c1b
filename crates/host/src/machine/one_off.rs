//! Scripts of the user's that are run once, as root, and of which nothing stays on the machine.

use std::{fmt::Write as _, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{Error, Machine};
use crate::{quote::quote, report::readable};

/// A script by its file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOff {
    /// The file's name, without directories.
    pub name: String,
    /// What it says; without `#!` it is run by `sh`.
    pub bytes: Vec<u8>,
}

/// Where scripts lie while they run: not below /tmp or /run, from which some machines run nothing. The prelude removes
/// directories of this name that no process works in.
const PLACE: &str = "/var/lib/hatchery-scripts";

/// Where a machine says which cluster it is held by, as the head of the prelude describes it.
const HOLDER: &str = "/var/lib/hatchery/cluster";

impl Machine {
    /// Runs scripts one after the other, in a directory of their own that goes with them, each for `limit` at most. The
    /// first that fails is the last. On a machine that another cluster holds nothing is run.
    ///
    /// # Errors
    /// [`Error::Step`] with the name of the script that failed and the end of what it printed; [`Error::Held`].
    pub async fn run_once(
        &self,
        scripts: &[OneOff],
        environment: &[(String, String)],
        limit: Duration,
    ) -> Result<(), Error> {
        let cluster = self.identity.cluster.as_str();
        let text = unless_held(HOLDER, cluster) + &rendered(PLACE, scripts, environment, limit);
        let count = u32::try_from(scripts.len()).unwrap_or(u32::MAX);
        let deadline = limit.saturating_mul(count) + Duration::from_secs(60);
        let (output, errors) = self.ask(&text, deadline, "scripts").await?;
        let text = readable(&output);
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        match first.split_once(' ') {
            None if first == "ok" => Ok(()),
            Some(("held", by)) => {
                let (cluster, name) = by.split_once(' ').unwrap_or((by, ""));
                Err(Error::Held {
                    host: self.name().into(),
                    cluster: cluster.to_owned(),
                    name: name.to_owned(),
                })
            }
            Some(("failed", how)) => {
                let (code, name) = how.split_once(' ').unwrap_or((how, ""));
                let reason = match code {
                    // Of timeout itself, and of what it had to kill.
                    "124" | "137" | "143" => format!("it took longer than {} s", limit.as_secs()),
                    code => format!("it ended with {code}"),
                };
                let said = rest.trim();
                Err(Error::Step {
                    host: self.name().into(),
                    step: format!("script {name}"),
                    output: match said {
                        "" => reason,
                        said => format!("{reason}\n{said}"),
                    },
                    report: Box::default(),
                })
            }
            _ => Err(self.garbled(&readable(&[output, errors].concat()))),
        }
    }
}

/// Ends the shell on a machine that another cluster than this one holds.
fn unless_held(holder: &str, cluster: &str) -> String {
    format!(
        "if [ -f {holder} ] && IFS=' ' read -r held name <{holder} && [ -n \"$held\" ] && [ \"$held\" != {} ]; then\n  \
         echo \"held $held $name\"; exit 0\nfi\n",
        quote(cluster)
    )
}

fn rendered(
    place: &str,
    scripts: &[OneOff],
    environment: &[(String, String)],
    limit: Duration,
) -> String {
    let mut text = format!(
        "umask 077\n\
         export PATH=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH\"\n\
         d=$(mktemp -d {place}.XXXXXX) && cd \"$d\" && mkdir s && cd s || exit\n\
         trap 'cd /; rm -rf \"$d\"' EXIT\n\
         trap 'exit 1' HUP INT PIPE TERM\n\
         run() {{\n  timeout -k 5 {} sh -c '\"$0\"' \"./$1\" >../out 2>&1 </dev/null && return\n  \
         echo \"failed $? $1\"; tail -c 4000 ../out; exit 0\n}}\n",
        limit.as_secs().max(1)
    );
    for (name, value) in environment {
        let _ = writeln!(text, "export {name}={}", quote(value));
    }
    for script in scripts {
        let name = quote(&script.name);
        let body = BASE64_STANDARD.encode(&script.bytes);
        let _ = writeln!(
            text,
            "base64 -d >./{name} <<'END' && chmod 700 ./{name} || exit"
        );
        // Lines of a length that every base64 reads.
        for line in body.as_bytes().chunks(76) {
            text.extend(line.iter().map(|byte| char::from(*byte)));
            text.push('\n');
        }
        text += "END\n";
    }
    for script in scripts {
        let _ = writeln!(text, "run {}", quote(&script.name));
    }
    text + "echo ok\n"
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::{Command, Stdio},
        time::Instant,
    };

    use super::*;

    const SHELLS: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "sh"]];

    fn scripts_of(scripts: &[(&str, &str)]) -> Vec<OneOff> {
        let one = |(name, text): &(&str, &str)| OneOff {
            name: (*name).to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        scripts.iter().map(one).collect()
    }

    /// What each shell answers, and whether the place is clean afterwards.
    fn answers(scripts: &[(&str, &str)], limit: Duration) -> Vec<String> {
        let scripts = scripts_of(scripts);
        let environment = [("EGGO_NODE_NAME".to_owned(), "it's m0".to_owned())];
        let place = tempfile::tempdir().unwrap();
        let text = rendered(
            place.path().join("x").to_str().unwrap(),
            &scripts,
            &environment,
            limit,
        );
        let answers = SHELLS.map(|shell| {
            let output = Command::new(shell[0])
                .args(&shell[1..])
                .args(["-c", "eval \"$0\"", &text])
                .output()
                .unwrap();
            let left = fs::read_dir(place.path()).unwrap().count();
            assert_eq!(left, 0, "{shell:?} left something");
            String::from_utf8(output.stdout).unwrap()
        });
        answers.to_vec()
    }

    #[test]
    fn scripts_run_in_order_beside_each_other() {
        let long = format!(
            "# {}\n[ \"$EGGO_NODE_NAME\" = \"it's m0\" ]",
            "x".repeat(5000)
        );
        let scripts = [
            ("a.sh", "echo one >note; echo out; echo err >&2"),
            (
                "b c.bash",
                "#!/bin/bash\n[[ $(<note) == one && -x ./a.sh ]]",
            ),
            ("long.sh", &long),
        ];
        let limit = Duration::from_secs(20);
        assert_eq!(answers(&scripts, limit), ["ok\n"; 3]);
    }

    #[test]
    fn nothing_runs_on_a_machine_that_another_cluster_holds() {
        let place = tempfile::tempdir().unwrap();
        let holder = place.path().join("cluster");
        let text = unless_held(holder.to_str().unwrap(), "c1") + "echo ok\n";
        let cases = [
            (None, "ok\n"),
            (Some(""), "ok\n"),
            (Some("c1 lab\n"), "ok\n"),
            (Some("c2 other\n"), "held c2 other\n"),
        ];
        for (held, expected) in cases {
            if let Some(held) = held {
                fs::write(&holder, held).unwrap();
            }
            for shell in SHELLS {
                let output = Command::new(shell[0])
                    .args(&shell[1..])
                    .args(["-c", "eval \"$0\"", &text])
                    .output()
                    .unwrap();
                let said = String::from_utf8(output.stdout).unwrap();
                assert_eq!(said, expected, "{shell:?} {held:?}");
            }
        }
    }

    #[test]
    fn the_first_that_fails_is_the_last_and_is_heard() {
        let scripts = [("a.sh", "echo before; exit 7"), ("b.sh", "echo never")];
        for answer in answers(&scripts, Duration::from_secs(20)) {
            assert_eq!(answer, "failed 7 a.sh\nbefore\n");
        }
        let scripts = [("slow.sh", "echo begun; exec sleep 60")];
        for answer in answers(&scripts, Duration::from_secs(1)) {
            let (first, rest) = answer.split_once('\n').unwrap();
            assert!(
                [
                    "failed 124 slow.sh",
                    "failed 137 slow.sh",
                    "failed 143 slow.sh"
                ]
                .contains(&first),
                "{first}"
            );
            assert_eq!(rest, "begun\n");
        }
    }

    /// Whoever would hear the answer is gone, or the shell itself is told to end.
    #[test]
    fn nothing_stays_when_the_connection_is_gone() {
        for shell in SHELLS {
            for signal in ["PIPE", "TERM"] {
                let place = tempfile::tempdir().unwrap();
                let at = place.path().join("x");
                let begun = place.path().join("begun");
                let go = place.path().join("go");
                // It ends when it may, or after a minute.
                let script = format!(
                    "echo >{}; for i in {}; do [ ! -e {} ] || break; sleep 0.1; done",
                    begun.display(),
                    "x ".repeat(600),
                    go.display()
                );
                let scripts = scripts_of(&[("a.sh", &script)]);
                let limit = Duration::from_secs(120);
                let text = rendered(at.to_str().unwrap(), &scripts, &[], limit);
                let mut child = Command::new(shell[0])
                    .args(&shell[1..])
                    .args(["-c", "eval \"$0\"", &text])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                let end = Instant::now() + Duration::from_secs(60);
                while !begun.exists() {
                    assert!(Instant::now() < end, "{shell:?} did not begin");
                    std::thread::sleep(Duration::from_millis(20));
                }
                if signal == "PIPE" {
                    drop(child.stdout.take());
                } else {
                    let pid = child.id().to_string();
                    let kill = ["-c", "kill -s \"$0\" \"$1\"", signal, &pid];
                    assert!(Command::new("sh").args(kill).status().unwrap().success());
                }
                fs::write(&go, "").unwrap();
                assert!(!child.wait().unwrap().success(), "{shell:?} {signal}");
                for file in [&begun, &go] {
                    fs::remove_file(file).unwrap();
                }
                let left = fs::read_dir(place.path()).unwrap().count();
                assert_eq!(left, 0, "{shell:?} left something after SIG{signal}");
            }
        }
    }
}
