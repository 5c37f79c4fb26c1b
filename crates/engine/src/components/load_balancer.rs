//! The load balancer: nginx passes connections on to the masters.

use std::fmt::Write as _;

use super::{NodeContext, host_port};
use crate::{
    arguments::systemd_word,
    resource::{Error, Resources},
    unit_file::Service,
};

/// eggo had its own at this place.
pub(crate) const CONFIGURATION: &str = "/etc/kubernetes/kube-nginx.conf";
/// Where distributions put nginx's module for plain streams; one that lies elsewhere is found when it starts.
const MODULES: &str = "/run/kube-nginx-module.conf";
/// Not `nginx.service`, which may be a web server of the user's.
const UNIT: &str = "kube-nginx";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let Some(balancer) = node_context.cluster.load_balancer() else {
        return Ok(());
    };
    resources.file(
        CONFIGURATION,
        0o644,
        configuration(node_context, balancer.bind_port.number()),
    )?;
    let nginx = node_context.program("nginx");
    let nginx = if node_context.installation.programs.contains_key("nginx") {
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
        stamp: node_context.stamp(&["nginx"]),
        command: format!("/bin/sh -c {}", systemd_word(&start)),
        lines: vec![
            format!("ExecStartPre=/bin/sh -c {}", systemd_word(&find)),
            format!("ExecStopPost=/bin/rm -f {MODULES}"),
            "LimitNOFILE=65536".into(),
        ],
    };
    resources.service(UNIT, unit.render(), &[CONFIGURATION])
}

fn configuration(node_context: &NodeContext<'_>, port: u16) -> String {
    let mut servers = String::new();
    for master in node_context.cluster.masters() {
        let address = host_port(master.address, 6443);
        let _ = writeln!(servers, "    server {address} max_fails=3 fail_timeout=5s;");
    }
    let listen = match node_context.node.address {
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
