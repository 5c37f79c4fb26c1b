//! Which package file a name means: the manual's `name*` with the version following.
//!
//! `nginx` means `nginx-1.18.0-1.oe1.x86_64.rpm` and `nginx_1.18.0-6_amd64.deb`, but not
//! `nginx-mod-stream-1.18.0-1.oe1.x86_64.rpm`, which the shell's `nginx*` would also catch.

/// Whether the file is the package of this name.
pub fn matches(name: &str, file: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    if let Some(stem) = file.strip_suffix(".deb") {
        // Debian separates name and version by `_`, and so allows none in names, and no capitals. A file may
        // still bear the name of another distribution, with its underscores.
        let package = stem.split('_').next().unwrap_or_default();
        let whole = stem.rsplitn(3, '_').nth(2).unwrap_or_default();
        let name = debian(name);
        return stem.len() > package.len() && [package, whole].map(debian).contains(&name);
    }
    let Some(stem) = file.strip_suffix(".rpm") else {
        return false;
    };
    // name-version-release.arch: the version and the release have no dash.
    let Some((rest, release)) = stem.rsplit_once('-') else {
        return stem == name;
    };
    match rest.rsplit_once('-') {
        Some((package, version)) => {
            package == name && begins_with_digit(version) && release.contains('.')
                || rest == name && begins_with_digit(release)
        }
        None => rest == name && begins_with_digit(release),
    }
}

fn debian(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

fn begins_with_digit(text: &str) -> bool {
    text.trim_start_matches('v')
        .starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::matches;

    #[test]
    fn the_manuals_packages() {
        let files = [
            ("conntrack-tools", "conntrack-tools-1.4.6-1.oe1.aarch64.rpm"),
            (
                "containernetworking-plugins",
                "containernetworking-plugins-0.8.2-4.git485be65.oe1.aarch64.rpm",
            ),
            ("coredns", "coredns-1.7.0-1.0.oe1.aarch64.rpm"),
            ("docker-engine", "docker-engine-18.09.0-115.oe1.aarch64.rpm"),
            ("etcd", "etcd-3.4.14-2.aarch64.rpm"),
            (
                "kubernetes-client",
                "kubernetes-client-1.20.2-4.oe1.aarch64.rpm",
            ),
            (
                "kubernetes-kubelet",
                "kubernetes-kubelet-1.20.2-4.oe1.aarch64.rpm",
            ),
            (
                "kubernetes-master",
                "kubernetes-master-1.20.2-4.oe1.aarch64.rpm",
            ),
            (
                "kubernetes-node",
                "kubernetes-node-1.20.2-4.oe1.aarch64.rpm",
            ),
            ("libcgroup", "libcgroup-0.42.2-1.oe1.aarch64.rpm"),
            (
                "libnetfilter_cthelper",
                "libnetfilter_cthelper-1.0.0-15.oe1.aarch64.rpm",
            ),
            (
                "libnetfilter_queue",
                "libnetfilter_queue-1.0.5-1.oe1.aarch64.rpm",
            ),
            ("socat", "socat-1.7.3.2-8.oe1.aarch64.rpm"),
        ];
        for (name, _) in files {
            let found: Vec<_> = files
                .iter()
                .filter(|(_, file)| matches(name, file))
                .collect();
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].0, name);
        }
    }

    #[test]
    fn a_longer_name_is_another_package() {
        assert!(matches("nginx", "nginx-1.18.0-1.oe1.x86_64.rpm"));
        assert!(matches("nginx", "nginx_1.18.0-6_amd64.deb"));
        assert!(matches("nginx", "nginx-1.18.0.rpm"));
        assert!(!matches(
            "nginx",
            "nginx-mod-stream-1.18.0-1.oe1.x86_64.rpm"
        ));
        assert!(!matches("nginx", "nginx-common_1.18.0-6_all.deb"));
        assert!(!matches(
            "nginx-mod",
            "nginx-mod-stream-1.18.0-1.oe1.x86_64.rpm"
        ));
        assert!(
            matches("gd", "gd-2.3.0-3.oe1.x86_64.rpm")
                && !matches("g", "gd-2.3.0-3.oe1.x86_64.rpm")
        );
        assert!(matches(
            "libnetfilter_cthelper",
            "libnetfilter-cthelper_1.0.0-1_arm64.deb"
        ));
        assert!(matches(
            "libnetfilter_cthelper",
            "libnetfilter_cthelper_1.0.0-1_arm64.deb"
        ));
        assert!(!matches(
            "libnetfilter_queue",
            "libnetfilter_cthelper_1.0.0-1_arm64.deb"
        ));
        assert!(matches(
            "java-1.8.0-openjdk",
            "java-1.8.0-openjdk-1.8.0.292-1.oe1.x86_64.rpm"
        ));
        assert!(!matches(
            "java",
            "java-1.8.0-openjdk-1.8.0.292-1.oe1.x86_64.rpm"
        ));
        assert!(
            !matches("nginx", "nginx.tar.gz")
                && !matches("", "-1.rpm")
                && !matches("nginx", "nginx")
        );
        assert!(matches("libunwind", "libunwind-1.4.0-1.oe1.x86_64.rpm"));
        assert!(matches("libstdc++", "libstdc++-7.3.0-1.oe1.x86_64.rpm"));
    }

    proptest! {
        #[test]
        fn finds_its_own_rpm_and_no_longer_name(
            name in "[a-z][a-z0-9_+]{0,8}(-[a-z][a-z0-9]{0,5}){0,3}",
            more in "[a-z][a-z0-9]{0,5}",
            version in "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}",
            release in "[0-9]{1,3}\\.oe1",
        ) {
            let file = format!("{name}-{version}-{release}.x86_64.rpm");
            let other = format!("{name}-{more}-{version}-{release}.x86_64.rpm");
            let fits = matches(&name, &file);
            prop_assert!(fits);
            let fits = matches(&name, &other);
            prop_assert!(!fits);
            let longer = format!("{name}-{more}");
            let fits = matches(&longer, &file);
            prop_assert!(!fits);
        }

        #[test]
        fn never_panics(name in "\\PC{0,20}", file in "\\PC{0,40}") {
            let _ = matches(&name, &file);
        }
    }
}
