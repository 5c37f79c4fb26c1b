//! Sandbox machines as Hatchery reaches them.

use std::{path::Path, sync::Arc, time::Duration};

use hatchery_host::{
    machine::Machine,
    path::Word,
    privilege::Privilege,
    script::Identity,
    transport::{
        Connector,
        ssh::{Auth, Bastions, Hop, HostKey, Key, Ssh, Target, Timeouts},
    },
};
use hatchery_sandbox::{
    docker, fixtures,
    lab::{Machine as Node, Options},
    settings::{RequestedSettings, Sudo, System},
    test_lab::TestLab,
};

pub(crate) struct Bench {
    pub(crate) lab: TestLab,
    bastions: Bastions,
}

pub(crate) fn word(text: &str) -> Word {
    Word::new(text).unwrap()
}

impl Bench {
    pub(crate) async fn new(name: &str, machines: usize, settings: RequestedSettings) -> Self {
        fixtures::ensure(&["packages-new"]).await.unwrap();
        Self::bare(name, machines, settings).await
    }

    /// Without packages of ours to install.
    pub(crate) async fn bare(name: &str, machines: usize, settings: RequestedSettings) -> Self {
        let options = Options {
            settings,
            ..Options::new(name.parse().unwrap(), machines)
        };
        Self {
            lab: TestLab::up(options).await.unwrap(),
            bastions: Bastions::new(),
        }
    }

    pub(crate) fn system(&self) -> System {
        self.lab.settings.system
    }

    pub(crate) fn target(&self, number: usize) -> Target {
        let node = &self.lab.machines[number];
        let auth = vec![Auth::Key(Key::file(self.lab.key(), None))];
        let host_key = HostKey::Known {
            files: vec![self.lab.known_hosts()],
            record: None,
        };
        let hop = |host: String| Hop {
            host,
            port: 22,
            user: self.lab.settings.user.clone(),
            auth: auth.clone(),
            host_key: host_key.clone(),
        };
        let bastion = self.lab.bastion.as_ref();
        Target {
            name: node.name.clone(),
            host: node.address.to_string(),
            port: 22,
            user: self.lab.settings.user.clone(),
            auth: auth.clone(),
            host_key: host_key.clone(),
            jumps: bastion
                .map(|bastion| hop(bastion.address.to_string()))
                .into_iter()
                .collect(),
        }
    }

    pub(crate) fn connector(&self, number: usize) -> Arc<dyn Connector> {
        let timeouts = Timeouts {
            connect: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            keep_alive: Duration::from_secs(2),
            ..Timeouts::default()
        };
        Arc::new(Ssh::new(
            self.target(number),
            timeouts,
            self.bastions.clone(),
        ))
    }

    pub(crate) fn privilege(&self) -> Privilege {
        if self.lab.settings.user == "root" {
            return Privilege::Root;
        }
        let password =
            (self.lab.settings.sudo == Sudo::Password).then(|| self.lab.password().unwrap().into());
        Privilege::Sudo { password }
    }

    pub(crate) fn machine(&self, number: usize) -> Machine {
        self.machine_through(self.connector(number))
    }

    pub(crate) fn machine_through(&self, connector: Arc<dyn Connector>) -> Machine {
        Machine::new(connector, self.privilege(), identity())
    }

    /// Things that are there before us, to be found again afterwards.
    pub(crate) async fn furnish(&self, node: &Node) {
        let only_ours = "printf '%s\\n' 'deb [trusted=yes] http://repo.outside.test/packages-new/apt ./' >/etc/apt/sources.list.d/hatchery.list && rm -f /etc/apt/sources.list && apt-get -qq update";
        if self.system() == System::Debian {
            inside(node, only_ours).await;
        }
        inside(
            node,
            "set -e
            mkdir -p /etc/theirs /srv/data/kept
            for i in 1 2 3 4 5 6 7 8 9 10; do echo \"theirs $i\" >/etc/theirs/$i.conf; chmod 6$i /etc/theirs/$i.conf 2>/dev/null || chmod 604 /etc/theirs/$i.conf; done
            chown 7:8 /etc/theirs/2.conf; touch -d '2020-02-02 02:02:02.123456789' /etc/theirs/3.conf
            ln -s nowhere /etc/theirs/dangling; ln -s /srv/data /etc/theirs/to-directory
            printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/theirs.service
            systemctl daemon-reload; systemctl enable --now --quiet theirs.service",
        )
        .await;
    }
}

/// As root on the machine, without SSH.
pub(crate) async fn inside(node: &Node, script: &str) -> String {
    docker::run(&["exec", &node.container(), "bash", "-c", script])
        .await
        .unwrap()
}

/// A machine that another process of this test made, as root.
pub(crate) fn root_at(address: &str, key: &Path, known_hosts: &Path) -> Machine {
    let target = Target {
        name: address.into(),
        host: address.into(),
        port: 22,
        user: "root".into(),
        auth: vec![Auth::Key(Key::file(key, None))],
        host_key: HostKey::Known {
            files: vec![known_hosts.into()],
            record: None,
        },
        jumps: Vec::new(),
    };
    let ssh = Ssh::new(target, Timeouts::default(), Bastions::new());
    Machine::new(Arc::new(ssh), Privilege::Root, identity())
}

fn identity() -> Identity {
    Identity {
        cluster: word("c1"),
        cluster_name: word("one"),
    }
}
