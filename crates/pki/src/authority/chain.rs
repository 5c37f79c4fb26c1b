//! An authority's certificate and those above it.

use snafu::{ResultExt as _, ensure};
use time::OffsetDateTime;

use super::{
    BrokenChainSnafu, CertificateSnafu, Error, NotAnAuthoritySnafu, PathLengthSnafu, SubjectSnafu,
};
use crate::certificate::{Certificate, no_certificate};

/// An issuing certificate and those above it, each issued by the next.
pub(crate) struct Chain {
    pub(crate) signer: Certificate,
    above: Vec<Certificate>,
}

impl Chain {
    pub(super) fn from_pem(text: &str) -> Result<Self, Error> {
        let mut certificates = Certificate::all_from_pem(text)
            .context(CertificateSnafu)?
            .into_iter();
        let signer = certificates
            .next()
            .ok_or_else(no_certificate)
            .context(CertificateSnafu)?;
        let chain = Self {
            above: certificates.collect(),
            signer,
        };
        chain.check()?;
        Ok(chain)
    }

    fn check(&self) -> Result<(), Error> {
        for (below, one) in self.all().enumerate() {
            let common_name = one.common_name.as_str();
            ensure!(one.may_sign, NotAnAuthoritySnafu { common_name });
            // `below` authorities are below this one; below the first there are only leaves.
            let allowed = one.path_length.is_none_or(|most| below <= most as usize);
            ensure!(allowed, PathLengthSnafu { common_name });
        }
        for (one, above) in self.all().zip(&self.above) {
            ensure!(
                one.is_issued_by(above),
                BrokenChainSnafu {
                    common_name: &one.common_name,
                    above: &above.common_name
                }
            );
        }
        ensure!(
            self.signer.plain_subject,
            SubjectSnafu {
                common_name: &self.signer.common_name
            }
        );
        Ok(())
    }

    /// The signer, then those above it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Certificate> {
        std::iter::once(&self.signer).chain(&self.above)
    }

    /// The certificates that accompany a leaf: all but the root, which clients have or do not trust.
    pub(crate) fn intermediates(&self) -> impl Iterator<Item = &Certificate> {
        self.all().filter(|one| !one.is_root())
    }

    /// The leaf followed by the intermediate certificates.
    pub(super) fn append_to(&self, leaf: String) -> String {
        self.intermediates()
            .fold(leaf, |text, one| text + &one.to_pem())
    }

    pub(super) fn not_before(&self) -> OffsetDateTime {
        let above = self.above.iter().map(|one| one.not_before);
        above.fold(self.signer.not_before, Ord::max)
    }

    pub(super) fn not_after(&self) -> OffsetDateTime {
        let above = self.above.iter().map(|one| one.not_after);
        above.fold(self.signer.not_after, Ord::min)
    }
}
