//! A directory of an archive as it shall be on a machine.

use hatchery_host::{archive::Kind, path::MachinePath};

use super::{
    bundle::Bundle,
    placing::{Placing, machine_path, mode_of_directory, mode_of_file},
    problem::tell,
};
use crate::finding::Finding;

/// Places all that lies in a directory, and itself if it is listed.
pub(super) fn plant(bundle: &Bundle, directory: &str, target: &MachinePath, placing: &mut Placing) {
    let index = bundle.index();
    if let Some(entry) = index.get(directory) {
        placing.directory(target.clone(), mode_of_directory(entry.mode), directory);
    }
    for entry in index.below(directory) {
        let Some(name) = entry.path.get(directory.len() + 1..) else {
            continue;
        };
        let planted = machine_path(format!("{target}/{name}")).and_then(|path| {
            match &entry.kind {
                Kind::Directory => {
                    placing.directory(path, mode_of_directory(entry.mode), &entry.path);
                }
                Kind::File { .. } => {
                    let content = bundle.content(&entry.path)?;
                    placing.file(path, content, mode_of_file(entry.mode), &entry.path);
                }
                Kind::Symlink { target } if stays(name, target) => {
                    placing.link(path, target.to_string(), &entry.path);
                }
                Kind::Symlink { target } => return Err(leads_out(bundle, &entry.path, target)),
            }
            Ok(())
        });
        if let Err(problem) = planted {
            tell(&mut placing.problems, problem);
        }
    }
}

fn leads_out(bundle: &Bundle, link: &str, target: &str) -> Finding {
    bundle.problem(
        format!("has a link {link} to {target}, out of the directory that is installed"),
        "pack it again with the file in place of the link (tar --dereference)",
    )
}

/// Whether a link of this name stays in the tree it belongs to. No link lies below a link, so going up is
/// safe at the beginning; later it might start from wherever another link leads.
fn stays(name: &str, target: &str) -> bool {
    let depth = name.split('/').count() - 1;
    let parts = || {
        target
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
    };
    let up = parts().take_while(|part| *part == "..").count();
    !target.starts_with('/') && up <= depth && !parts().skip(up).any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::stays;

    #[test]
    fn a_link_stays_in_its_tree() {
        for (name, target) in [
            ("a", "b"),
            ("a", "./b/c"),
            ("d/a", "../b"),
            ("d/e/a", "../../b"),
        ] {
            assert!(stays(name, target), "{name} -> {target}");
        }
        for (name, target) in [
            ("a", "../b"),
            ("d/a", "../../b"),
            ("a", "/etc/passwd"),
            ("a", "b/../c"),
            ("d/a", ".././../b"),
        ] {
            assert!(!stays(name, target), "{name} -> {target}");
        }
    }
}
