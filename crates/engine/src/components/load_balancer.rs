//! The load balancer: nginx passes connections on to the masters.

use std::fmt::Write as _;

use super::{Site, host_port};
use crate::{
    arguments::systemd_word,
    unit_file::Service,
    wish::{Error, Wishes},
};

/// eggo had its own at this place.
pub(crate) const CONFIGURATION: &str = "/etc/kubernetes/kube-nginx.conf";
/// Where distributions put nginx's module for plain streams; one that lies elsewhere is found when it starts.
const MODULES: &str = "/run/kube-nginx-module.conf";
/// Not `nginx.service`, which may be somebody's web server.
const UNIT: &str = "kube-nginx";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    let Some(balancer) = site.cluster.load_balancer() else {
        return Ok(());
    };
    wishes.file(
        CONFIGURATION,
        0o644,
        configuration(site, balancer.bind_port.number()),
    )?;
    let nginx = site.program("nginx");
    let nginx = if site.installation.programs.contains_key("nginx") {
        nginx
    } else {
        "nginx".to_owned()
    };
    // Built in, or a module in one of the usual places.
    let find = format!(
        "PATH=$PATH:/usr/sbin:/usr/local/sbin; : >{MODULES}; \
         for m in /usr/lib/nginx/modules /usr/lib64/nginx/modules /etc/nginx/modules; do \
         [ ! -e $m/ngx_stream_module.so ] || {{ echo \"load_module $m/ngx_stream_module.so;\" >{MODULES}; break; }}; done; \
         exec {nginx} -t -q -c {CONFIGURATION}"
    );
    let start = format!("PATH=$PATH:/usr/sbin:/usr/local/sbin; exec {nginx} -c {CONFIGURATION}");
    let unit = Service {
        description: "Load balancer of the Kubernetes API",
        notifies: false,
        after: &[],
        stamp: site.stamp(&["nginx"]),
        command: format!("/bin/sh -c {}", systemd_word(&start)),
        lines: vec![
            format!("ExecStartPre=/bin/sh -c {}", systemd_word(&find)),
            format!("ExecStopPost=/bin/rm -f {MODULES}"),
            "LimitNOFILE=65536".into(),
        ],
    };
    wishes.service(UNIT, unit.render(), &[CONFIGURATION])
}

fn configuration(site: &Site<'_>, port: u16) -> String {
    let mut servers = String::new();
    for master in site.cluster.masters() {
        let address = host_port(master.address, 6443);
        let _ = writeln!(servers, "    server {address} max_fails=3 fail_timeout=5s;");
    }
    let listen = match site.node.address {
        std::net::IpAddr::V4(_) => format!("0.0.0.0:{port}"),
        std::net::IpAddr::V6(_) => format!("[::]:{port}"),
    };
    format!(
        "include {MODULES};
daemon off;
pid /run/kube-nginx.pid;
error_log stderr warn;
worker_processes 1;
worker_rlimit_nofile 65536;
events {{ worker_connections 8192; }}
stream {{
  upstream masters {{
    least_conn;
{servers}  }}
  server {{
    listen {listen} reuseport;
    proxy_connect_timeout 1s;
    proxy_timeout 24h;
    proxy_pass masters;
  }}
}}
"
    )
}
