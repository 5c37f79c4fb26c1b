//! What both machines answer, and what is on them.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::report::{Answer, Line};

/// The words of programs are their own; which step failed is not.
pub(super) fn same(real: &Answer, memory: &Answer, when: &str) {
    let plain = |line: &Line| match line {
        Line::Failed(number, _) => Line::Failed(*number, String::new()),
        line => line.clone(),
    };
    let steps = |answer: &Answer| answer.steps.values().map(plain).collect::<Vec<_>>();
    let others = |answer: &Answer| {
        let told = |line: &&Line| !matches!(line, Line::Begin(_) | Line::Why(_));
        answer
            .others
            .iter()
            .filter(told)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(steps(real), steps(memory), "{when}: {real:?} {memory:?}");
    assert_eq!(others(real), others(memory), "{when}: {real:?} {memory:?}");
    assert_eq!(real.end, memory.end, "{when}");
    assert!(real.end.is_some(), "{when}: {real:?}");
}

pub(super) fn assert_maps(
    real: &BTreeMap<String, String>,
    memory: &BTreeMap<String, String>,
    when: &str,
) {
    let differing: Vec<_> = real
        .keys()
        .chain(memory.keys())
        .filter(|at| real.get(*at) != memory.get(*at))
        .map(|at| {
            format!(
                "{at}: really {:?}, in memory {:?}",
                real.get(at),
                memory.get(at)
            )
        })
        .collect();
    assert!(differing.is_empty(), "{when}:\n{}", differing.join("\n"));
}

/// What is below a directory, in the words of [`Memory::paths`], without our record and what stands in for a kernel
/// and for programs.
pub(super) fn paths(root: &Path) -> BTreeMap<String, String> {
    fn visit(root: &Path, at: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(at).unwrap() {
            let entry = entry.unwrap().path();
            let name = format!("/{}", entry.strip_prefix(root).unwrap().to_str().unwrap());
            if ["/fake", "/proc", "/sys", "/var/lib/hatchery"].contains(&name.as_str()) {
                continue;
            }
            let metadata = fs::symlink_metadata(&entry).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (0, 0), "{name}");
            let looks = format!("{:o} root root", metadata.mode() & 0o7777);
            let shown = if metadata.is_symlink() {
                format!("-> {}", fs::read_link(&entry).unwrap().display())
            } else if metadata.is_dir() {
                visit(root, &entry, found);
                format!("{looks} directory")
            } else {
                format!("{looks} {:?}", fs::read_to_string(&entry).unwrap())
            };
            found.insert(name, shown);
        }
    }
    let mut found = BTreeMap::new();
    visit(root, root, &mut found);
    found
}

pub(super) fn sysctl(root: &Path, below: &str) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/sys").join(below)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
