//! All there is to know of a machine in memory at one moment.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, LazyLock},
    time::Duration,
};

use super::{
    change,
    failure::Failure,
    lock::Holder,
    login::Login,
    machine_facts::MachineFacts,
    record_store::{Record, RecordStore},
    request::{Request, What},
    tree::Node,
    world::World,
};
use crate::{
    content::Hash,
    machine::{ManagedResource, managed::is_certificate},
    script::RecordKey,
    transport::ending::Ending,
};

/// The facts of most machines: one text for all of them.
static USUAL: LazyLock<Arc<MachineFacts>> = LazyLock::new(|| Arc::new(MachineFacts::debian()));

/// What a machine was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The number of connections made.
    pub connections: usize,
    /// The number of commands begun.
    pub commands: usize,
    /// The number of bytes received, without passwords and marks.
    pub bytes: u64,
    /// What was understood, in order: `apply`, `look`, `undo`, `outcome`, `managed`, `facts`.
    pub asked: Vec<&'static str>,
}

/// What answers a request at a port.
pub(super) type Port = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

pub(super) struct State {
    pub(super) world: World,
    /// As it was before anything was done.
    pub(super) first: World,
    pub(super) store: RecordStore,
    pub(super) holder: Option<Holder>,
    pub(super) connections: Vec<Ending>,
    pub(super) failures: Vec<Failure>,
    pub(super) login: Login,
    pub(super) latency: Option<Duration>,
    pub(super) ports: BTreeMap<u16, Port>,
    pub(super) facts: Arc<MachineFacts>,
    pub(super) log: Log,
}

impl State {
    pub(super) fn new(name: &str) -> Self {
        let hosts = format!("127.0.0.1 localhost\n127.0.1.1 {name}\n");
        let world = World::fresh(name, &hosts);
        let mut state = Self {
            first: world.clone(),
            world,
            store: RecordStore::default(),
            holder: None,
            connections: Vec::new(),
            failures: Vec::new(),
            login: Login::default(),
            latency: None,
            ports: BTreeMap::new(),
            facts: Arc::clone(&USUAL),
            log: Log::default(),
        };
        state.set_facts(Arc::clone(&USUAL));
        state
    }

    /// The kernel parameters among the facts are the machine's.
    pub(super) fn set_facts(&mut self, facts: Arc<MachineFacts>) {
        for (path, value) in facts.sysctls() {
            self.world.set_sysctl(path, &value);
            self.first.set_sysctl(path, &value);
        }
        self.facts = facts;
    }

    /// Kind and name of a resource.
    pub(super) fn resource(&self, key: &str) -> String {
        let record = self.store.records.get(key);
        record
            .map(|record| format!("{} {}", record.kind(), record.name))
            .unwrap_or_default()
    }

    /// Writes down everything that is going to change; the step that cannot be, and why.
    pub(super) fn record(
        &mut self,
        request: &Request,
        needs: &[String],
    ) -> Result<(), (usize, String)> {
        self.store.recording = true;
        self.store.begin();
        for (number, (step, need)) in request.steps.iter().zip(needs).enumerate() {
            self.store.step = number;
            let recorded = change::record(&self.world, &mut self.store, step, need, &request.owner);
            recorded.map_err(|why| (number, why))?;
        }
        Ok(())
    }

    /// Remembers what a run that came to its end put there.
    pub(super) fn settle(&mut self, request: &Request) {
        for step in &request.steps {
            if let What::File { path, hash, .. } = &step.what
                && self.store.knows(&step.key)
                && self.world.files.at(path).is_some()
            {
                self.store.put.insert(step.key.clone(), hash.clone());
            }
        }
    }

    pub(super) fn resources(&self) -> Vec<ManagedResource> {
        let resources = self.store.records.iter();
        resources
            .filter_map(|(key, record)| {
                Some(self.managed_resource(&RecordKey::parse(key)?, record))
            })
            .collect()
    }

    fn managed_resource(&self, key: &RecordKey, record: &Record) -> ManagedResource {
        let name = &record.name;
        let own = key.to_string();
        let owners = self.store.owners.get(&own).into_iter().flatten();
        let mut resource = ManagedResource {
            key: key.clone(),
            kind: record.kind().into(),
            name: name.clone(),
            state: None,
            size: None,
            put: None,
            text: None,
            owners: owners.cloned().collect(),
        };
        match record.kind() {
            "file" => {
                resource.put = self.store.put.get(&own).cloned();
                resource.state = Some("absent".into());
                if let Some(Node::File(_, bytes)) = self.world.files.at(name) {
                    resource.state = Some(Hash::digest(bytes).as_str().into());
                    resource.size = Some(bytes.len() as u64);
                    resource.text = is_certificate(name, bytes)
                        .then(|| String::from_utf8_lossy(bytes).into_owned());
                }
            }
            "unit" => {
                let file = match self.world.unit_file_state(name) {
                    "" => "absent",
                    state => state,
                };
                let active = self.world.unit(name).active_word();
                resource.state = Some(format!("{active},{file}"));
            }
            _ => {}
        }
        resource
    }

    /// The same as the machine's script prints it.
    pub(super) fn managed(&self) -> String {
        let mut text = String::new();
        if !self.store.recording {
            return text;
        }
        if let Some((id, name)) = &self.store.cluster {
            let _ = writeln!(text, "cluster {id} {name}");
        }
        for resource in self.resources() {
            let told = |word: Option<String>| word.unwrap_or_else(|| "-".into());
            let _ = writeln!(
                text,
                "{} {} {} {} {} {} {}",
                resource.kind,
                told(resource.state),
                told(resource.size.map(|size| size.to_string())),
                told(resource.put),
                resource.key,
                resource.owners.join(","),
                resource.name
            );
            for line in resource.text.iter().flat_map(|text| text.lines()) {
                let _ = writeln!(text, "|{line}");
            }
        }
        text
    }
}
