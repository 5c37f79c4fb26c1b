//! What a machine says is Hatchery's there. Its words are bounded, and believed only as far as they can be checked.

use crate::{content::Hash, report::readable, script::RecordKey};

/// What of a machine is Hatchery's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// Id and name of the cluster that holds the machine.
    pub cluster: Option<(String, String)>,
    /// Everything in its record.
    pub resources: Vec<ManagedResource>,
}

/// One resource of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedResource {
    /// The key of its record on the machine.
    pub key: RecordKey,
    /// Such as `file` or `unit`.
    pub kind: String,
    /// Its path or name.
    pub name: String,
    /// A file's hash, or `absent` when no file is there, be it for a link; a unit's states; otherwise nothing.
    pub state: Option<String>,
    /// How many bytes the file has now.
    pub size: Option<u64>,
    /// The hash of what Hatchery put there: that of the last run that came to its end.
    pub put: Option<String>,
    /// All of a file `*.crt` whose bytes are certificates as text and nothing secret; its hash is the one in `state`.
    pub text: Option<String>,
    /// Who needs it.
    pub owners: Vec<String>,
}

/// The line behind which the facts begin.
pub(crate) const END: &str = "managed-end\n";

/// The largest certificate that is reported, in bytes; `prelude/managed.sh` has the number too.
const LONGEST_TEXT: usize = 16 * 1024;

impl Managed {
    /// Reads an answer up to [`END`], which no line of the record and no text can hold, and gives what follows it.
    pub(super) fn split(output: &[u8]) -> Option<(Self, &[u8])> {
        let mark = END.as_bytes();
        let start = match output.starts_with(mark) {
            true => 0,
            false => {
                let at_line = |part: &[u8]| part[0] == b'\n' && part[1..] == *mark;
                output.windows(mark.len() + 1).position(at_line)? + 1
            }
        };
        let managed = Self::read(&readable(&output[..start]));
        Some((managed, &output[start + mark.len()..]))
    }

    pub(crate) fn read(text: &str) -> Self {
        let mut managed = Self::default();
        let is_text = |line: &&str| line.starts_with('|');
        let mut lines = text.lines().skip_while(is_text).peekable();
        while let Some(line) = lines.next() {
            let mut told = String::new();
            while let Some(part) = lines.next_if(is_text) {
                // One byte too many is enough to refuse it.
                if told.len() <= LONGEST_TEXT {
                    told.push_str(&part[1..]);
                    told.push('\n');
                }
            }
            if let Some(cluster) = line.strip_prefix("cluster ") {
                let (id, name) = cluster.split_once(' ').unwrap_or((cluster, ""));
                managed.cluster = Some((id.into(), name.into()));
            } else if let Some(resource) = ManagedResource::read(line, told) {
                managed.resources.push(resource);
            }
        }
        managed
    }
}

impl ManagedResource {
    /// The line of a resource, and what followed it as its text.
    fn read(line: &str, text: String) -> Option<Self> {
        let mut words = line.splitn(7, ' ');
        let mut next = || words.next();
        let (kind, state, size, put) = (next()?, next()?, next()?, next()?);
        let (key, owners, name) = (RecordKey::parse(next()?)?, next()?, next()?);
        let is_file = kind == "file";
        let is_state = |word: &&str| match is_file {
            true => *word == "absent" || Hash::parse(word).is_ok(),
            false => *word != "-",
        };
        let state = Some(state).filter(is_state);
        let is_told = |text: &String| {
            let hash = Hash::digest(text.as_bytes());
            is_file && is_certificate(name, text.as_bytes()) && state == Some(hash.as_str())
        };
        Some(Self {
            key,
            kind: kind.into(),
            name: name.into(),
            state: state.map(str::to_owned),
            size: size.parse().ok().filter(|_| is_file),
            put: Hash::parse(put).ok().map(|hash| hash.as_str().to_owned()),
            text: Some(text).filter(is_told),
            owners: owners
                .split(',')
                .filter(|owner| !owner.is_empty())
                .map(str::to_owned)
                .collect(),
        })
    }
}

/// Whether the content of a file is reported: a certificate by its name and by every byte of it, without a private key.
pub(crate) fn is_certificate(name: &str, bytes: &[u8]) -> bool {
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
    let Some(text) = std::str::from_utf8(bytes).ok() else {
        return false;
    };
    name.ends_with(".crt")
        && text.len() <= LONGEST_TEXT
        && text.ends_with('\n')
        && bytes.iter().all(printable)
        && text
            .lines()
            .any(|line| line == "-----BEGIN CERTIFICATE-----")
        && !text.contains("PRIVATE KEY")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

    fn barred(text: &str) -> String {
        text.lines()
            .fold(String::new(), |all, line| all + "|" + line + "\n")
    }

    fn one(line: &str) -> Option<ManagedResource> {
        Managed::read(line).resources.pop()
    }

    #[test]
    fn a_certificate_is_told_whole() {
        let hash = Hash::digest(PEM.as_bytes());
        let line = format!("file {0} 60 {0} k1 a,b /etc/p k/x.crt\n", hash.as_str());
        let expected = ManagedResource {
            key: RecordKey::parse("k1").unwrap(),
            kind: "file".into(),
            name: "/etc/p k/x.crt".into(),
            state: Some(hash.as_str().into()),
            size: Some(60),
            put: Some(hash.as_str().into()),
            text: Some(PEM.into()),
            owners: vec!["a".into(), "b".into()],
        };
        let answer = format!(
            "cluster c1 one\n{line}{}unit active,enabled - - k2 a x.service\n",
            barred(PEM)
        );
        let managed = Managed::read(&answer);
        assert_eq!(managed.cluster, Some(("c1".into(), "one".into())));
        assert_eq!(managed.resources[0], expected);
        assert_eq!(
            managed.resources[1].state.as_deref(),
            Some("active,enabled")
        );
    }

    #[test]
    fn a_text_that_is_not_the_file_is_dropped() {
        let told = |name: &str, state: &str, text: &str| {
            one(&format!("file {state} 60 - k a {name}\n{}", barred(text)))
                .unwrap()
                .text
        };
        let hash = |text: &str| Hash::digest(text.as_bytes()).as_str().to_owned();
        let (key, long) = (PEM.replace("CERTIFICATE", "PRIVATE KEY"), PEM.repeat(300));
        assert_eq!(told("/x.crt", &hash(PEM), PEM).as_deref(), Some(PEM));
        for (name, state, text) in [
            ("/x.key", hash(PEM), PEM),
            ("/x.crt", hash("another"), PEM),
            ("/x.crt", "absent".into(), PEM),
            ("/x.crt", "-".into(), PEM),
            ("/x.crt", hash(&key), &key),
            ("/x.crt", hash(&(key.clone() + PEM)), &(key.clone() + PEM)),
            ("/x.crt", hash(&long), &long),
            ("/x.crt", hash("plain\n"), "plain\n"),
            (
                "/x.crt",
                hash(&PEM.replace("MIIB", "ü")),
                &PEM.replace("MIIB", "ü"),
            ),
            ("/x.crt", hash(""), ""),
        ] {
            assert_eq!(told(name, &state, text), None, "{name} {state} {text}");
        }
        let unit = format!("unit {} - - k a /x.crt\n{}", hash(PEM), barred(PEM));
        assert_eq!(one(&unit).unwrap().text, None);
        let nobodys = format!("{}file absent - - k a /x.crt\n", barred(PEM));
        assert_eq!(one(&nobodys).unwrap().text, None);
    }

    #[test]
    fn what_is_no_hash_and_no_number_is_dropped() {
        let upper = Hash::digest(b"x").as_str().to_uppercase();
        for word in ["", "x", "abc", &upper, "../../etc", "-"] {
            let found = one(&format!("file {word} {word} {word} k a /x")).unwrap();
            assert_eq!(
                (found.state, found.size, found.put),
                (None, None, None),
                "{word}"
            );
        }
        assert_eq!(one("file absent 1 - k a"), None);
        assert_eq!(one("|x\n|file absent 1 - k a /x"), None);
    }

    /// It is given back to the machine as a word of a script and names a file there.
    #[test]
    fn a_record_has_a_plain_name() {
        for good in ["k", "0a1b.kernel", "package-libstdc___12"] {
            let found = one(&format!("file absent - - {good} a /x")).unwrap();
            assert_eq!(found.key.to_string(), good);
        }
        let long = "k".repeat(201);
        for bad in ["", "-k", ".k", "../k", "k/k", "k@a", "$(k)", "k'", &long] {
            assert_eq!(one(&format!("file absent - - {bad} a /x")), None, "{bad}");
        }
    }

    #[test]
    fn the_end_is_a_line_of_its_own() {
        let split = |text: &'static str| Managed::split(text.as_bytes());
        let (managed, rest) =
            split("file absent - - k a /managed-end\n|managed-end\nmanaged-end\nrest").unwrap();
        assert_eq!((managed.resources.len(), rest), (1, &b"rest"[..]));
        let (managed, rest) = split("managed-end\nrest\nmanaged-end\n").unwrap();
        assert_eq!(
            (managed, rest),
            (Managed::default(), &b"rest\nmanaged-end\n"[..])
        );
        assert_eq!(split("a managed-end\n|managed-end\nmanaged-end"), None);
        assert_eq!(split(""), None);
    }

    proptest! {
        #[test]
        fn whatever_is_said_a_told_text_is_a_certificate(
            parts in prop::collection::vec(
                prop_oneof![
                    Just(format!("file {} 1 - k a /x.crt\n{}", Hash::digest(PEM.as_bytes()).as_str(), barred(PEM))),
                    Just(barred(PEM)),
                    Just(super::END.to_owned()),
                    "(file|unit|cluster)? ?[-a-f0-9]{0,3} [-0-9]{0,30} - [-.k/]{1,3} a /x.crt\n",
                    "(?s).{0,40}",
                    "\\|(?s).{0,40}\n",
                ],
                0..12,
            ),
        ) {
            let answer = parts.concat();
            if let Some((managed, rest)) = Managed::split(answer.as_bytes()) {
                prop_assert!(answer.as_bytes().ends_with(rest));
                for resource in managed.resources {
                    let Some(text) = &resource.text else { continue };
                    prop_assert!(is_certificate(&resource.name, text.as_bytes()));
                    let hash = Hash::digest(text.as_bytes());
                    prop_assert_eq!(resource.state.as_deref(), Some(hash.as_str()));
                }
            }
        }
    }
}
