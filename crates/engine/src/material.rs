//! From resources to operations: secrets come in, certificates that are still good stay.

#[cfg(test)]
mod tests;

use hatchery_host::{
    content::{Content, Hash},
    machine::{Managed, ManagedResource},
    operation::{Access, File, Operation, ValueError},
    path::MachinePath,
};
use hatchery_pki::{Authority, Credentials, check_certificate};
use secrecy::ExposeSecret as _;
use snafu::{ResultExt as _, Snafu};
use time::OffsetDateTime;

use crate::{
    authorities::Authorities,
    resource::{Issuer, Leaf, Resource, Secret, SecretFile},
};

/// What certificates are made with, and what is known of the machine.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    /// The authorities that sign certificates.
    pub authorities: &'a Authorities,
    /// The cluster's name, for kubeconfigs.
    pub cluster: &'a str,
    /// What the machine has of ours.
    pub managed: &'a Managed,
    /// The current time, by which certificates are issued and renewed.
    pub now: OffsetDateTime,
}

/// Operations, ready to be sent.
#[derive(Debug, Default)]
pub struct Made {
    /// What to do.
    pub operations: Vec<Operation>,
    /// Certificates that are made anew, each with the reason.
    pub issued: Vec<(MachinePath, String)>,
}

/// A certificate that cannot be made.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The authority refuses.
    #[snafu(display("cannot issue {path}: {source}"))]
    Issue {
        /// For which file.
        path: MachinePath,
        /// The underlying error.
        source: hatchery_pki::Error,
    },
    /// Cannot happen with modes of ours.
    #[snafu(transparent)]
    Value {
        /// The value that is not accepted.
        source: ValueError,
    },
}

impl Material<'_> {
    /// Turns resources into operations. `issue` is false where nothing is going to be sent: a certificate that would be
    /// made anew is then a file that differs.
    pub fn make(&self, resources: &[Resource], issue: bool) -> Result<Made, Error> {
        let mut made = Made::default();
        for resource in resources {
            match resource {
                Resource::Operation(operation) => made.operations.push(operation.clone()),
                Resource::Secret(file) => made.operations.push(self.secret(file)?),
                Resource::Leaf(leaf) => self.leaf(leaf, issue, &mut made)?,
            }
        }
        Ok(made)
    }

    fn secret(&self, file: &SecretFile) -> Result<Operation, Error> {
        let authorities = self.authorities;
        let text = match file.what {
            Secret::Certificate(issuer) => self.authority(issuer).cert_pem().to_owned(),
            Secret::ClusterKey => authorities.cluster.key_pem().expose_secret().to_owned(),
            Secret::Signer(issuer) => self.authority(issuer).signer_pem(),
            Secret::ServiceAccountKey => authorities
                .service_account
                .private_pem()
                .expose_secret()
                .to_owned(),
            Secret::ServiceAccountPublicKey => authorities.service_account.public_pem().to_owned(),
            Secret::EncryptionConfiguration => authorities
                .encryption_key
                .configuration()
                .expose_secret()
                .to_owned(),
        };
        Ok(put(&file.path, Content::bytes(text.into_bytes()))?)
    }

    fn authority(&self, issuer: Issuer) -> &Authority {
        match issuer {
            Issuer::Cluster => &self.authorities.cluster,
            Issuer::FrontProxy => &self.authorities.front_proxy,
            Issuer::Etcd => &self.authorities.etcd,
        }
    }

    fn leaf(&self, leaf: &Leaf, issue: bool, made: &mut Made) -> Result<(), Error> {
        let mut files = vec![&leaf.certificate, &leaf.key];
        files.extend(leaf.kubeconfig.as_ref().map(|config| &config.path));
        let reason = match self.kept(leaf, &files) {
            Ok(hashes) => {
                for (path, (hash, size)) in files.into_iter().zip(hashes) {
                    made.operations.push(put(path, Content::known(hash, size))?);
                }
                return Ok(());
            }
            Err(reason) => reason,
        };
        made.issued.push((leaf.certificate.clone(), reason));
        if !issue {
            for path in files {
                made.operations.push(put(path, Content::bytes(Vec::new()))?);
            }
            return Ok(());
        }
        let authority = self.authority(leaf.issuer);
        let issued = authority.issue(&leaf.request, self.now);
        let issued = issued.with_context(|_| IssueSnafu {
            path: leaf.certificate.clone(),
        })?;
        let key = issued.key_pem.expose_secret().as_bytes().to_vec();
        let certificate = issued.cert_pem.clone().into_bytes();
        made.operations
            .push(put(&leaf.certificate, Content::bytes(certificate))?);
        made.operations.push(put(&leaf.key, Content::bytes(key))?);
        if let Some(config) = &leaf.kubeconfig {
            let text = hatchery_pki::Kubeconfig {
                cluster: self.cluster.to_owned(),
                user: config.user.clone(),
                context: format!("{}@{}", config.user, self.cluster),
                server: config.server.clone(),
                authority_pem: authority.cert_pem().to_owned(),
                credentials: Credentials::Certificate(issued),
            };
            let text = text.render().expose_secret().as_bytes().to_vec();
            made.operations
                .push(put(&config.path, Content::bytes(text))?);
        }
        Ok(())
    }

    /// What is there when all of it may stay, or why not.
    fn kept(&self, leaf: &Leaf, files: &[&MachinePath]) -> Result<Vec<(Hash, u64)>, String> {
        if let Some(config) = &leaf.kubeconfig {
            let server = self.resource(&config.server_file);
            let server = server.and_then(|known| known.state.as_deref());
            let server = server.ok_or("nothing says where it leads")?;
            if server != Hash::digest(config.server.as_bytes()).as_str() {
                return Err("the API has another address now".into());
            }
        }
        let mut hashes = Vec::new();
        for path in files {
            let known = self.resource(path).ok_or("there is none")?;
            let there = known
                .state
                .as_deref()
                .filter(|state| *state != "absent")
                .ok_or("it is gone")?;
            if known.put.as_deref() != Some(there) {
                return Err("somebody changed it".into());
            }
            let hash = Hash::parse(there).map_err(|_| "the machine does not say what it has")?;
            hashes.push((
                hash,
                known.size.ok_or("the machine does not say how big it is")?,
            ));
        }
        let certificate = self
            .resource(&leaf.certificate)
            .and_then(|known| known.text.as_deref());
        let certificate = certificate.ok_or("it cannot be read")?;
        check_certificate(
            certificate,
            &leaf.request,
            self.authority(leaf.issuer),
            self.now,
        )
        .map_err(|unfit| unfit.to_string())?;
        Ok(hashes)
    }

    fn resource(&self, path: &MachinePath) -> Option<&ManagedResource> {
        let mut resources = self.managed.resources.iter();
        resources.find(|resource| resource.kind == "file" && resource.name == path.as_str())
    }
}

/// A file of root's alone. A service that runs as another user is given copies when it starts.
fn put(path: &MachinePath, content: Content) -> Result<Operation, ValueError> {
    Ok(Operation::File(File {
        path: path.clone(),
        content,
        access: Access::root(0o600)?,
    }))
}
