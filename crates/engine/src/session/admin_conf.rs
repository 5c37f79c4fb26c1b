//! The administrator's kubeconfig, kept beside what else is remembered.

use hatchery_spec::Cluster;
use secrecy::{ExposeSecret as _, SecretSlice};
use time::OffsetDateTime;

use super::{Locked, RunError};
use crate::{
    authorities::Authorities,
    kubeconfig,
    state::{Expected, Key},
};

impl Locked {
    pub(super) async fn write_admin_conf(
        &self,
        cluster: &Cluster,
        authorities: &Authorities,
    ) -> Result<(), RunError> {
        let text = kubeconfig::issue(cluster, authorities, OffsetDateTime::now_utc())?;
        let bytes = SecretSlice::from(text.expose_secret().as_bytes().to_vec());
        let written = self
            .store()
            .write(Key::ADMIN_CONF, bytes, Expected::Anything);
        written.await?;
        Ok(())
    }
}
