//! How a container is made into a machine: the options Docker needs and the files its first
//! boot finds.

use std::{io, net::Ipv4Addr, path::Path};

use crate::{
    name::{self, Name},
    settings::{ADDRESS, Labels, MACHINE, ROLE, Role, SANDBOX, Settings},
    subnet::Subnet,
};

/// Where the root file system keeps what makes it a sandbox machine.
const INSIDE: &str = "usr/lib/hatchery-sandbox";

/// Written much and in overlays of their own, which an overlay cannot carry.
const VOLUMES: [&str; 4] = [
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/etcd",
    "/var/lib/docker",
];

/// One container to make.
#[derive(Clone, Debug)]
pub(crate) struct ContainerSpec {
    sandbox: Name,
    pub(crate) machine: String,
    pub(crate) role: Role,
    pub(crate) address: Ipv4Addr,
    subnet: Subnet,
    settings: Settings,
    labels: Labels,
}

/// Secrets that a machine gets at its first boot.
#[derive(Clone)]
pub(crate) struct Access {
    /// One line for `authorized_keys`.
    pub(crate) public_key: String,
    /// The login user's password.
    pub(crate) password: String,
}

/// All containers of a sandbox with `machines` machines.
pub(crate) fn containers(
    sandbox: &Name,
    settings: &Settings,
    subnet: Subnet,
    machines: usize,
    extra: &Labels,
) -> Vec<ContainerSpec> {
    let container_spec = |machine: String, role: Role, address: Ipv4Addr| {
        let mut labels = settings.labels();
        labels.extend(extra.clone());
        labels.extend(
            [
                (SANDBOX, sandbox.to_string()),
                (MACHINE, machine.clone()),
                (ROLE, role.to_string()),
                (ADDRESS, address.to_string()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        ContainerSpec {
            sandbox: sandbox.clone(),
            machine,
            role,
            address,
            subnet,
            settings: settings.clone(),
            labels,
        }
    };
    let outside = container_spec(sandbox.outside(), Role::Outside, subnet.outside());
    let bastion = settings
        .bastion
        .then(|| container_spec(sandbox.bastion(), Role::Bastion, subnet.bastion()));
    let machines = (1..=machines).map(|number| {
        container_spec(
            sandbox.machine(number),
            Role::Machine,
            subnet.machine(number),
        )
    });
    [outside]
        .into_iter()
        .chain(bastion)
        .chain(machines)
        .collect()
}

impl ContainerSpec {
    /// The container's name.
    pub(crate) fn container(&self) -> String {
        name::container(&self.machine)
    }

    /// The arguments of `docker create`. `items` is the fixtures' directory, which outside
    /// serves as package repositories.
    pub(crate) fn create_arguments(
        &self,
        image: &str,
        capabilities: &[&str],
        items: &Path,
    ) -> Vec<String> {
        let mut arguments = vec!["create".to_owned()];
        let mut option = |key: &str, value: &str| arguments.push(format!("--{key}={value}"));
        option("name", &self.container());
        option("hostname", &self.machine);
        option("network", &self.sandbox.network());
        option("ip", &self.address.to_string());
        for (key, value) in &self.labels {
            option("label", &format!("{key}={value}"));
        }
        option("log-opt", "max-size=1m");
        if self.role == Role::Outside {
            option("volume", &format!("{}:/srv/items:ro", items.display()));
            arguments.push(image.to_owned());
            arguments.push(format!("/{INSIDE}/outside"));
            arguments.push(self.address.to_string());
            return arguments;
        }
        option("env", "container=docker");
        option("cgroupns", "private");
        option("tmpfs", "/run");
        option("tmpfs", "/tmp:exec");
        option("device", "/dev/kmsg");
        // Without it privileged pods fail on devices.allow.
        option("device-cgroup-rule", "a *:* rwm");
        for security in ["seccomp", "apparmor", "systempaths"] {
            option("security-opt", &format!("{security}=unconfined"));
        }
        for capability in capabilities {
            option("cap-add", capability);
        }
        for volume in VOLUMES {
            option("volume", volume);
        }
        arguments.push(image.to_owned());
        arguments.push(format!("/{INSIDE}/init"));
        arguments
    }

    /// The files its first boot finds, as a tar stream for `docker cp - CONTAINER:/`. Nothing
    /// for outside, which is not a machine.
    pub(crate) fn boot_files(&self, access: &Access) -> io::Result<Option<Vec<u8>>> {
        if self.role == Role::Outside {
            return Ok(None);
        }
        let mut archive = tar::Builder::new(Vec::new());
        let mut add = |name: &str, mode: u32, content: &str| {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(mode);
            header.set_entry_type(tar::EntryType::Regular);
            archive.append_data(&mut header, format!("{INSIDE}/{name}"), content.as_bytes())
        };
        add("machine.env", 0o644, &self.boot_settings())?;
        add(
            "authorized_keys",
            0o600,
            &format!("{}\n", access.public_key),
        )?;
        add("password", 0o600, &format!("{}\n", access.password))?;
        archive.into_inner().map(Some)
    }

    /// `machine.env`, read by a shell: every value was checked when it was made.
    fn boot_settings(&self) -> String {
        let mut lines = vec![
            format!("NAME={}", self.machine),
            format!("ADDRESS={}", self.address),
            format!("RESOLVER={}", self.subnet.outside()),
            format!("LOGIN_USER={}", self.settings.user),
            format!("LOGIN_SUDO={}", self.settings.sudo),
        ];
        if self.settings.bastion && self.role == Role::Machine {
            lines.push(format!("UNREACHABLE={}", self.subnet.gateway()));
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::{settings::Sudo, subnet};

    fn lab(settings: &Settings) -> Vec<ContainerSpec> {
        let subnet = subnet::choose(&[]).unwrap();
        containers(&"lab".parse().unwrap(), settings, subnet, 2, &Labels::new())
    }

    #[test]
    fn a_machine_s_container() {
        let lab = lab(&Settings::default());
        let machine = lab.iter().find(|b| b.machine == "lab-1").unwrap();
        let arguments = machine.create_arguments("image:1", &["SYS_ADMIN"], Path::new("/items"));
        insta::assert_snapshot!(arguments.join("\n"));
    }

    #[test]
    fn outside_serves_the_fixtures() {
        let lab = lab(&Settings::default());
        let arguments = lab[0].create_arguments("image:1", &["SYS_ADMIN"], Path::new("/items"));
        insta::assert_snapshot!(arguments.join("\n"));
        let access = Access {
            public_key: String::new(),
            password: String::new(),
        };
        assert!(lab[0].boot_files(&access).unwrap().is_none());
    }

    #[test]
    fn only_machines_behind_a_bastion_are_unreachable() {
        let settings = Settings {
            bastion: true,
            user: "ops".into(),
            sudo: Sudo::Password,
            ..Settings::default()
        };
        let lab = lab(&settings);
        let names: Vec<_> = lab.iter().map(|b| b.machine.as_str()).collect();
        assert_eq!(names, ["lab-outside", "lab-bastion", "lab-1", "lab-2"]);
        assert!(!lab[1].boot_settings().contains("UNREACHABLE"));
        insta::assert_snapshot!(lab[2].boot_settings());
    }

    #[test]
    fn the_first_boot_finds_key_and_password_in_private_files() {
        let access = Access {
            public_key: "ssh-ed25519 AAAA lab".into(),
            password: "hush".into(),
        };
        let files = lab(&Settings::default())[1]
            .boot_files(&access)
            .unwrap()
            .unwrap();
        let mut archive = tar::Archive::new(files.as_slice());
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().display().to_string();
            seen.push((path, entry.header().mode().unwrap(), text));
        }
        assert_eq!(seen.len(), 3);
        assert!(seen.contains(&(format!("{INSIDE}/password"), 0o600, "hush\n".into())));
    }
}
