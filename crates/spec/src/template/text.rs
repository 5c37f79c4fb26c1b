//! The file from top to bottom, in the manual's order.

use std::collections::HashMap;
use std::net::IpAddr;

use super::networks::{self, Networks};
use super::page::{Page, scalar};
use super::{List, Options, packages};
use crate::settings::{api_server, etcd, kube_proxy, kubelet, runtime};
use crate::value::{Cidrs, Endpoint, Host, Port, nth_address};

/// Where the load balancer listens.
const BIND_PORT: &str = "8443";
/// A fingerprint of the right form.
const FINGERPRINT: &str = "SHA256:c0mpareWithWhatSshKeygenPrintsOnTheMachine0";

pub(super) fn render(options: &Options) -> String {
    let machines: Vec<IpAddr> = [
        List::Masters,
        List::Workers,
        List::Etcds,
        List::LoadBalancer,
    ]
    .into_iter()
    .flat_map(|list| options.machines.list(list))
    .copied()
    .collect();
    let template = Template {
        options,
        names: options.machines.names(),
        networks: networks::choose(&machines, options.machines.workers.len()),
    };
    let mut page = Page::default();
    template.header(&mut page);
    template.access(&mut page);
    template.machines(&mut page);
    template.certificates(&mut page);
    template.networks(&mut page);
    template.components(&mut page);
    if options.classic {
        packages::classic_addons(&mut page);
    }
    template.ports(&mut page);
    if options.classic {
        packages::classic(&mut page);
    } else {
        packages::current(&mut page);
    }
    page.into_text()
}

struct Template<'a> {
    options: &'a Options,
    names: HashMap<IpAddr, String>,
    networks: Networks,
}

impl Template<'_> {
    fn header(&self, page: &mut Page) {
        let lines = [
            "A cluster for Hatchery. Lines that start with # and a space are comments; lines that start with #",
            "and a key are settings that are disabled: remove the # to enable them.",
        ];
        for line in lines {
            page.comment("", line);
        }
        page.blank();
    }

    fn access(&self, page: &mut Page) {
        page.set("", "cluster-id", scalar(self.options.name.as_str()));
        // The manual's docker works by itself until 1.23.
        page.disabled("", "kubernetes-version", self.either("1.20", "1.28"));
        page.disabled("", "etcd-version", "3.5.9");
        page.disabled("", "containerd-version", "1.7");
        page.disabled("", "coredns-version", "1.8.4");
        page.blank();
        page.set("", "username", scalar(&self.options.user));
        match &self.options.password {
            Some(password) => page.set(
                "",
                "password",
                serde_json::Value::from(password.expose()).to_string(),
            ),
            None => {
                page.disabled("", "password-env", "SSH_PASSWORD");
                page.disabled("", "password-file", "~/.ssh/cluster-password");
            }
        }
        page.disabled("", "private-key-path", "~/.ssh/id_ed25519");
        page.disabled("", "bastion", "admin@192.0.2.10:22");
        page.disabled("", "host-key-checking", "strict");
        page.disabled("", "set-hostname", !self.options.classic);
        page.blank();
    }

    fn machines(&self, page: &mut Page) {
        page.set("", "masters", "");
        for (number, address) in self.options.machines.masters.iter().enumerate() {
            if number == 0 {
                self.explained_machine(page, *address);
            } else {
                self.machine(page, *address);
            }
        }
        page.blank();
        page.set("", self.either("nodes", "workers"), "");
        for address in &self.options.machines.workers {
            self.machine(page, *address);
        }
        page.blank();
        let first = self.first_master();
        if self.options.machines.etcds.is_empty() {
            let (name, ip) = (self.name(first), scalar(&first.to_string()));
            page.disabled("", "etcds", format!("[{{name: {name}, ip: {ip}}}]"));
        } else {
            page.set("", "etcds", "");
            for address in &self.options.machines.etcds {
                self.machine(page, *address);
            }
        }
        page.blank();
        self.load_balancer(page);
        page.blank();
    }

    fn load_balancer(&self, page: &mut Page) {
        let Some(address) = self.options.machines.load_balancer else {
            let unused = if self.first_master().is_ipv4() {
                "192.0.2.5"
            } else {
                "\"2001:db8::5\""
            };
            page.disabled(
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
        page.with_comment(
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
            page.with_comment(&format!("{key}: {value} "), "<host>", name);
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
            page.disabled("service", "dnsaddr", scalar(&dns.to_string()));
            page.disabled("service", "gateway", scalar(&gateway.to_string()));
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
        if self.options.classic {
            page.set("network", "plugin-args", manifest);
        } else {
            page.disabled("network", "pluginargs", manifest);
        }
        page.blank();
        page.disabled("", "apiserver-endpoint", format!("\"{}\"", self.endpoint()));
        api_server::template(page);
        etcd::template(page);
        if let Some(dns) = dns {
            page.disabled("", "dns-vip", scalar(&dns.to_string()));
        }
        page.set("", "dns-domain", "cluster.local");
        page.blank();
    }

    fn components(&self, page: &mut Page) {
        let classic = self.options.classic;
        runtime::template_for_pods(page, classic);
        kubelet::template(page, classic);
        kube_proxy::template(page);
        runtime::template(page, classic);
        page.disabled(
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
        page.disabled("open-ports", "master", "[{port: 9100, protocol: tcp}]");
        page.disabled("open-ports", "etcd", "[{port: 9100, protocol: tcp}]");
        page.disabled("open-ports", "loadbalance", "[{port: 9100, protocol: tcp}]");
        page.blank();
    }

    fn either<'w>(&self, classic: &'w str, current: &'w str) -> &'w str {
        if self.options.classic {
            classic
        } else {
            current
        }
    }

    fn first_master(&self) -> IpAddr {
        self.options.machines.masters[0]
    }

    fn name(&self, address: IpAddr) -> &str {
        self.names.get(&address).map_or("", String::as_str)
    }

    fn endpoint(&self) -> String {
        let (address, port) = match self.options.machines.load_balancer {
            Some(address) => (address, BIND_PORT),
            None => (self.first_master(), "6443"),
        };
        let port = Port::parse(port).unwrap_or(Port::API_SERVER);
        let host = Host::Address(address);
        Endpoint { host, port }.to_string()
    }
}
