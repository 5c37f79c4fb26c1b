//! calico.

use hatchery_host::operation::Protocol;
use hatchery_spec::Cluster;
use ipnet::IpNet;
use kube::api::DynamicObject;
use serde_json::Value;

use super::{Leftovers, NetworkPlugin};

pub(super) struct Calico;

impl NetworkPlugin for Calico {
    fn name(&self) -> &'static str {
        "calico"
    }

    fn ports(&self) -> &'static [(u16, Protocol)] {
        &[(179, Protocol::Tcp), (4789, Protocol::Udp)]
    }

    fn interfaces(&self) -> &'static [&'static str] {
        &["cali*", "tunl*", "vxlan.calico"]
    }

    fn programs(&self) -> &'static [&'static str] {
        &["calico", "calico-ipam", "install"]
    }

    fn fit(&self, cluster: &Cluster, object: &mut DynamicObject) -> Vec<String> {
        let mut notes = Vec::new();
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        let is_calico = object.metadata.name.as_deref() == Some("calico-node");
        if kind == Some("DaemonSet") && is_calico {
            for net in cluster.pods.cidrs.iter() {
                let variable = match net {
                    IpNet::V4(_) => "CALICO_IPV4POOL_CIDR",
                    IpNet::V6(_) => "CALICO_IPV6POOL_CIDR",
                };
                if set_pool(&mut object.data, variable, &net.to_string()) {
                    notes.push(format!(
                        "calico's address pool is {net}, as the cluster's pods'"
                    ));
                }
            }
        }
        notes
    }

    fn leftovers(&self) -> Leftovers {
        Leftovers {
            // Its driver for volumes is among them.
            places: &[
                "/run/calico",
                "/var/run/calico",
                "/var/lib/calico",
                "/var/log/calico",
                "/run/nodeagent",
                "/var/run/nodeagent",
                "/sys/fs/bpf/calico",
                "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/nodeagent~uds",
            ],
            links: &[
                "tunl0[@:]",
                "vxlan[.]calico[@:]",
                "vxlan-v6[.]calico[@:]",
                "wireguard[.]cali[@:]",
                "wg-v6[.]cali[@:]",
                "bpfin[.]cali[@:]",
                "bpfout[.]cali[@:]",
                // A pod's: eleven digits, and the other end.
                "cali[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]@",
            ],
            chains: &["cali-"],
            comments: &["cali:"],
            sets: &["cali[46][0t]"],
            tables: &["calico"],
            before: BEFORE,
            end: END,
        }
    }
}

/// The addresses, routes and rules by which it is known what the machine had before.
const BEFORE: &str = r#"# shellcheck shell=sh
# calico_routes: those of calico's own number, and those of the bird that it brings. `ip` tells no number it was asked for.
calico_routes() {
  for version in 4 6; do
    for protocol in 80 12; do
      ip "-$version" route show table all proto "$protocol" 2>/dev/null |
        sed "s/ linkdown//;s/ dead//;s/ offload//;s/ *$//;s/^/$version $protocol /"
    done
  done
}
# The rule by which calico keeps what WireGuard has encrypted from going through it again.
calico_rules() {
  for version in 4 6; do
    ip "-$version" rule show 2>/dev/null | sed -n "s/^99:[[:space:]]*\(not from all fwmark 0x[0-9a-fx/]* lookup [0-9]*\) *$/$version \1/p"
  done
}
calico_before() {
  ip -o address show dev tunl0 2>/dev/null | awk '{ print "address tunl0", $4 }'
  calico_routes | sed 's/^/route /'
  calico_rules | sed 's/^/rule /'
}
"#;

const END: &str = r#"# shellcheck shell=sh
# The first tunnel of its kind belongs to its module and goes with it. Others' tunnels would go with it too.
calico_link_stays() {
  [ "$1" = tunl0 ] && [ "$(ip -o link show type ipip 2>/dev/null | grep -c .)" = 1 ] || return 0
  { ip address flush dev tunl0; ip link set tunl0 down; modprobe -r ipip; } 2>/dev/null
}
calico_end() {
  # One that was there before has only got an address.
  ip -o address show dev tunl0 2>/dev/null | awk '{ print $4 }' | while IFS= read -r address; do
    ! new "address tunl0 $address" || ip address delete "$address" dev tunl0 2>/dev/null
  done
  # Those of bird's number are another bird's while one runs.
  bird=
  for comm in /proc/[0-9]*/comm; do
    IFS= read -r name 2>/dev/null <"$comm" || continue
    case $name in bird | bird6) bird=1 ;; esac
  done
  calico_routes | while read -r version protocol route; do
    new "route $version $protocol $route" && [ "$bird$protocol" != 112 ] || continue
    # shellcheck disable=SC2086 # the words of the route
    ip "-$version" route delete $route proto "$protocol" 2>/dev/null
  done
  calico_rules | while read -r version rule; do
    # shellcheck disable=SC2086 # the words of the rule
    ! new "rule $version $rule" || ip "-$version" rule delete priority 99 $rule 2>/dev/null
  done
}
"#;

/// Whether anything had to be changed.
fn set_pool(daemon_set: &mut Value, name: &str, cidr: &str) -> bool {
    let containers = daemon_set.pointer_mut("/spec/template/spec/containers");
    let Some(Value::Array(containers)) = containers else {
        return false;
    };
    let mut changed = false;
    for container in containers {
        if container.get("name").and_then(|name| name.as_str()) != Some("calico-node") {
            continue;
        }
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let variables = container
            .entry("env")
            .or_insert_with(|| Value::Array(Vec::new()));
        let Some(variables) = variables.as_array_mut() else {
            continue;
        };
        let wanted = serde_json::json!({"name": name, "value": cidr});
        match variables.iter_mut().find(|one| one["name"] == name) {
            Some(one) if *one == wanted => {}
            Some(one) => {
                *one = wanted;
                changed = true;
            }
            None => {
                variables.push(wanted);
                changed = true;
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::super::fit;
    use crate::api;

    #[test]
    fn calico_gets_a_pool_for_each_family() {
        let text = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: calico-node}\n\
            spec: {template: {spec: {containers: [{name: calico-node, env: [{name: IP, value: autodetect}]}]}}}\n";
        let mut objects = api::parse(text).unwrap();
        let file = "cluster-id: demo\nruntime: containerd\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: []\n\
            network: {podcidr: '10.1.0.0/16,fd00:2::/56'}\nservice: {cidr: '10.32.0.0/16,fd00:1::/112'}\n";
        let reading = read(Input::private("deploy.yaml", file.as_bytes()));
        let cluster = reading.cluster.unwrap();
        assert_eq!(fit(&cluster, &mut objects).len(), 2);
        assert_eq!(fit(&cluster, &mut objects), [""; 0]);
        assert_eq!(
            objects[0].data["spec"]["template"]["spec"]["containers"][0]["env"],
            serde_json::json!([
                {"name": "IP", "value": "autodetect"},
                {"name": "CALICO_IPV4POOL_CIDR", "value": "10.1.0.0/16"},
                {"name": "CALICO_IPV6POOL_CIDR", "value": "fd00:2::/56"},
            ])
        );
    }
}
