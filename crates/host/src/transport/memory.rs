//! A machine in memory, without any process: for the tests of everything above.
//!
//! It gets the same bytes as a real machine, and answers as the script on a real one does. What it has
//! instead of files, units and packages can be looked at, and can be made to fail. It runs no shell: a
//! [`crate::operation::Script`] is done when it was asked for, and done again when its check is another one.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::{sync::Arc, time::Duration};
//! use hatchery_host::{machine::Machine, path::Word, privilege::Privilege, script::Identity};
//! use hatchery_host::transport::memory::{Memory, MachineFacts};
//!
//! let memory = Memory::new("m1").with_facts(MachineFacts::debian().with_machine("aarch64"));
//! let word = |text| Word::new(text).unwrap();
//! let identity = Identity { cluster: word("c1"), cluster_name: word("one") };
//! let machine = Machine::new(Arc::new(memory.clone()), Privilege::Root, identity);
//! let (facts, managed) = machine.facts(Duration::from_secs(5)).await.unwrap();
//! assert_eq!(facts.names.hostname.as_deref(), Some("m1"));
//! assert!(managed.resources.is_empty() && memory.is_untouched());
//! # });
//! ```

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

mod change;
mod connection;
mod failure;
mod incoming;
mod lock;
mod login;
mod look;
mod machine_facts;
mod record_store;
mod request;
mod run;
mod session;
mod state;
mod tree;
mod undo;
mod world;

pub use self::{
    failure::{At, Failure},
    login::Login,
    machine_facts::MachineFacts,
    state::Log,
};

use self::{
    lock::Holder,
    state::State,
    tree::{Looks, Node},
    world::World,
};
use crate::machine::ManagedResource;

/// One machine in memory. Clones are the same machine.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    state: Mutex<State>,
    /// Told when a run has ended.
    freed: Notify,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// A fresh machine that is called so, with the facts of [`MachineFacts::debian`].
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let shared = Shared {
            state: Mutex::new(State::new(&name)),
            name,
            freed: Notify::new(),
        };
        let shared = Arc::new(shared);
        Self { shared }
    }

    /// With other facts. Its name and `/etc/hosts` stay its own.
    #[must_use]
    pub fn with_facts(self, facts: MachineFacts) -> Self {
        self.shared.lock().set_facts(Arc::new(facts));
        self
    }

    /// With another user.
    #[must_use]
    pub fn with_login(self, login: Login) -> Self {
        self.shared.lock().login = login;
        self
    }

    /// The delay before each command begins.
    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        self.shared.lock().latency = Some(latency);
        self
    }

    /// With a service at a port: every connection gets one answer after its first bytes.
    #[must_use]
    pub fn with_port(
        self,
        port: u16,
        answer: impl Fn() -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        self.shared.lock().ports.insert(port, Arc::new(answer));
        self
    }

    /// With a file that was there before, with every directory above it.
    #[must_use]
    pub fn with_file(self, path: &str, mode: u16, bytes: impl Into<Arc<[u8]>>) -> Self {
        let node = Node::File(Looks::root(mode.into()), bytes.into());
        self.furnished(|world| world.furnish(path, node.clone()))
    }

    /// With a directory that was there before.
    #[must_use]
    pub fn with_directory(self, path: &str, mode: u16) -> Self {
        let node = Node::Directory(Looks::root(mode.into()));
        self.furnished(|world| world.furnish(path, node.clone()))
    }

    /// With a symbolic link that was there before.
    #[must_use]
    pub fn with_link(self, path: &str, target: &str) -> Self {
        self.furnished(|world| world.furnish(path, Node::Link(target.into())))
    }

    /// Without any file, whatever [`Memory::new`] put there.
    #[must_use]
    pub fn without_files(self) -> Self {
        self.furnished(|world| world.files = tree::Tree::default())
    }

    /// With a package that was there before.
    #[must_use]
    pub fn with_package(self, name: &str, version: &str) -> Self {
        self.furnished(|world| {
            world.packages.insert(name.into(), version.into());
        })
    }

    /// A package brings a unit with it, once it is installed. Units are otherwise known by their files.
    #[must_use]
    pub fn with_packaged_unit(self, package: &str, unit: &str) -> Self {
        self.furnished(|world| {
            world
                .brought
                .entry(package.into())
                .or_default()
                .insert(unit.into());
        })
    }

    /// With a unit that was enabled or running before.
    #[must_use]
    pub fn with_unit(self, name: &str, enabled: bool, active: bool) -> Self {
        self.furnished(|world| {
            world.set_unit(name, |state| *state = world::UnitState { enabled, active });
        })
    }

    /// With a kernel parameter by its path below `/proc/sys`; `None` when the kernel does not have it. All that are
    /// not in the facts are there and zero.
    #[must_use]
    pub fn with_sysctl(self, path: &str, value: Option<&str>) -> Self {
        self.furnished(|world| match value {
            Some(value) => world.set_sysctl(path, value),
            None => {
                world.missing_sysctls.insert(path.into());
            }
        })
    }

    /// With a kernel module that was loaded before.
    #[must_use]
    pub fn with_module(self, name: &str) -> Self {
        self.furnished(|world| {
            world.modules.insert(name.into());
        })
    }

    /// With firewalld running, and no port open.
    #[must_use]
    pub fn with_firewall(self) -> Self {
        self.furnished(|world| world.firewall = Some(std::collections::BTreeSet::new()))
    }

    fn furnished(self, change: impl Fn(&mut World)) -> Self {
        {
            let state = &mut *self.shared.lock();
            change(&mut state.world);
            change(&mut state.first);
        }
        self
    }

    /// Makes something go wrong from now on.
    pub fn inject(&self, failure: Failure) {
        let mut state = self.shared.lock();
        if let Failure::Busy { run } = &failure {
            state.store.begun = true;
            state.holder = Some(Holder::new(run, None));
        }
        state.failures.push(failure);
    }

    /// Nothing goes wrong any more, and no other run is at work.
    pub fn heal(&self) {
        {
            let mut state = self.shared.lock();
            for failure in std::mem::take(&mut state.failures) {
                if let Failure::Busy { run } = failure {
                    state.holder.take_if(|holder| holder.run == run);
                }
            }
        }
        self.shared.freed.notify_waiters();
    }

    /// Another cluster has it, by id and name.
    pub fn hold_for(&self, cluster: &str, name: &str) {
        let store = &mut self.shared.lock().store;
        store.begun = true;
        store.cluster = Some((cluster.into(), name.into()));
    }

    /// Writes a file as another user of the machine would; the directory has to exist.
    pub fn write(&self, path: &str, bytes: impl Into<Arc<[u8]>>) -> Result<(), String> {
        let files = &mut self.shared.lock().world.files;
        let looks = match files.at(path) {
            Some(Node::File(looks, _)) => looks.clone(),
            _ => Looks::root(0o644),
        };
        files.put(path, Node::File(looks, bytes.into()))
    }

    /// Everything in its record, in the order of the record's names.
    pub fn resources(&self) -> Vec<ManagedResource> {
        self.shared.lock().resources()
    }

    /// The files that are there now, the machine's own ones too.
    pub fn files(&self) -> BTreeMap<String, Arc<[u8]>> {
        let state = self.shared.lock();
        let file = |(path, node): (&str, &Node)| match node {
            Node::File(_, bytes) => Some((path.to_owned(), Arc::clone(bytes))),
            Node::Directory(_) | Node::Link(_) => None,
        };
        state.world.files.nodes().filter_map(file).collect()
    }

    /// The bytes of a file, links followed.
    pub fn file(&self, path: &str) -> Option<Arc<[u8]>> {
        self.shared.lock().world.files.bytes(path).cloned()
    }

    /// What is at every path, in one line each: mode, user, group and text of a file, the target of a link.
    pub fn paths(&self) -> BTreeMap<String, String> {
        let state = self.shared.lock();
        state
            .world
            .files
            .nodes()
            .map(|(path, node)| (path.to_owned(), node.to_string()))
            .collect()
    }

    /// A kernel parameter by its path below `/proc/sys`.
    pub fn sysctl(&self, path: &str) -> Option<String> {
        self.shared.lock().world.sysctl(path).map(str::to_owned)
    }

    /// Whether a unit is enabled, and whether it runs.
    pub fn unit(&self, name: &str) -> (bool, bool) {
        let state = self.shared.lock().world.unit(name);
        (state.enabled, state.active)
    }

    /// The packages that are installed, with their versions.
    pub fn packages(&self) -> BTreeMap<String, String> {
        self.shared.lock().world.packages.clone()
    }

    /// The name it has now.
    pub fn hostname(&self) -> String {
        self.shared.lock().world.hostname.clone()
    }

    /// Whether it is as it was at first, and nothing of Hatchery is there.
    pub fn is_untouched(&self) -> bool {
        let state = self.shared.lock();
        !state.store.begun && state.world == state.first
    }

    /// What it was asked so far.
    pub fn log(&self) -> Log {
        self.shared.lock().log.clone()
    }
}

impl Shared {
    /// Nothing under this lock can panic half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn happening(
        &self,
        number: Option<usize>,
        title: &str,
        moment: failure::Moment,
    ) -> Option<failure::Happening> {
        failure::happening(&mut self.lock().failures, number, title, moment)
    }

    /// Every connection is gone, and so is every run.
    fn lose_power(&self) {
        let (connections, holder) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.connections), state.holder.take())
        };
        for connection in connections {
            connection.come("the machine in memory lost its power");
        }
        if let Some(holder) = holder {
            holder.killed.come("the machine in memory lost its power");
        }
        self.freed.notify_waiters();
    }
}
