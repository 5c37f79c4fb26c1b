//! Parsing of certificates.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use snafu::{OptionExt, Snafu};
use time::OffsetDateTime;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::x509::X509Name;

/// The text is not a certificate in PEM format.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("this is not a certificate in PEM format: {reason}"))]
pub struct InvalidCertificate {
    reason: String,
}

/// When a certificate expires.
///
/// # Errors
/// When the text is not a certificate in PEM format.
pub fn expiry(cert_pem: &str) -> Result<OffsetDateTime, InvalidCertificate> {
    Ok(Certificate::from_pem(cert_pem)?.not_after)
}

/// The parts of a certificate that this crate compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) common_name: String,
    pub(crate) organizations: BTreeSet<String>,
    pub(crate) dns_names: BTreeSet<String>,
    pub(crate) ips: BTreeSet<IpAddr>,
    pub(crate) client: bool,
    pub(crate) server: bool,
    pub(crate) is_authority: bool,
    /// Whether it is an authority that may sign certificates, and not only revocation lists.
    pub(crate) may_sign: bool,
    /// The maximum number of authorities between it and a leaf; unlimited without a constraint.
    pub(crate) path_length: Option<u32>,
    pub(crate) not_before: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
    /// The subject as encoded, which issued certificates must repeat byte for byte.
    pub(crate) subject_der: Vec<u8>,
    pub(crate) issuer_der: Vec<u8>,
    /// The raw bits of the public key.
    pub(crate) public_key: Vec<u8>,
    /// Whether the subject has one attribute of a type at most, each in its own set.
    pub(crate) plain_subject: bool,
    pem: Pem,
}

impl Certificate {
    pub(crate) fn from_pem(text: &str) -> Result<Self, InvalidCertificate> {
        let (_, pem) = parse_x509_pem(text.as_bytes()).map_err(invalid)?;
        Self::from_block(&pem)
    }

    /// All certificates of a text that contains nothing else.
    pub(crate) fn all_from_pem(text: &str) -> Result<Vec<Self>, InvalidCertificate> {
        Pem::iter_from_buffer(text.as_bytes())
            .map(|pem| Self::from_block(&pem.map_err(invalid)?))
            .collect()
    }

    fn from_block(pem: &Pem) -> Result<Self, InvalidCertificate> {
        if pem.label != "CERTIFICATE" {
            return InvalidCertificateSnafu {
                reason: format!("it is a \"{}\"", pem.label),
            }
            .fail();
        }
        let x509 = pem.parse_x509().map_err(invalid)?;
        let usages = x509.extended_key_usage().map_err(invalid)?;
        let key_usage = x509.key_usage().map_err(invalid)?;
        let constraints = x509.basic_constraints().map_err(invalid)?;
        let mut certificate = Self {
            common_name: texts(x509.subject().iter_common_name())
                .next()
                .unwrap_or_default(),
            organizations: texts(x509.subject().iter_organization()).collect(),
            dns_names: BTreeSet::new(),
            ips: BTreeSet::new(),
            client: usages.as_ref().is_some_and(|usage| usage.value.client_auth),
            server: usages.as_ref().is_some_and(|usage| usage.value.server_auth),
            is_authority: x509.is_ca(),
            may_sign: x509.is_ca() && key_usage.is_none_or(|usage| usage.value.key_cert_sign()),
            path_length: constraints.and_then(|one| one.value.path_len_constraint),
            not_before: x509.validity().not_before.to_datetime(),
            not_after: x509.validity().not_after.to_datetime(),
            subject_der: x509.subject().as_raw().to_vec(),
            issuer_der: x509.issuer().as_raw().to_vec(),
            public_key: x509.public_key().subject_public_key.data.to_vec(),
            plain_subject: is_plain(x509.subject()),
            pem: pem.clone(),
        };
        if let Some(names) = x509.subject_alternative_name().map_err(invalid)? {
            for name in &names.value.general_names {
                match name {
                    GeneralName::DNSName(name) => {
                        certificate.dns_names.insert((*name).to_owned());
                    }
                    GeneralName::IPAddress(octets) => {
                        let ip = address(octets).context(InvalidCertificateSnafu {
                            reason: "one of its addresses is neither IPv4 nor IPv6",
                        })?;
                        certificate.ips.insert(ip);
                    }
                    _ => {}
                }
            }
        }
        Ok(certificate)
    }

    pub(crate) fn der(&self) -> &[u8] {
        &self.pem.contents
    }

    /// In PEM format, without comments around it.
    pub(crate) fn to_pem(&self) -> String {
        let body = STANDARD.encode(self.der());
        let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
        // Base64 is ASCII, so every index is a character boundary.
        for start in (0..body.len()).step_by(64) {
            text += &body[start..body.len().min(start + 64)];
            text.push('\n');
        }
        text + "-----END CERTIFICATE-----\n"
    }

    /// Whether it is self-signed.
    pub(crate) fn is_root(&self) -> bool {
        self.is_issued_by(self)
    }

    /// Whether `authority` issued it, by its subject and its key.
    pub(crate) fn is_issued_by(&self, authority: &Self) -> bool {
        self.issuer_der == authority.subject_der && self.is_signed_by(authority)
    }

    /// Whether this certificate's signature was made with the key of `authority`.
    fn is_signed_by(&self, authority: &Self) -> bool {
        let (Ok(this), Ok(other)) = (self.pem.parse_x509(), authority.pem.parse_x509()) else {
            return false;
        };
        this.verify_signature(Some(other.public_key())).is_ok()
    }
}

pub(crate) fn no_certificate() -> InvalidCertificate {
    invalid("it contains none")
}

fn invalid(error: impl std::fmt::Display) -> InvalidCertificate {
    InvalidCertificate {
        reason: error.to_string(),
    }
}

fn texts<'a>(
    attributes: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> impl Iterator<Item = String> {
    attributes.filter_map(|attribute| attribute.as_str().ok().map(str::to_owned))
}

fn is_plain(name: &X509Name<'_>) -> bool {
    let mut seen = BTreeSet::new();
    name.iter().all(|set| {
        set.iter().count() == 1
            && set
                .iter()
                .all(|attribute| seen.insert(attribute.attr_type().to_id_string()))
    })
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(octets) {
        return Some(v4.into());
    }
    <[u8; 16]>::try_from(octets).ok().map(Into::into)
}
