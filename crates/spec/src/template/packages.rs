//! The packages of an installation without internet, by openEuler's names.

use super::page::Page;

/// What the load balancer needs beside nginx itself.
const NGINX: [&str; 13] = [
    "nginx",
    "gd",
    "gperftools-libs",
    "libunwind",
    "libwebp",
    "libxslt",
    "nginx-all-modules",
    "nginx-filesystem",
    "nginx-mod-http-image-filter",
    "nginx-mod-http-perl",
    "nginx-mod-http-xslt-filter",
    "nginx-mod-mail",
    "nginx-mod-stream",
];

/// What every worker needs beside Kubernetes and the runtime.
const WORKER: [&str; 5] = [
    "conntrack-tools",
    "libnetfilter_cthelper",
    "libnetfilter_cttimeout",
    "libnetfilter_queue",
    "socat",
];

pub(super) fn current(page: &mut Page) {
    page.set("", "install", "");
    page.set("install", "package-source", "");
    page.set("install.package-source", "type", "tar.gz");
    page.disabled("install.package-source", "dstpath", "/root/.eggo/package");
    page.set("install.package-source", "srcpath", "");
    page.line("      amd64: /root/packages/packages-amd64.tar.gz");
    page.line("      #arm64: /root/packages/packages-arm64.tar.gz");
    page.comment(
        "  ",
        "The lists below name what is installed: pkg for packages, bin, file, dir and image for files of \
         the archive, yaml for manifests, shell for scripts, repo for packages of the machines' \
         repositories. A bin, file or dir has a dst, a shell a schedule and a timeout.",
    );
    let lists: [(&str, &[&str]); 7] = [
        ("etcd", &["etcd"]),
        (
            "kubernetes-master",
            &["kubernetes-client", "kubernetes-master"],
        ),
        (
            "kubernetes-worker",
            &["kubernetes-client", "kubernetes-node", "kubernetes-kubelet"],
        ),
        ("network", &["containernetworking-plugins"]),
        ("container", &["containerd"]),
        ("dns", &["coredns"]),
        ("loadbalance", &NGINX),
    ];
    for (list, names) in lists {
        page.set("install", list, "");
        pkg(page, names);
        if list == "kubernetes-worker" {
            pkg(page, &WORKER);
        }
    }
    page.set("install", "image", "");
    page.line("  - {name: \"pause.tar, calico.tar\", type: image}");
    page.set("install", "addition", "");
    page.set("install.addition", "master", "");
    page.line("    - {name: calico.yaml, type: yaml}");
    page.disabled(
        "install.addition",
        "worker",
        "[{name: postjoin.sh, type: shell, schedule: postjoin, timeout: 30s}]",
    );
    page.disabled("install.addition", "etcd", "[{name: tuned, type: pkg}]");
    page.disabled(
        "install.addition",
        "loadbalance",
        "[{name: tuned, type: pkg}]",
    );
}

/// One entry for several packages, as many as a line holds.
fn pkg(page: &mut Page, names: &[&str]) {
    for names in names.chunks(4) {
        let name = match names {
            [name] => (*name).to_owned(),
            names => format!("\"{}\"", names.join(", ")),
        };
        page.line(&format!("  - {{name: {name}, type: pkg}}"));
    }
}

pub(super) fn classic_addons(page: &mut Page) {
    page.disabled("", "addons", "[{type: file, filename: dashboard.yaml}]");
}

pub(super) fn classic(page: &mut Page) {
    page.set("", "package-src", "");
    page.set("package-src", "type", "tar.gz");
    page.disabled("package-src", "armsrc", "/root/rpms/packages-arm.tar.gz");
    page.set("package-src", "x86src", "/root/rpms/packages-x86.tar.gz");
    page.blank();
    page.set("", "pacakges", "");
    page.comment(
        "  ",
        "Each entry has a name (a package without its version, or a file or directory of the archive) and \
         a type: pkg or binary from the archive, repo from the machines' repositories. A binary has a \
         dstpath, the directory it goes to.",
    );
    let worker = [
        "containernetworking-plugins",
        "libcgroup",
        "docker-engine",
        "kubernetes-client",
        "kubernetes-node",
        "kubernetes-kubelet",
    ];
    let node: Vec<&str> = WORKER.into_iter().chain(worker).collect();
    list(page, "etcd", &["etcd"]);
    list(page, "master", &["kubernetes-client", "kubernetes-master"]);
    page.line("  - name: addons");
    page.line("    type: binary");
    page.line("    dstpath: /etc/kubernetes");
    list(page, "node", &node);
    list(page, "loadbalance", &NGINX);
}

fn list(page: &mut Page, key: &str, names: &[&str]) {
    page.set("packages", key, "");
    for name in names {
        page.line(&format!("  - name: {name}"));
        page.line("    type: pkg");
    }
}
