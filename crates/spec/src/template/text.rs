//! The file from top to bottom, in the manual's order.

use std::collections::HashMap;
use std::net::IpAddr;

use super::networks::{self, Networks};
use super::page::{Page, scalar};
use super::{List, Wish, packages};
use crate::value::{Cidrs, Endpoint, Host, Port, nth_address};

/// Where the load balancer listens.
const BIND_PORT: &str = "8443";
/// A fingerprint of the right form.
const FINGERPRINT: &str = "SHA256:c0mpareWithWhatSshKeygenPrintsOnTheMachine0";

pub(super) fn render(wish: &Wish) -> String {
    let machines: Vec<IpAddr> = [
        List::Masters,
        List::Workers,
        List::Etcds,
        List::LoadBalancer,
    ]
    .into_iter()
    .flat_map(|list| wish.machines.list(list))
    .copied()
    .collect();
    let sheet = Sheet {
        wish,
        names: wish.machines.names(),
        networks: networks::choose(&machines, wish.machines.workers.len()),
    };
    let mut page = Page::default();
    sheet.header(&mut page);
    sheet.access(&mut page);
    sheet.machines(&mut page);
    sheet.certificates(&mut page);
    sheet.networks(&mut page);
    sheet.control_plane(&mut page);
    sheet.runtime(&mut page);
    if wish.classic {
        packages::classic_addons(&mut page);
    }
    sheet.ports(&mut page);
    if wish.classic {
        packages::classic(&mut page);
    } else {
        packages::current(&mut page);
    }
    page.into_text()
}

struct Sheet<'a> {
    wish: &'a Wish,
    names: HashMap<IpAddr, String>,
    networks: Networks,
}

impl Sheet<'_> {
    fn header(&self, page: &mut Page) {
        let lines = [
            "A cluster for Hatchery. Lines that begin with # and a space explain what follows; in lines that",
            "begin with # and a word, a setting is switched off: take the # away to switch it on.",
        ];
        for line in lines {
            page.comment("", line);
        }
        page.blank();
    }

    fn access(&self, page: &mut Page) {
        page.set("", "cluster-id", scalar(self.wish.name.as_str()));
        // The manual's docker works by itself until 1.23.
        page.off("", "kubernetes-version", self.either("1.20", "1.28"));
        page.off("", "etcd-version", "3.5.9");
        page.off("", "containerd-version", "1.7");
        page.off("", "coredns-version", "1.8.4");
        page.blank();
        page.set("", "username", scalar(&self.wish.user));
        match &self.wish.password {
            Some(password) => page.set(
                "",
                "password",
                serde_json::Value::from(password.expose()).to_string(),
            ),
            None => {
                page.off("", "password-env", "SSH_PASSWORD");
                page.off("", "password-file", "~/.ssh/cluster-password");
            }
        }
        page.off("", "private-key-path", "~/.ssh/id_ed25519");
        page.off("", "bastion", "admin@192.0.2.10:22");
        page.off("", "host-key-checking", "strict");
        page.off("", "set-hostname", !self.wish.classic);
        page.blank();
    }

    fn machines(&self, page: &mut Page) {
        page.set("", "masters", "");
        for (number, address) in self.wish.machines.masters.iter().enumerate() {
            if number == 0 {
                self.explained_machine(page, *address);
            } else {
                self.machine(page, *address);
            }
        }
        page.blank();
        page.set("", self.either("nodes", "workers"), "");
        for address in &self.wish.machines.workers {
            self.machine(page, *address);
        }
        page.blank();
        let first = self.first_master();
        if self.wish.machines.etcds.is_empty() {
            let (name, ip) = (self.name(first), scalar(&first.to_string()));
            page.off("", "etcds", format!("[{{name: {name}, ip: {ip}}}]"));
        } else {
            page.set("", "etcds", "");
            for address in &self.wish.machines.etcds {
                self.machine(page, *address);
            }
        }
        page.blank();
        self.load_balancer(page);
        page.blank();
    }

    fn load_balancer(&self, page: &mut Page) {
        let Some(address) = self.wish.machines.load_balancer else {
            let unused = if self.first_master().is_ipv4() {
                "192.0.2.5"
            } else {
                "\"2001:db8::5\""
            };
            page.off(
                "",
                "loadbalance",
                format!("{{name: k8s-loadbalance, ip: {unused}, bind-port: {BIND_PORT}}}"),
            );
            return;
        };
        page.set("", "loadbalance", "");
        page.line(&format!("  name: {}", self.name(address)));
        page.line(&format!("  ip: {}", scalar(&address.to_string())));
        page.line("  port: 22");
        page.line("  arch: amd64");
        page.remark(
            &format!("  bind-port: {BIND_PORT}"),
            "loadbalance",
            "bind-port",
        );
    }

    fn machine(&self, page: &mut Page, address: IpAddr) {
        page.line(&format!("- name: {}", self.name(address)));
        page.line(&format!("  ip: {}", scalar(&address.to_string())));
        page.line("  port: 22");
        page.line("  arch: amd64");
    }

    /// The first machine shows all that can be said of one.
    fn explained_machine(&self, page: &mut Page, address: IpAddr) {
        let settings = [
            ("- name", self.name(address).to_owned()),
            ("  ip", scalar(&address.to_string())),
            ("  port", "22".to_owned()),
            ("  arch", "amd64".to_owned()),
            ("  #user", "admin".to_owned()),
            ("  #password-env", "MASTER_PASSWORD".to_owned()),
            ("  #password-file", "~/.ssh/master-password".to_owned()),
            ("  #private-key-path", "~/.ssh/master_key".to_owned()),
            ("  #bastion", "[]".to_owned()),
            ("  #host-key", FINGERPRINT.to_owned()),
            ("  #labels", "{disk: ssd}".to_owned()),
            ("  #taints", "[\"dedicated=infra:NoSchedule\"]".to_owned()),
            ("  #set-hostname", "true".to_owned()),
        ];
        for (key, value) in settings {
            let name = key.trim_start_matches([' ', '-', '#']);
            page.remark(&format!("{key}: {value} "), "<host>", name);
        }
    }

    fn certificates(&self, page: &mut Page) {
        page.set("", "external-ca", false);
        page.set("", "external-ca-path", "/opt/externalca");
        page.blank();
    }

    fn networks(&self, page: &mut Page) {
        let Networks { services, pods } = &self.networks;
        page.set("", "service", "");
        page.set("service", "cidr", services);
        let nth = |n| {
            let cidrs = Cidrs::parse(services).ok()?;
            nth_address(cidrs.primary, n)
        };
        let (gateway, dns) = (nth(1), nth(10));
        if let (Some(gateway), Some(dns)) = (gateway, dns) {
            page.off("service", "dnsaddr", scalar(&dns.to_string()));
            page.off("service", "gateway", scalar(&gateway.to_string()));
        }
        page.set("service", "dns", "");
        page.set("service.dns", "corednstype", self.either("pod", "binary"));
        page.set("service.dns", "imageversion", "1.8.4");
        page.set("service.dns", "replicas", 2);
        page.blank();
        page.set("", "network", "");
        page.set("network", "podcidr", pods);
        page.set("network", "plugin", "calico");
        let manifest = "{\"NetworkYamlPath\": \"/etc/kubernetes/addons/calico.yaml\"}";
        if self.wish.classic {
            page.set("network", "plugin-args", manifest);
        } else {
            page.off("network", "pluginargs", manifest);
        }
        page.blank();
        page.off("", "apiserver-endpoint", format!("\"{}\"", self.endpoint()));
        page.set("", "apiserver-cert-sans", "");
        page.set("apiserver-cert-sans", "dnsnames", "[]");
        page.set("apiserver-cert-sans", "ips", "[]");
        page.set("", "apiserver-timeout", "120s");
        page.set("", "etcd-external", false);
        page.set("", "etcd-token", "etcd-cluster");
        if let Some(dns) = dns {
            page.off("", "dns-vip", scalar(&dns.to_string()));
        }
        page.set("", "dns-domain", "cluster.local");
        page.blank();
    }

    fn control_plane(&self, page: &mut Page) {
        page.set("", "pause-image", "k8s.gcr.io/pause:3.2");
        page.set("", "network-plugin", "cni");
        page.set(
            "",
            "cni-bin-dir",
            self.either("/usr/libexec/cni,/opt/cni/bin", "/opt/cni/bin"),
        );
        if !self.wish.classic {
            page.set("", "enable-kubelet-serving", true);
        }
        page.off("", "kube-proxy", "{mode: iptables}");
    }

    fn runtime(&self, page: &mut Page) {
        page.set("", "runtime", self.either("docker", "containerd"));
        if !self.wish.classic {
            page.off(
                "",
                "runtime-endpoint",
                "unix:///run/containerd/containerd.sock",
            );
        }
        page.set("", "registry-mirrors", "[]");
        page.set("", "insecure-registries", "[]");
        page.off("", "allow-existing-runtime", "true");
        page.off(
            "",
            "config-extra-args",
            "[{name: kubelet, extra-args: {\"--max-pods\": \"200\"}}]",
        );
        page.blank();
    }

    fn ports(&self, page: &mut Page) {
        page.set("", "open-ports", "");
        page.set("open-ports", self.either("node", "worker"), "");
        page.line("  - {port: 179, protocol: tcp}   # calico's routers (BGP)");
        page.off("open-ports", "master", "[{port: 9100, protocol: tcp}]");
        page.off("open-ports", "etcd", "[{port: 9100, protocol: tcp}]");
        page.off("open-ports", "loadbalance", "[{port: 9100, protocol: tcp}]");
        page.blank();
    }

    fn either<'w>(&self, classic: &'w str, current: &'w str) -> &'w str {
        if self.wish.classic { classic } else { current }
    }

    fn first_master(&self) -> IpAddr {
        self.wish.machines.masters[0]
    }

    fn name(&self, address: IpAddr) -> &str {
        self.names.get(&address).map_or("", String::as_str)
    }

    fn endpoint(&self) -> String {
        let (address, port) = match self.wish.machines.load_balancer {
            Some(address) => (address, BIND_PORT),
            None => (self.first_master(), "6443"),
        };
        let port = Port::parse(port).unwrap_or(Port::API_SERVER);
        let host = Host::Address(address);
        Endpoint { host, port }.to_string()
    }
}
