//! Names of packages, files in archives, and URLs of manifests.

use crate::value::Mismatch;
use crate::walk::has_credentials;

pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Where a manifest is fetched from, perhaps with `#sha256=` and its checksum behind it. Without encryption anybody on the way
/// could answer, so there the checksum is needed.
pub(crate) fn url(text: &str) -> Result<String, Mismatch> {
    let checksum = text.split_once('#').map(|(_, checksum)| checksum);
    if let Some(checksum) = checksum {
        let digits = checksum.strip_prefix("sha256=");
        let is_sum =
            |sum: &str| sum.len() == 64 && sum.bytes().all(|b| b"0123456789abcdef".contains(&b));
        if !digits.is_some_and(is_sum) {
            return Err(Mismatch::new(
                "not a checksum",
                "write #sha256= and 64 hexadecimal digits as printed by sha256sum",
            ));
        }
    } else if text.starts_with("http://") {
        return Err(Mismatch::new(
            "fetched without encryption, so it could be tampered with on the way",
            "use https://, or append #sha256= and its checksum as printed by sha256sum",
        ));
    }
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_graphic() && !b"'\"\\`<>{}|^$".contains(&b));
    if has_credentials(text) {
        return Err(Mismatch::new(
            "a URL with a password in it",
            "fetch the file and put it into the archive",
        ));
    }
    match host {
        Some(host) if plain && !host.is_empty() && !host.starts_with('/') => Ok(text.to_owned()),
        _ => Err(Mismatch::new(
            "not a URL that can be fetched",
            "start it with https:// and write no spaces",
        )),
    }
}

pub(super) fn package(text: &str) -> Result<String, Mismatch> {
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._+-~".contains(&b));
    if plain && text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        Ok(text.to_owned())
    } else {
        Err(Mismatch::new(
            "not the name of a package",
            "write only the package's name, without version, path or *",
        ))
    }
}

/// As machines are asked for it: no version, no group.
pub(super) fn repository_package(text: &str) -> Result<String, Mismatch> {
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b));
    if plain && text.len() <= 128 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(text.to_owned());
    }
    let remedy = if text.contains('=') {
        "write only the package's name: the repository decides the version; for a specific one use a file in the archive with type pkg"
    } else {
        "write the name as the package manager knows it"
    };
    Err(Mismatch::new("not the name of a package", remedy))
}

/// A path inside the archive.
pub(super) fn archive_file(text: &str) -> Result<String, Mismatch> {
    let outside =
        text.starts_with('/') || text.split('/').any(|part| part == ".." || part.is_empty());
    let odd = text
        .chars()
        .any(|c| c.is_control() || "*?'\"\\`$".contains(c));
    if outside || odd {
        return Err(Mismatch::new(
            "not a file in the archive",
            "write its path in the archive, without a leading /",
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_type() {
        assert!(package("libnetfilter_cthelper").is_ok() && package("g++").is_ok());
        for bad in ["", "-rf", "a/b", "a*", "a b", "$(id)"] {
            assert!(
                package(bad).is_err() && repository_package(bad).is_err(),
                "{bad}"
            );
        }
        assert!(repository_package("libstdc++6").is_ok());
        for bad in ["nginx=1.18.0-6", "@development", "a:amd64", "a~1", "a^1"] {
            assert!(repository_package(bad).is_err(), "{bad}");
        }
        assert!(archive_file("calico.yaml").is_ok() && archive_file("a/b c").is_ok());
        for bad in ["/a", "../a", "a/../b", "a//b", "a\nb", "*.sh"] {
            assert!(archive_file(bad).is_err(), "{bad}");
        }
        assert!(url("https://a.b/c?d=e").is_ok());
        let sum = "0123456789abcdef".repeat(4);
        for scheme in ["http", "https"] {
            assert!(url(&format!("{scheme}://a/b.yaml#sha256={sum}")).is_ok());
            for bad in ["#", "#part", "#sha256=", "#sha256=abc", "#sha256=G"] {
                assert!(url(&format!("{scheme}://a/b.yaml{bad}")).is_err(), "{bad}");
            }
        }
        assert!(url("http://a/b.yaml").is_err() && url("http://a/?x=#sha256=1").is_err());
        assert!(url("ftp://a").is_err() && url("https://").is_err() && url("https://a b").is_err());
    }
}
