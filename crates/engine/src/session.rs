//! One open cluster: what is remembered of it, and every change to it.
//!
//! A command is the same few steps, whoever calls it: open ([`Session::open`], [`Session::lock`]), observe and plan
//! ([`Session::plan`], [`Session::plan_removal`]), show ([`Session::diff`]) or run ([`Locked::run`], [`Locked::remove`]),
//! and an [`Outcome`](crate::outcome::Outcome). A session and all that it does can move between threads, so that one process
//! can hold many.

mod admin_conf;
mod leaving;
mod missing;
mod plan;
mod recall;
mod refusal;
mod removal;
mod run;
mod wanted;

use std::{ops::Deref, path::PathBuf, sync::Arc, time::Duration};

use hatchery_host::{script::Identity, transport::ssh::Timeouts};
use hatchery_spec::{Cluster, cluster::Machine, value::Name};
use time::OffsetDateTime;

pub use self::{
    plan::Planned,
    refusal::{Refusal, RefusalKind},
    removal::{Removal, RemovalError},
    run::{Control, RunError},
};
use crate::{
    api_access::Machines,
    authorities::{self, Authorities, Foreseen},
    reach::{self, Environment},
    run::Settings,
    state::{self, Error, Holder, Key, Lock, Record, RunLog, Store, Stores, deploy_file, nobody},
    status::{self, Status},
};

/// An open cluster, to be looked at.
#[derive(Debug)]
pub struct Session {
    id: Name,
    stores: Arc<dyn Stores>,
    store: Arc<dyn Store>,
    environment: Environment,
    /// How its machines are worked on.
    pub settings: Settings,
    /// Where paths begin that are not absolute.
    pub base: PathBuf,
    /// What is remembered, if anything is.
    record: Option<Record>,
    /// For whom machines are held.
    identity: Identity,
}

/// An open cluster that is locked against other runs.
#[derive(Debug)]
pub struct Locked {
    session: Session,
    lock: Lock,
    /// As it is kept, or will be.
    record: Record,
    /// Whether it is this run that noted the begin of the cluster's removal.
    begins_removal: bool,
}

impl Deref for Locked {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Session {
    /// Opens the cluster of this name, be it remembered or not. Nothing is written.
    ///
    /// # Errors
    /// When what is remembered cannot be read.
    pub async fn open(
        stores: Arc<dyn Stores>,
        id: &Name,
        environment: Environment,
    ) -> Result<Self, Error> {
        let store = stores.store(id);
        let record = recall::record(id, store.as_ref(), &environment).await?;
        let identity = match &record {
            Some(record) => record.identity(),
            None => nobody(id),
        };
        Ok(Self {
            id: id.clone(),
            stores,
            store,
            environment,
            settings: Settings::default(),
            base: PathBuf::new(),
            record,
            identity,
        })
    }

    /// Keeps everybody else from changing the cluster, and looks again at what is remembered.
    ///
    /// # Errors
    /// When another run has the lock, or what is remembered cannot be read.
    pub async fn lock(self, holder: Holder) -> Result<Locked, Error> {
        let now = holder.since;
        let lock = self.store.lock(holder).await?;
        let known = recall::record(&self.id, self.store.as_ref(), &self.environment).await?;
        let record = match &known {
            Some(record) => record.clone(),
            None => Record::new(&self.id, now)?,
        };
        let identity = record.identity();
        Ok(Locked {
            session: Self {
                record: known,
                identity,
                ..self
            },
            lock,
            record,
            begins_removal: false,
        })
    }

    /// The id of the cluster.
    pub fn id(&self) -> &Name {
        &self.id
    }

    /// What is remembered of it, if anything is.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Where its values are kept.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Where the administrator's kubeconfig is.
    pub fn admin_conf(&self) -> String {
        self.store.place(Key::ADMIN_CONF)
    }

    /// The cluster with the machines that leave it: those that it has and the file does not name.
    ///
    /// # Errors
    /// When the files that are remembered cannot be read.
    pub async fn with_leaving(&self, cluster: &Cluster) -> Result<Cluster, Error> {
        let claims = self.record.as_ref().map(Record::claims).unwrap_or_default();
        let earlier = deploy_file::clusters(self.store()).await?;
        let leaving = leaving::leaving(cluster, claims, &earlier);
        Ok(cluster.clone().with_leaving(leaving))
    }

    /// The authorities of the cluster, if it has them.
    ///
    /// # Errors
    /// When they cannot be read, or are damaged.
    pub async fn authorities(&self) -> Result<Option<Authorities>, authorities::Error> {
        Authorities::load(self.store()).await
    }

    /// The authorities of the cluster, or some such as it will have.
    ///
    /// # Errors
    /// When they cannot be read, or the user's own are unfit.
    pub async fn foreseen_authorities(
        &self,
        planned: &Planned,
    ) -> Result<Foreseen, authorities::Error> {
        let external = self.external_ca(&planned.wanted.cluster)?;
        let formed = planned.formed || self.record.as_ref().is_some_and(|one| one.formed);
        let now = OffsetDateTime::now_utc();
        Authorities::load_or_imagine(self.store(), formed, external.as_deref(), now).await
    }

    /// What the cluster is like at this moment. Each machine, and the API, has this long to answer.
    ///
    /// # Errors
    /// What is missing on the control machine, or of the authorities.
    pub async fn status(&self, cluster: &Cluster, deadline: Duration) -> Result<Status, String> {
        let authorities = self.authorities().await;
        let authorities = authorities.map_err(|error| error.to_string())?;
        let timeouts = Timeouts {
            connect: deadline,
            handshake: deadline,
            authentication: deadline,
            ..Timeouts::default()
        };
        let machines = self.machines(cluster.machines(), &timeouts);
        let machines = machines.map_err(|refusal| refusal.to_string())?;
        Ok(status::look(cluster, &machines, authorities.as_ref(), deadline).await)
    }

    /// Machines of this cluster, not connected yet.
    ///
    /// # Errors
    /// Everything that is missing on the control machine.
    pub fn machines<'a>(
        &self,
        nodes: impl IntoIterator<Item = &'a Machine>,
        timeouts: &Timeouts,
    ) -> Result<Machines, Refusal> {
        let environment = &self.environment;
        reach::machines(nodes, self.store(), &self.identity, environment, timeouts)
            .map_err(|findings| Refusal::new(RefusalKind::ControlMachine, findings))
    }

    /// Begins the log of a run.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn begin_log(&self, now: OffsetDateTime) -> Result<RunLog, Error> {
        self.stores.begin_log(&self.id, now)
    }

    /// For whom its machines are held.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    fn external_ca(&self, cluster: &Cluster) -> Result<Option<PathBuf>, authorities::Error> {
        let path = self.environment.external_ca(&cluster.certificates);
        path.map_err(|error| authorities::Error::home(&error))
    }
}

impl Locked {
    /// The authorities of the cluster, made or taken from the user where it has none yet.
    ///
    /// # Errors
    /// Everything that is missing, damaged or unfit.
    pub async fn make_authorities(
        &mut self,
        planned: &Planned,
    ) -> Result<Authorities, authorities::Error> {
        self.record.formed |= planned.formed;
        let external = self.external_ca(&planned.wanted.cluster)?;
        let now = OffsetDateTime::now_utc();
        let formed = self.record.formed;
        Authorities::load_or_create(self.store(), &self.lock, formed, external.as_deref(), now)
            .await
    }

    /// Whether this is still what is remembered of the deploy file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn is_deploy_file(&self, text: &[u8]) -> Result<bool, Error> {
        let latest = state::DeployFile::latest(self.store()).await?;
        Ok(latest.is_some_and(|latest| latest.text == text))
    }
}
