//! Names of images, as the stores of runtimes list them.

/// The full name: `docker.io/library/x:1` for `x:1`. `None` for what is not a name.
pub(crate) fn full(reference: &str) -> Option<String> {
    let plain = reference
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte));
    let odd = reference.split('/').any(str::is_empty) || reference.len() > 512;
    if !plain || odd {
        return None;
    }
    let named = match reference.split_once('/') {
        Some((host, _)) if host == "localhost" || host.contains(['.', ':']) => reference.to_owned(),
        Some(_) => format!("docker.io/{reference}"),
        None => format!("docker.io/library/{reference}"),
    };
    // Docker's own registry goes by a second name.
    let named = match named.strip_prefix("index.docker.io/") {
        Some(rest) => full(rest)?,
        None => named,
    };
    let last = named.rsplit('/').next().unwrap_or_default();
    let tagged = match last.split_once([':', '@']) {
        Some((name, tag)) if name.is_empty() || tag.is_empty() => return None,
        Some(_) => named,
        None => format!("{named}:latest"),
    };
    Some(tagged)
}

/// A full name without Docker's registry, as Docker itself lists it.
pub(crate) fn without_docker_hub(full: &str) -> &str {
    full.strip_prefix("docker.io/library/")
        .or_else(|| full.strip_prefix("docker.io/"))
        .unwrap_or(full)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_names_are_dockers() {
        for (short, long) in [
            ("x:1", "docker.io/library/x:1"),
            ("x", "docker.io/library/x:latest"),
            ("coredns/coredns:1.8.4", "docker.io/coredns/coredns:1.8.4"),
            ("docker.io/calico/cni:v3", "docker.io/calico/cni:v3"),
            ("index.docker.io/x:1", "docker.io/library/x:1"),
            ("localhost/x:1", "localhost/x:1"),
            ("localhost:5000/x", "localhost:5000/x:latest"),
            ("reg.example:5000/a/b:1", "reg.example:5000/a/b:1"),
            ("reg.example/a@sha256:00", "reg.example/a@sha256:00"),
        ] {
            assert_eq!(full(short).as_deref(), Some(long), "{short}");
        }
        for bad in ["", "/x", "x/", "a b", "x:", ":1", "$(id)", "a//b", "a\n"] {
            assert_eq!(full(bad), None, "{bad}");
        }
    }

    #[test]
    fn dockers_own_registry_goes_without_saying() {
        for (full, short) in [
            ("docker.io/library/x:1", "x:1"),
            ("docker.io/a/b:1", "a/b:1"),
            ("reg.example/a:1", "reg.example/a:1"),
        ] {
            assert_eq!(without_docker_hub(full), short);
        }
    }

    proptest! {
        #[test]
        fn a_full_name_is_its_own_full_name(text in "[a-z.:/@-]{0,20}") {
            if let Some(once) = full(&text) {
                prop_assert_eq!(full(&once), Some(once.clone()));
            }
        }
    }
}
