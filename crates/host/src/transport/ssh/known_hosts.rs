//! Files of host keys in OpenSSH's format: read, asked, and added to.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use russh::keys::{PublicKey, parse_public_key_base64};

/// A line that speaks of the host asked for.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) key: PublicKey,
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The host has this key.
    Known,
    /// The key is revoked.
    Revoked,
    /// A certificate authority. We ask for no certificates.
    Authority,
}

/// A host as such files name it.
pub(super) fn host_name(host: &str, port: u16) -> String {
    let host = host.to_lowercase();
    match port {
        22 => host,
        _ => format!("[{host}]:{port}"),
    }
}

/// What a file says of a host. A file that is not there says nothing.
pub(super) fn read(file: &Path, host: &str) -> io::Result<Vec<Entry>> {
    match fs::read(file) {
        Ok(text) => Ok(entries(&String::from_utf8_lossy(&text), file, host)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn entries(text: &str, file: &Path, host: &str) -> Vec<Entry> {
    let entry = |(number, line): (usize, &str)| {
        let mut words = line.split_whitespace().peekable();
        let kind = match *words.peek()? {
            comment if comment.starts_with('#') => return None,
            "@revoked" => Kind::Revoked,
            "@cert-authority" => Kind::Authority,
            mark if mark.starts_with('@') => return None,
            _ => Kind::Known,
        };
        if kind != Kind::Known {
            words.next();
        }
        let patterns = words.next()?;
        let (_algorithm, key) = (words.next()?, words.next()?);
        if !names(patterns, host) {
            return None;
        }
        Some(Entry {
            kind,
            // A kind of key that we do not know is a line that says nothing to us.
            key: parse_public_key_base64(key).ok()?,
            file: file.to_owned(),
            line: number + 1,
        })
    };
    text.lines().enumerate().filter_map(entry).collect()
}

/// Whether a list of patterns means the host: at least one does, and none that begins with `!`.
fn names(patterns: &str, host: &str) -> bool {
    let mut meant = false;
    for pattern in patterns.split(',') {
        if let Some(pattern) = pattern.strip_prefix('!') {
            if matches(&pattern.to_lowercase(), host) {
                return false;
            }
        } else if let Some(hashed) = pattern.strip_prefix("|1|") {
            meant |= is_hash_of(hashed, host).unwrap_or(false);
        } else {
            meant |= matches(&pattern.to_lowercase(), host);
        }
    }
    meant
}

/// `salt|hash`, both in base64: HMAC-SHA1 of the name, as OpenSSH's `HashKnownHosts` writes it.
fn is_hash_of(hashed: &str, host: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let salt = BASE64_STANDARD.decode(salt).ok()?;
    let hash = BASE64_STANDARD.decode(hash).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, host.as_bytes(), &hash).is_ok())
}

/// `*` stands for anything, `?` for one character. Steps back to the last `*` only, so that no
/// pattern takes long.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Adds a host's key, unless by now there is one: then what is there. Whole lines only, also
/// when many processes do so at once or one is killed.
pub(super) fn record(file: &Path, host: &str, key: &PublicKey) -> io::Result<Vec<Entry>> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    // The directory is the lock: nothing is left behind, and the file itself is replaced.
    let lock = File::open(directory)?;
    lock.lock()?;
    let there = read(file, host)?;
    if there.iter().any(|entry| entry.kind != Kind::Authority) {
        return Ok(there);
    }
    let mut text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let key = key.to_openssh().map_err(io::Error::other)?;
    let words: Vec<_> = key.split(' ').take(2).collect();
    text.push_str(&format!("{host} {}\n", words.join(" ")));
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = directory.join(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&fresh)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    fs::rename(&fresh, file)?;
    lock.sync_all()?;
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const ONE: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const OTHER: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";

    fn lines_for(text: &str, host: &str) -> Vec<usize> {
        let entries = entries(text, Path::new("f"), host);
        entries.iter().map(|entry| entry.line).collect()
    }

    #[test]
    fn lines_are_found_by_every_way_of_naming() {
        let text = format!(
            "# comment\n\nplain,10.0.0.1 ssh-ed25519 {ONE} comment\n[plain]:2222 ssh-ed25519 {OTHER}\n\
             *.lab,!bad.lab ssh-ed25519 {ONE}\n@revoked * ssh-ed25519 {OTHER}\nplain junk junk\n\
             @cert-authority *.lab ssh-ed25519 {ONE}\nshort\n"
        );
        assert_eq!(lines_for(&text, "plain"), [3, 6]);
        assert_eq!(lines_for(&text, "10.0.0.1"), [3, 6]);
        assert_eq!(lines_for(&text, &host_name("Plain", 2222)), [4, 6]);
        assert_eq!(lines_for(&text, "a.lab"), [5, 6, 8]);
        assert_eq!(lines_for(&text, "bad.lab"), [6, 8]);
        let kinds: Vec<_> = entries(&text, Path::new("f"), "a.lab")
            .iter()
            .map(|entry| entry.kind)
            .collect();
        assert_eq!(kinds, [Kind::Known, Kind::Revoked, Kind::Authority]);
    }

    #[test]
    fn openssh_s_hashes_are_understood() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known_hosts");
        fs::write(
            &file,
            format!("secret.lab ssh-ed25519 {ONE}\n[secret.lab]:2200 ssh-ed25519 {OTHER}\n"),
        )
        .unwrap();
        let hashed = Command::new("ssh-keygen")
            .arg("-H")
            .arg("-f")
            .arg(&file)
            .output()
            .unwrap();
        assert!(hashed.status.success(), "{hashed:?}");
        assert!(!fs::read_to_string(&file).unwrap().contains("secret"));
        let found = |host: &str| {
            read(&file, host)
                .unwrap()
                .iter()
                .map(|e| e.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("secret.lab"), [1]);
        assert_eq!(found(&host_name("secret.lab", 2200)), [2]);
        assert_eq!(found("other.lab"), [] as [usize; 0]);
    }

    #[test]
    fn patterns_cost_little() {
        assert!(matches("a*b?c", "axxbyc"));
        assert!(!matches("a*b?c", "axxbc"));
        assert!(matches("*", ""));
        assert!(!matches(&"*a".repeat(2000), &"a".repeat(1999)));
    }

    #[test]
    fn many_record_at_once_and_no_line_is_lost() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/known_hosts");
        let key = parse_public_key_base64(ONE).unwrap();
        std::thread::scope(|scope| {
            for number in 0..40 {
                let (file, key) = (&file, &key);
                scope.spawn(move || {
                    assert!(
                        record(file, &format!("host-{number}"), key)
                            .unwrap()
                            .is_empty()
                    );
                });
            }
        });
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 40, "{text}");
        assert!(text.lines().all(|line| line.ends_with(ONE)), "{text}");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let other = parse_public_key_base64(OTHER).unwrap();
        let there = record(&file, "host-7", &other).unwrap();
        assert_eq!(there[0].key.key_data(), key.key_data());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
