//! etcd, a member on each of its machines.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use hatchery_pki::Request;
use hatchery_spec::{
    Cluster,
    cluster::{Arguments, Component, Machine},
    value::Name,
};

use super::{NodeContext, host_port, unprivileged};
use crate::{
    resource::{Error, Issuer, Resources, Secret},
    unit_file::Service,
};

/// Whom it runs as.
const USER: &str = "etcd";
const HOME: &str = "/var/lib/etcd";
/// Where its certificates lie.
pub(crate) const DIR: &str = "/etc/kubernetes/pki/etcd";
const CONFIGURATION: &str = "/etc/etcd/etcd.conf";
/// Where its data lies, unless the user says otherwise.
const DATA_DIRECTORY: &str = "/var/lib/etcd/default.etcd";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    resources.secret(&format!("{DIR}/ca.crt"), Secret::Signer(Issuer::Etcd))?;
    let name = node_context.node.name.as_str();
    for kind in ["server", "peer"] {
        let request = Request::server_and_client(format!("{name}-{kind}"))
            .with_dns_names(["localhost", name])
            .with_ips([
                node_context.node.address,
                std::net::Ipv4Addr::LOCALHOST.into(),
                std::net::Ipv6Addr::LOCALHOST.into(),
            ]);
        resources.leaf(Issuer::Etcd, &format!("{DIR}/{kind}"), request)?;
    }
    let health = Request::client(format!("{name}-healthcheck-client"));
    resources.leaf(Issuer::Etcd, &format!("{DIR}/healthcheck-client"), health)?;
    let mut lines = node_context.protected(-999);
    if node_context.can_drop_privileges() {
        resources.user(USER, HOME)?;
        resources.directory_of(USER, HOME, 0o700)?;
        let files = ["ca.crt", "server.crt", "server.key", "peer.crt", "peer.key"];
        let files = files.map(|file| format!("{DIR}/{file}"));
        lines.extend(unprivileged(USER, &files, DATA));
    } else {
        resources.own_directory(HOME, 0o700)?;
    }
    for path in Directories::wanted(node_context.cluster, &node_context.node.name).outside_home() {
        let path = path.to_string_lossy();
        match node_context.can_drop_privileges() {
            true => resources.directory_of(USER, &path, 0o700)?,
            false => resources.own_directory(&path, 0o700)?,
        }
    }
    resources.file(CONFIGURATION, 0o600, environment(node_context))?;
    lines.extend([
        format!("WorkingDirectory={HOME}"),
        format!("EnvironmentFile={CONFIGURATION}"),
        "LimitNOFILE=65536".into(),
        // A member waits for its peers, which may still be receiving their programs.
        "TimeoutStartSec=300".into(),
        // Members that are removed together would keep their leader for seven seconds, looking for a successor.
        "X-HatcheryRemoval=kill".into(),
    ]);
    let unit = Service {
        description: "etcd",
        notifies: true,
        after: &[],
        stamp: node_context.stamp(&["etcd"]),
        command: node_context.program("etcd"),
        lines,
    };
    let files = [
        CONFIGURATION.to_owned(),
        format!("{DIR}/ca.crt"),
        format!("{DIR}/server.crt"),
        format!("{DIR}/peer.crt"),
    ];
    resources.service("etcd", unit.render(), &files.each_ref().map(String::as_str))
}

/// Data of a member that ran as root before, and a place for it that the user named, are its user's. What else lies there
/// belongs to other users.
const DATA: &str = " && for d in \"$ETCD_DATA_DIR\" \"$ETCD_WAL_DIR\"; do \
    [ -z \"$d\" ] || { mkdir -p -m 0700 \"$d\" && chown etcd:etcd \"$d\"; } || exit 1; \
    for f in \"$d\"/member \"$d\"/*.wal; do [ -z \"$d\" ] || [ ! -e \"$f\" ] || chown -R etcd:etcd \"$f\" || exit 1; done; done";

/// Where clients reach all members, this machine's own first.
pub(crate) fn servers(node_context: &NodeContext<'_>) -> String {
    let mut members: Vec<&Machine> = node_context.cluster.etcds().collect();
    members.sort_by_key(|member| member.address != node_context.node.address);
    let urls = members
        .iter()
        .map(|member| format!("https://{}", host_port(member.address, 2379)));
    urls.collect::<Vec<_>>().join(",")
}

fn environment(node_context: &NodeContext<'_>) -> String {
    let own = |port| format!("https://{}", host_port(node_context.node.address, port));
    let pki = if node_context.can_drop_privileges() {
        format!("/run/{USER}")
    } else {
        DIR.to_owned()
    };
    // In no order of the file's: another order there is the same cluster.
    let mut peers: Vec<_> = node_context
        .cluster
        .etcds()
        .map(|member| {
            format!(
                "{}=https://{}",
                member.name,
                host_port(member.address, 2380)
            )
        })
        .collect();
    peers.sort();
    let mut values: BTreeMap<String, String> = [
        ("NAME", node_context.node.name.to_string()),
        ("DATA_DIR", DATA_DIRECTORY.into()),
        (
            "LISTEN_CLIENT_URLS",
            format!("{},https://127.0.0.1:2379", own(2379)),
        ),
        ("ADVERTISE_CLIENT_URLS", own(2379)),
        ("LISTEN_PEER_URLS", own(2380)),
        ("INITIAL_ADVERTISE_PEER_URLS", own(2380)),
        ("INITIAL_CLUSTER", peers.join(",")),
        (
            "INITIAL_CLUSTER_TOKEN",
            node_context.cluster.etcd.token.clone(),
        ),
        // True of every member: the comparison with what runs lets nobody begin without data beside members that have some.
        // Once it has data a member does not look at it, and another word here would only restart it.
        ("INITIAL_CLUSTER_STATE", "new".into()),
        // Health and figures without a certificate, to the machine itself only.
        ("LISTEN_METRICS_URLS", "http://127.0.0.1:2381".into()),
        ("TRUSTED_CA_FILE", format!("{pki}/ca.crt")),
        ("CERT_FILE", format!("{pki}/server.crt")),
        ("KEY_FILE", format!("{pki}/server.key")),
        ("CLIENT_CERT_AUTH", "true".into()),
        ("PEER_TRUSTED_CA_FILE", format!("{pki}/ca.crt")),
        ("PEER_CERT_FILE", format!("{pki}/peer.crt")),
        ("PEER_KEY_FILE", format!("{pki}/peer.key")),
        ("PEER_CLIENT_CERT_AUTH", "true".into()),
        ("SNAPSHOT_COUNT", "10000".into()),
        ("AUTO_COMPACTION_RETENTION", "8".into()),
        ("QUOTA_BACKEND_BYTES", (8_u64 << 30).to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (format!("ETCD_{name}"), value))
    .collect();
    if node_context.node.arch.as_str() != "amd64" {
        values.insert(
            "ETCD_UNSUPPORTED_ARCH".into(),
            node_context.node.arch.as_str().into(),
        );
    }
    let user = node_context.extra(Component::Etcd);
    for (name, value) in user.into_iter().flat_map(Arguments::iter) {
        values.insert(variable(name), value.to_owned());
    }
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let lines = values
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"\n", quoted(value)));
    lines.collect()
}

/// Where a member keeps its data, and its write-ahead log where that lies elsewhere. Two of them are equal when they are the
/// same places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directories {
    data: PathBuf,
    wal: Option<PathBuf>,
}

impl Directories {
    pub(crate) fn new(data: &str, wal: Option<&str>) -> Self {
        // What is no whole path begins where the unit does; the parts of a path do without slashes that say nothing.
        let whole = |path: &str| Path::new(HOME).join(path).components().collect::<PathBuf>();
        let data = whole(data);
        let usual = data.join("member/wal");
        let wal = wal.filter(|wal| !wal.is_empty()).map(whole);
        Self {
            wal: wal.filter(|wal| *wal != usual),
            data,
        }
    }

    /// Those that a deploy file says, for a member of this name.
    pub(crate) fn wanted(cluster: &Cluster, member: &Name) -> Self {
        let arguments = cluster.extra_args.get(&Component::Etcd);
        let said = |name: &str| {
            let all = arguments.into_iter().flat_map(Arguments::iter);
            all.filter(|(argument, _)| variable(argument) == name)
                .map(|(_, value)| value)
                .last()
        };
        let wal = said("ETCD_WAL_DIR");
        match said("ETCD_DATA_DIR") {
            // etcd's own choice.
            Some("") => Self::new(&format!("{member}.etcd"), wal),
            data => Self::new(data.unwrap_or(DATA_DIRECTORY), wal),
        }
    }

    /// Those that are not below the home that etcd has on every machine.
    fn outside_home(&self) -> impl Iterator<Item = &Path> {
        let all = [Some(&self.data), self.wal.as_ref()].into_iter().flatten();
        all.map(PathBuf::as_path)
            .filter(|path| !path.starts_with(HOME))
    }
}

impl fmt::Display for Directories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.data.display())?;
        match &self.wal {
            Some(wal) => write!(f, " (its write-ahead log in {})", wal.display()),
            None => Ok(()),
        }
    }
}

/// `--quota-backend-bytes` and `ETCD_QUOTA_BACKEND_BYTES` are one.
pub(crate) fn variable(name: &str) -> String {
    if name.starts_with("ETCD_") || name.starts_with("GO") {
        return name.to_owned();
    }
    let name = name.trim_start_matches('-').replace('-', "_");
    format!("ETCD_{}", name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

    use hatchery_host::operation::Operation;

    use super::*;
    use crate::{components::trial::Trial, resource::Resource};

    #[test]
    fn directories_that_the_user_names_are_recorded() {
        let named = |arguments: &str| -> Vec<String> {
            let more = format!(
                "config-extra-args: [{{name: etcd, extra-args: {{ETCD_SNAPSHOT_COUNT: '1'{arguments}}}}}]"
            );
            let trial = Trial::new(20, &more);
            let mut all = Resources::default();
            resources(&trial.node_context(), &mut all).unwrap();
            let directory = |resource: &Resource| match resource {
                Resource::Operation(Operation::Directory(one)) if one.contents_are_ours => {
                    Some(one.path.as_str().to_owned())
                }
                _ => None,
            };
            all.0.iter().filter_map(directory).collect()
        };
        assert_eq!(named(""), [HOME]);
        assert_eq!(named(", ETCD_DATA_DIR: /var/lib/etcd/x"), [HOME]);
        assert_eq!(
            named(", ETCD_DATA_DIR: /srv/etcd/, ETCD_WAL_DIR: /fast"),
            [HOME, "/srv/etcd", "/fast"]
        );
    }

    /// A start gives the member's own files to its user, and nothing else that lies beside them.
    #[test]
    fn others_keep_what_they_have_beside_the_data() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("data/member/snap")).unwrap();
        fs::create_dir_all(at("data/theirs")).unwrap();
        fs::create_dir_all(at("bin")).unwrap();
        let chown = "#!/bin/sh\nfor last; do :; done\necho \"$last\" >>\"$CHOWNED\"\n";
        fs::write(at("bin/chown"), chown).unwrap();
        fs::set_permissions(at("bin/chown"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", at("bin").display());
        let started = Command::new("sh")
            .args(["-c", &format!("true{DATA}")])
            .env("PATH", path)
            .env("CHOWNED", at("chowned"))
            .env("ETCD_DATA_DIR", at("data"))
            .status();
        assert!(started.unwrap().success());
        let own = root.path().display().to_string();
        let chowned = fs::read_to_string(at("chowned")).unwrap();
        assert_eq!(chowned.replace(&own, ""), "/data\n/data/member\n");
    }
}
