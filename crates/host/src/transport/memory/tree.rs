//! The files of a machine in memory, and what a path leads to, through links as well.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// What lies at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File(Looks, Arc<[u8]>),
    Directory(Looks),
    Link(String),
}

/// Mode, user and group, as `stat -c '%a %U %G'` prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Looks {
    pub(super) mode: u32,
    pub(super) owner: Box<str>,
    pub(super) group: Box<str>,
}

impl Looks {
    /// As the machine's script prints it: by number, where the machine in memory knows one.
    pub(super) fn told(&self) -> String {
        let number = |name: &str| {
            if name == "root" {
                "0".to_owned()
            } else {
                name.to_owned()
            }
        };
        let (owner, group) = (number(&self.owner), number(&self.group));
        format!("mode {:o} {owner} {group}", self.mode)
    }

    pub(super) fn root(mode: u32) -> Self {
        Self {
            mode,
            owner: "root".into(),
            group: "root".into(),
        }
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:o} {} {}", self.mode, self.owner, self.group)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(looks, bytes) => write!(f, "{looks} {:?}", String::from_utf8_lossy(bytes)),
            Self::Directory(looks) => write!(f, "{looks} directory"),
            Self::Link(target) => write!(f, "-> {target}"),
        }
    }
}

/// Every node by its true path, which leads through directories only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

/// As many links one after the other as Linux follows.
const MOST_LINKS: usize = 40;

impl Tree {
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Where something at this path lies or would lie; nowhere when its directory is not there.
    fn place(&self, path: &str) -> Option<String> {
        let (parent, name) = path.rsplit_once('/')?;
        let parent = self.follow(parent, 0)?;
        self.is_directory_itself(&parent)
            .then(|| format!("{parent}/{name}"))
    }

    /// The true path of what is there at the end of all links.
    fn follow(&self, path: &str, links: usize) -> Option<String> {
        let Some((parent, name)) = path.rsplit_once('/') else {
            return Some(String::new());
        };
        let parent = self.follow(parent, links)?;
        let place = format!("{parent}/{name}");
        match self.nodes.get(&place)? {
            Node::Link(_) if links == MOST_LINKS => None,
            Node::Link(target) if target.starts_with('/') => self.follow(&plain(target), links + 1),
            Node::Link(target) => self.follow(&plain(&format!("{parent}/{target}")), links + 1),
            Node::File(..) | Node::Directory(_) => Some(place),
        }
    }

    fn is_directory_itself(&self, place: &str) -> bool {
        place.is_empty() || matches!(self.nodes.get(place), Some(Node::Directory(_)))
    }

    /// What lies at the path itself, be it a link.
    pub(super) fn at(&self, path: &str) -> Option<&Node> {
        self.nodes.get(&self.place(path)?)
    }

    /// What the path leads to.
    pub(super) fn behind(&self, path: &str) -> Option<&Node> {
        self.nodes.get(&self.follow(path, 0)?)
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        matches!(self.behind(path), Some(Node::Directory(_)))
    }

    /// The bytes of the file that the path leads to.
    pub(super) fn bytes(&self, path: &str) -> Option<&Arc<[u8]>> {
        match self.behind(path)? {
            Node::File(_, bytes) => Some(bytes),
            Node::Directory(_) | Node::Link(_) => None,
        }
    }

    /// In place of a file or link that is there.
    pub(super) fn put(&mut self, path: &str, node: Node) -> Result<(), String> {
        let place = self
            .place(path)
            .ok_or_else(|| format!("cannot write '{path}': No such file or directory"))?;
        if self.is_directory_itself(&place) {
            return Err(format!("cannot overwrite directory '{path}'"));
        }
        self.nodes.insert(place, node);
        Ok(())
    }

    pub(super) fn make_directory(&mut self, path: &str, looks: Looks) -> Result<(), String> {
        let fault = |why| format!("mkdir: cannot create directory '{path}': {why}");
        let place = self
            .place(path)
            .ok_or_else(|| fault("No such file or directory"))?;
        if self.nodes.contains_key(&place) {
            return Err(fault("File exists"));
        }
        self.nodes.insert(place, Node::Directory(looks));
        Ok(())
    }

    /// With every directory above it, as `mkdir -p`.
    pub(super) fn make_directories(&mut self, path: &str, mode: u32) -> Result<(), String> {
        if path.is_empty() || self.is_directory(path) {
            return Ok(());
        }
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.make_directories(parent, mode)?;
        }
        self.make_directory(path, Looks::root(mode))
    }

    /// As `rm -f`: what is absent is not an error, a directory is.
    pub(super) fn remove(&mut self, path: &str) -> Result<(), String> {
        match self.place(path) {
            Some(place) if self.is_directory_itself(&place) => {
                Err(format!("rm: cannot remove '{path}': Is a directory"))
            }
            Some(place) => {
                self.nodes.remove(&place);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Only an empty one, and no link to one.
    pub(super) fn remove_directory(&mut self, path: &str) -> bool {
        let place = self
            .place(path)
            .filter(|place| self.is_directory_itself(place));
        let Some(place) = place.filter(|place| self.names_below(place).is_empty()) else {
            return false;
        };
        self.nodes.remove(&place).is_some()
    }

    /// The names in the directory that the path leads to.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        self.follow(path, 0)
            .map(|place| self.names_below(&place))
            .unwrap_or_default()
    }

    fn names_below(&self, place: &str) -> Vec<String> {
        let prefix = format!("{place}/");
        let below = self.nodes.range(prefix.clone()..);
        below
            .map_while(|(path, _)| path.strip_prefix(&prefix))
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
            .collect()
    }

    /// With everything below it; links are not followed.
    pub(super) fn remove_all(&mut self, path: &str) {
        let Some(place) = self.place(path) else {
            return;
        };
        let below = format!("{place}/");
        self.nodes
            .retain(|path, _| *path != place && !path.starts_with(&below));
    }

    /// Of what the path leads to.
    pub(super) fn set_looks(&mut self, path: &str, new: &Looks) {
        let place = self.follow(path, 0);
        match place.and_then(|place| self.nodes.get_mut(&place)) {
            Some(Node::File(looks, _) | Node::Directory(looks)) => looks.clone_from(new),
            Some(Node::Link(_)) | None => {}
        }
    }
}

/// Without `.` and `..`.
fn plain(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
        .iter()
        .fold(String::new(), |path, name| path + "/" + name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Node {
        Node::File(Looks::root(0o644), (*b"x").into())
    }

    #[test]
    fn a_path_leads_through_links() {
        let mut tree = Tree::default();
        tree.make_directories("/a/b", 0o755).unwrap();
        tree.put("/a/link", Node::Link("../a/./b".into())).unwrap();
        tree.put("/a/link/file", file()).unwrap();
        assert_eq!(tree.at("/a/b/file"), Some(&file()));
        tree.put("/loop", Node::Link("/loop".into())).unwrap();
        assert_eq!(tree.behind("/loop"), None);
        assert!(tree.put("/loop/x", file()).is_err());
        assert!(tree.put("/a/b", file()).is_err());
        assert!(
            tree.make_directory("/a/b/file/x", Looks::root(0o755))
                .is_err()
        );
    }

    #[test]
    fn only_an_empty_directory_is_removed() {
        let mut tree = Tree::default();
        tree.make_directories("/a/b", 0o755).unwrap();
        tree.make_directories("/a.b", 0o755).unwrap();
        tree.put("/l", Node::Link("a".into())).unwrap();
        assert!(!tree.remove_directory("/a"));
        assert!(!tree.remove_directory("/l"));
        assert_eq!(tree.names("/l"), ["b"]);
        tree.remove_all("/a/b");
        assert!(tree.remove_directory("/a"));
        assert!(tree.is_directory("/a.b"));
    }
}
