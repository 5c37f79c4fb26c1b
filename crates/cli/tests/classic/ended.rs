//! Certificates that ended before anybody renewed them.

use std::{fs, path::Path};

use hatchery_pki::{Authority, Request};
use hatchery_sandbox::lab::Machine;
use secrecy::ExposeSecret as _;
use time::{Duration, OffsetDateTime};

use crate::bench::inside;

/// Gives members of etcd certificates that have ended, on disk and in use, while they go on over the connections they have.
/// `home` is where the cluster is remembered.
pub(crate) async fn give(home: &Path, members: &[Machine]) {
    let kept = |file: &str| {
        let path = home.join(".hatchery/clusters/demo/pki").join(file);
        fs::read_to_string(path).unwrap()
    };
    let authority = Authority::from_pem(&kept("etcd-ca.crt"), kept("etcd-ca.key").into()).unwrap();
    for member in members {
        let request = Request::server_and_client(member.name.clone())
            .with_ips([member.address])
            .with_lifetime(Duration::HOUR);
        let begin = OffsetDateTime::now_utc() - Duration::hours(2);
        let leaf = authority.issue(&request, begin).unwrap();
        let replace = format!(
            "for d in /etc/kubernetes/pki/etcd /run/etcd; do for f in server peer; do\n\
             cat >$d/$f.crt <<'E'\n{}E\ncat >$d/$f.key <<'E'\n{}E\ndone; done",
            leaf.cert_pem,
            leaf.key_pem.expose_secret(),
        );
        inside(member, &replace).await;
    }
}
