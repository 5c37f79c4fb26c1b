//! What files on a machine contain. Nothing is changed by asking.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{Error, Machine};
use crate::{path::MachinePath, quote::quote, report::readable};

/// A larger file is not told.
const LARGEST: usize = 64 * 1024;

/// The number of files listed at once, which stays below the maximum size of an answer.
const FILES: usize = 32;

const SCRIPT: &str = r#"
LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
number=0
for path; do
  number=$((number + 1))
  [ -f "$path" ] && size=$(wc -c <"$path") && [ "$size" -le "$largest" ] || continue
  echo "file $number"
  base64 <"$path" || exit
done
echo end
"#;

impl Machine {
    /// The contents of regular files that are there and not larger than 64 KiB. `deadline` is for a few dozen of them.
    ///
    /// # Errors
    /// When the machine cannot be asked, or answers nonsense.
    pub async fn contents(
        &self,
        paths: &[MachinePath],
        deadline: Duration,
    ) -> Result<BTreeMap<MachinePath, Vec<u8>>, Error> {
        let mut contents = BTreeMap::new();
        for paths in paths.chunks(FILES) {
            let (output, errors) = self.ask(&question(paths), deadline, "contents").await?;
            let found = parse(&output, paths);
            // What a file says is not repeated.
            contents.extend(found.ok_or_else(|| self.garbled(&readable(&errors)))?);
        }
        Ok(contents)
    }
}

fn question(paths: &[MachinePath]) -> String {
    let mut text = format!("largest={LARGEST}\nset --");
    for path in paths {
        let _ = write!(text, " {}", quote(path.as_str()));
    }
    text + SCRIPT
}

/// Nothing when it is not an answer to the question.
fn parse(output: &[u8], paths: &[MachinePath]) -> Option<BTreeMap<MachinePath, Vec<u8>>> {
    let text = str::from_utf8(output).ok()?;
    let mut contents = BTreeMap::new();
    let mut file: Option<(&MachinePath, String)> = None;
    let mut is_complete = false;
    for line in text.lines() {
        let begins = line.strip_prefix("file ");
        if begins.is_some() || line == "end" {
            if let Some((path, encoded)) = file.take() {
                contents.insert(path.clone(), BASE64_STANDARD.decode(encoded).ok()?);
            }
            is_complete = line == "end";
        }
        match begins {
            Some(number) => {
                let place = number.parse::<usize>().ok()?.checked_sub(1)?;
                file = Some((paths.get(place)?, String::new()));
            }
            None if is_complete => {}
            None => file.as_mut()?.1.push_str(line),
        }
    }
    is_complete.then_some(contents)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn contents_come_back_to_the_byte() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            MachinePath::new(place.path().join(name).to_str().unwrap().to_owned()).unwrap()
        };
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        fs::write(place.path().join("it's a file"), &bytes).unwrap();
        fs::write(place.path().join("empty"), "").unwrap();
        fs::write(place.path().join("large"), vec![b'x'; LARGEST + 1]).unwrap();
        fs::create_dir(place.path().join("directory")).unwrap();
        let names = ["gone", "it's a file", "large", "directory", "empty"];
        let paths = names.map(path);
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            let output = Command::new(shell[0])
                .args(&shell[1..])
                .args(["-c", "eval \"$0\"", &question(&paths)])
                .output()
                .unwrap();
            let contents = parse(&output.stdout, &paths).unwrap();
            let found: Vec<_> = contents.into_iter().collect();
            let expected = [
                (path("empty"), Vec::new()),
                (path("it's a file"), bytes.clone()),
            ];
            assert_eq!(found, expected, "{shell:?}");
        }
    }

    #[test]
    fn nonsense_is_no_answer() {
        let paths = [MachinePath::new("/a").unwrap()];
        for bad in [
            "",
            "file 1\nYQ==\n",
            "file 2\nend\n",
            "file 0\nend\n",
            "file 1\n!\nend\n",
            "YQ==\nend\n",
        ] {
            assert_eq!(parse(bad.as_bytes(), &paths), None, "{bad:?}");
        }
        assert!(parse(b"file 1\nYQ==\nend\n", &paths).is_some());
    }
}
