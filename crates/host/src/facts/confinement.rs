//! Whether a machine is a container, or virtual.

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// What a machine runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The kind of container that the machine is, such as `docker`; `None` without any sign of one.
    pub container: Option<String>,
    /// The hypervisor it runs on, such as `kvm`, where that is cheaply known.
    pub hypervisor: Option<String>,
}

impl Confinement {
    /// Whether the kernel belongs to another machine.
    pub fn is_container(&self) -> bool {
        self.container.is_some()
    }
}

/// What systemd calls containers, beside its names for hypervisors.
const CONTAINERS: [&str; 11] = [
    "docker",
    "podman",
    "lxc",
    "lxc-libvirt",
    "systemd-nspawn",
    "rkt",
    "openvz",
    "wsl",
    "proot",
    "pouch",
    "container-other",
];

/// Beginnings of what the firmware says of vendor or product, and the hypervisor behind it.
const PRODUCTS: [(&str, &str); 12] = [
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("Alibaba Cloud ECS", "kvm"),
    ("VMware", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("Bochs", "bochs"),
    ("Virtual Machine", "microsoft"),
];

pub(super) fn confinement(answer: &Answer) -> Confinement {
    let told = answer
        .each("systemd")
        .find_map(|line| line.strip_prefix("Virtualization="));
    let told = told.filter(|kind| !kind.is_empty());
    let is_container = |kind: &&str| CONTAINERS.contains(kind);
    let signs = [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];
    // OpenVZ's own machine has both, its containers only the first.
    let openvz = answer.has_path("/proc/vz") && !answer.has_path("/proc/bc");
    let container = answer
        .value("container")
        .or_else(|| told.filter(is_container).map(str::to_owned))
        .or_else(|| openvz.then(|| "openvz".to_owned()))
        .or_else(|| {
            let sign = signs.iter().find(|(path, _)| answer.has_path(path));
            sign.map(|&(_, kind)| kind.to_owned())
        });
    let hypervisor = told.filter(|kind| !is_container(kind)).map(str::to_owned);
    Confinement {
        container,
        hypervisor: hypervisor.or_else(|| firmware(answer)),
    }
}

fn firmware(answer: &Answer) -> Option<String> {
    let said = ["product-name", "product-vendor"].map(|name| answer.value(name));
    let product = said.iter().flatten().find_map(|said| {
        let known = PRODUCTS.iter().find(|(begin, _)| said.starts_with(begin));
        known.map(|&(_, hypervisor)| hypervisor.to_owned())
    });
    product.or_else(|| answer.value("hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    fn told(sections: &[(&str, &str)]) -> (Option<String>, Option<String>) {
        let found = confinement(&with_sections(sections));
        (found.container, found.hypervisor)
    }

    #[test]
    fn containers_and_hypervisors_are_told_apart() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(told(&[]), (None, None));
        assert_eq!(told(&[("systemd", "Virtualization=\n")]), (None, None));
        assert_eq!(
            told(&[("systemd", "Virtualization=kvm\n")]),
            (None, some("kvm"))
        );
        assert_eq!(
            told(&[("systemd", "Virtualization=docker\n")]),
            (some("docker"), None)
        );
        assert_eq!(told(&[("paths", "/.dockerenv\n")]), (some("docker"), None));
        assert_eq!(told(&[("paths", "/proc/vz\n")]), (some("openvz"), None));
        assert_eq!(told(&[("paths", "/proc/vz\n/proc/bc\n")]), (None, None));
        let lxc = "container lxc\nproduct-vendor QEMU\n";
        assert_eq!(told(&[("values", lxc)]), (some("lxc"), some("qemu")));
    }
}
