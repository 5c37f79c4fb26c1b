//! Files that are there wholly or not at all, also after a power cut.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

/// The prefix of files that are being written. One that is found while nothing is written may be removed.
pub(super) const UNFINISHED: &str = ".writing-";

/// Sets a file's content. Only its owner can read it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Made with mode 0600.
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Makes lasting what was made, renamed or removed in a directory.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a directory, and those above it, that only its owner can enter.
pub(super) fn make_private_dir(path: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut place = path;
    while !place.exists() {
        missing.push(place);
        match place.parent() {
            Some(parent) => place = parent,
            None => break,
        }
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    for made in missing {
        if let Some(parent) = made
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            sync_directory(parent)?;
        }
    }
    Ok(())
}

/// Removes what a writer left that was killed.
pub(super) fn remove_unfinished(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
