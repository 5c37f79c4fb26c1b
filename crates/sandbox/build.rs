//! Embeds the fixtures scripts, so that the binary works without the repository beside it.

use std::{env, fmt::Write as _, fs, io, os::unix::fs::PermissionsExt as _, path::Path};

fn main() -> io::Result<()> {
    let manifest_dir = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let root = Path::new(&manifest_dir)
        .join("../../fixtures")
        .canonicalize()?;
    // Relative, so that another clone with the same target directory looks at its own files.
    println!("cargo::rerun-if-changed=../../fixtures");

    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();

    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let executable = fs::metadata(file)?.permissions().mode() & 0o111 != 0;
        writeln!(
            table,
            "    File {{ path: {name:?}, executable: {executable}, bytes: include_bytes!({file:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("fixture_scripts.rs"), table)
}

fn collect(dir: &Path, files: &mut Vec<std::path::PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
