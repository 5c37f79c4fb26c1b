//! Packages, archives and where they go.

use super::{assert_fine, assert_only, only};

#[test]
fn packages() {
    let source = "  package-source: {srcpath: {amd64: /a.tar.gz}}\n";
    let with = |list: &str, item: &str| format!("install:\n{source}  {list}: [{item}]\n");
    assert_fine(&with("etcd", "{name: etcd, type: pkg}"));
    assert_only(
        &with("etcd", "{name: etcd, type: deb}"),
        "bad-package-type",
        3,
        29,
    );
    assert_only(&with("etcd", "{name: etcd}"), "missing-key", 3, 10);
    assert_only(&with("etcd", "{type: pkg}"), "missing-key", 3, 10);
    assert_only(
        &with("etcd", "{name: etcd, type: bin}"),
        "missing-key",
        3,
        10,
    );
    assert_only(
        &with("etcd", "{name: etcd, type: bin, dst: /usr/binx}"),
        "bad-destination",
        3,
        39,
    );
    assert_only(
        &with("etcd", "{name: etcd, type: bin, dst: bin}"),
        "bad-destination",
        3,
        39,
    );
    assert_fine(&with("etcd", "{name: etcd, type: bin, dst: /usr/bin/x}"));
    assert_fine(&with(
        "etcd",
        "{name: etcd, type: bin, dst: /etc/cni/net.d}",
    ));
    assert_only(
        &with("etcd", "{name: etcd, type: bin, dst: /tmp, dstpath: /tmp}"),
        "said-twice",
        3,
        45,
    );
    assert_only(
        &with("etcd", "{name: 'a, ../b', type: file, dst: /tmp}"),
        "bad-package-name",
        3,
        17,
    );
    assert_only(
        &with("etcd", "{name: a*, type: pkg}"),
        "bad-package-name",
        3,
        17,
    );
    assert_only(
        &with("etcd", "{name: a, type: pkg, dst: /tmp}"),
        "unused-key",
        3,
        36,
    );
    assert_only(
        &with("etcd", "{name: a, type: pkg, timeout: 1s}"),
        "unused-key",
        3,
        40,
    );
    assert_only(
        &with("etcd", "{name: a.tar, type: image}"),
        "misplaced-package",
        3,
        30,
    );
    assert_only(
        &with("etcd", "{name: a.sh, type: shell, schedule: prejoin}"),
        "misplaced-package",
        3,
        29,
    );
    assert_only(
        &with("addition", "{}")
            .replace('[', "{master: [")
            .replace("]\n", "]}\n")
            .replace("{}]", "{name: a.sh, type: shell}]"),
        "missing-key",
        3,
        23,
    );
    assert_only(
        "install: {addition: {master: [{name: a.sh, type: shell, schedule: now}]}}\n",
        "bad-schedule",
        1,
        67,
    );
    assert_only(
        "install: {etcd: [{name: etcd, type: pkg}]}\n",
        "no-archive",
        1,
        25,
    );
    assert_only(
        "install: {package-source: {type: zip}}\n",
        "bad-archive-type",
        1,
        34,
    );
    assert_only(
        "install: {package-source: {dstpath: /srv}}\n",
        "bad-destination",
        1,
        37,
    );
    assert_only(
        "install: {package-source: {srcpath: {mips: /a}}}\n",
        "bad-arch",
        1,
        38,
    );
    assert_eq!(
        only("install: {package-source: {srcpath: {arm64: /a}}}\n").0,
        "no-archive"
    );
    assert_only(
        "install: {package-source: {srcpath: {amd64: /a, x86_64: /b}}}\n",
        "said-twice",
        1,
        49,
    );
    assert_only(
        "addons: [{type: helm, filename: a.yaml}]\npackage-src: {x86src: /a}\n",
        "bad-addon-type",
        1,
        17,
    );
    assert_only(
        "packages: {etcd: [{name: a, type: binary, dstpath: /etc/cni/net.d}]}\npackage-src: {x86src: /a}\n",
        "bad-destination",
        1,
        52,
    );
}
