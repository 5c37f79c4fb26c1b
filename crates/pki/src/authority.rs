//! A certificate authority: made, read back, and issuing.

mod chain;

use std::fmt;
use std::net::IpAddr;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
};
use secrecy::{ExposeSecret, SecretString};
use snafu::{ResultExt, Snafu, ensure};
use time::{Duration, OffsetDateTime};

pub(crate) use self::chain::Chain;
use crate::certificate::{Certificate, Unreadable};
use crate::private_key;
use crate::request::Request;

/// How long an authority lasts unless asked otherwise.
pub const AUTHORITY_LIFETIME: Duration = Duration::days(10 * 365);

/// Certificates begin this long before they are made, for machines whose clock is behind.
pub(crate) const BACKDATE: Duration = Duration::minutes(5);

/// Why an authority could not be made, read or asked.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The random source or the key generator refused.
    #[snafu(display("no key could be made for \"{common_name}\""))]
    Generate {
        /// Whose key it was to be.
        common_name: String,
        /// What the generator said.
        source: rcgen::Error,
    },
    /// The system gave no random bytes.
    #[snafu(display("the system gave no random bytes for a serial number"))]
    Random,
    /// A lifetime that ends beyond what a certificate can say.
    #[snafu(display("a lifetime of {} days for \"{common_name}\" cannot be written in a certificate", lifetime.whole_days()))]
    Lifetime {
        /// Whose certificate it was to be.
        common_name: String,
        /// How long it was to last.
        lifetime: Duration,
    },
    /// The encoder refused.
    #[snafu(display("the certificate \"{common_name}\" could not be signed"))]
    Sign {
        /// Whose certificate it was to be.
        common_name: String,
        /// What the encoder said.
        source: rcgen::Error,
    },
    /// A name that no certificate can carry.
    #[snafu(display(
        "\"{name}\" cannot be a DNS name in the certificate \"{common_name}\": {reason}"
    ))]
    DnsName {
        /// Whose certificate it was to be.
        common_name: String,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A certificate without a subject.
    #[snafu(display("a certificate needs a common name"))]
    NoCommonName,
    /// The text given as authority certificate is none.
    #[snafu(display("the authority's certificate cannot be read"))]
    Certificate {
        /// What is wrong with it.
        source: Unreadable,
    },
    /// The text given as authority key is none.
    #[snafu(display(
        "the key of the authority \"{common_name}\" cannot be read; it must be an unencrypted PEM key, RSA or ECDSA"
    ))]
    Key {
        /// Whose key.
        common_name: String,
        /// What the reader said.
        source: rcgen::Error,
    },
    /// A leaf was given where an authority is needed.
    #[snafu(display(
        "the certificate \"{common_name}\" is not an authority: it may not sign others"
    ))]
    NotAnAuthority {
        /// Its common name.
        common_name: String,
    },
    /// Certificates in one text that are no chain.
    #[snafu(display(
        "the certificate \"{common_name}\" was not issued by \"{above}\", which follows it; the issuing one comes first, then the one that issued it, and so on up to the root"
    ))]
    Broken {
        /// The lower certificate.
        common_name: String,
        /// The one behind it.
        above: String,
    },
    /// A chain with more authorities than one of them allows.
    #[snafu(display(
        "the authority \"{common_name}\" does not allow so many authorities below it"
    ))]
    TooLong {
        /// The authority that limits the chain.
        common_name: String,
    },
    /// Certificate and key belong to different pairs.
    #[snafu(display(
        "the key given for the authority \"{common_name}\" belongs to another certificate"
    ))]
    OtherKey {
        /// The certificate's common name.
        common_name: String,
    },
    /// A subject this crate could not repeat byte for byte in what it issues.
    #[snafu(display(
        "the authority \"{common_name}\" has a subject with repeated or combined attributes, which is not supported"
    ))]
    Subject {
        /// The certificate's common name.
        common_name: String,
    },
    /// Nothing issued now would ever be valid.
    #[snafu(display(
        "the authority \"{common_name}\" ended at {ended}; it must be replaced before it can issue anything"
    ))]
    Ended {
        /// The authority.
        common_name: String,
        /// When.
        ended: OffsetDateTime,
    },
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The certificate in PEM format, followed by its authority's where that is an intermediate one.
    pub cert_pem: String,
    /// Its private key in PEM format (PKCS#8).
    pub key_pem: SecretString,
}

/// A certificate authority with its key.
pub struct Authority {
    pub(crate) chain: Chain,
    cert_pem: String,
    key_pem: SecretString,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("common_name", &self.common_name())
            .field("not_after", &self.ends())
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a new, self-signed authority that vouches for leaves only: it may not sign other authorities.
    ///
    /// # Errors
    /// When the name is empty, the lifetime absurd, or the system gives no randomness.
    pub fn new(common_name: &str, lifetime: Duration, now: OffsetDateTime) -> Result<Self, Error> {
        let mut params = parameters(common_name, None)?;
        (params.not_before, params.not_after) = validity(common_name, lifetime, now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = generate(common_name)?;
        let cert_pem = params
            .self_signed(&key)
            .context(SignSnafu { common_name })?
            .pem();
        let key_pem = SecretString::from(key.serialize_pem());
        Self::from_pem(&cert_pem, key_pem)
    }

    /// Reads an authority that exists, also one with an RSA key, also an intermediate one: then the certificates
    /// above it follow its own, up to the root or up to the last that others need to trust.
    ///
    /// # Errors
    /// When either text cannot be read, they do not belong together, the certificate may not sign others, or what
    /// follows it did not issue it.
    pub fn from_pem(cert_pem: &str, key_pem: SecretString) -> Result<Self, Error> {
        let chain = Chain::from_pem(cert_pem)?;
        let common_name = chain.signer.common_name.as_str();
        let key = private_key::read(key_pem.expose_secret()).context(KeySnafu { common_name })?;
        ensure!(
            key.public_key_raw() == chain.signer.public_key,
            OtherKeySnafu { common_name }
        );
        let issuer = Issuer::from_ca_cert_der(&chain.signer.der().into(), key)
            .context(SignSnafu { common_name })?;
        Ok(Self {
            cert_pem: cert_pem.to_owned(),
            key_pem,
            issuer,
            chain,
        })
    }

    /// What others trust, in PEM format: the authority's own certificate and, where it is an intermediate one, those
    /// above it.
    pub fn cert_pem(&self) -> &str {
        &self.cert_pem
    }

    /// The authority's own certificate alone, for signers that take no other: kube-controller-manager refuses a file
    /// with more than one.
    pub fn signer_pem(&self) -> String {
        self.chain.signer.to_pem()
    }

    /// The authority's private key in PEM format, as it was given or made.
    pub fn key_pem(&self) -> &SecretString {
        &self.key_pem
    }

    /// The authority's name.
    pub fn common_name(&self) -> &str {
        &self.chain.signer.common_name
    }

    /// From when on everything that it issues can be valid.
    pub fn begins(&self) -> OffsetDateTime {
        self.chain.begins()
    }

    /// When the authority or one above it, and with it everything it issued, ends.
    pub fn ends(&self) -> OffsetDateTime {
        self.chain.ends()
    }

    /// Whether somebody who trusts this authority also trusts what the other issues.
    pub fn vouches_for(&self, other: &Self) -> bool {
        let knows = |one: &Certificate, stranger: &Certificate| {
            one.public_key == stranger.public_key || stranger.is_issued_by(one)
        };
        self.chain
            .all()
            .any(|one| other.chain.all().any(|stranger| knows(one, stranger)))
    }

    /// Makes a key and a certificate for it.
    ///
    /// # Errors
    /// When the authority has ended, a name cannot be written in a certificate, or the system
    /// gives no randomness.
    pub fn issue(&self, request: &Request, now: OffsetDateTime) -> Result<Leaf, Error> {
        let common_name = request.common_name.as_str();
        ensure!(
            now < self.ends(),
            EndedSnafu {
                common_name: self.common_name(),
                ended: self.ends()
            }
        );
        let mut params = parameters(common_name, request.organization.as_deref())?;
        (params.not_before, params.not_after) = validity(common_name, request.lifetime, now)?;
        params.not_after = params.not_after.min(self.ends());
        params.subject_alt_names = alternative_names(request)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if request.usage.client() {
            params
                .extended_key_usages
                .push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        if request.usage.server() {
            params
                .extended_key_usages
                .push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let key = generate(common_name)?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context(SignSnafu { common_name })?;
        Ok(Leaf {
            cert_pem: self.chain.behind(certificate.pem()),
            key_pem: key.serialize_pem().into(),
        })
    }

    /// When a certificate issued at `now` would end.
    pub(crate) fn would_last_until(
        &self,
        lifetime: Duration,
        now: OffsetDateTime,
    ) -> OffsetDateTime {
        now.saturating_add(lifetime).min(self.ends())
    }
}

fn generate(common_name: &str) -> Result<KeyPair, Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context(GenerateSnafu { common_name })
}

/// What authorities and leaves have in common: subject and serial number.
fn parameters(common_name: &str, organization: Option<&str>) -> Result<CertificateParams, Error> {
    ensure!(!common_name.is_empty(), NoCommonNameSnafu);
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.serial_number = Some(serial_number()?);
    Ok(params)
}

/// A random positive number of 126 bits, always 16 bytes long.
fn serial_number() -> Result<SerialNumber, Error> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Error::Random)?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// Beginning and end in whole seconds, since certificates know no smaller unit.
fn validity(
    common_name: &str,
    lifetime: Duration,
    now: OffsetDateTime,
) -> Result<(OffsetDateTime, OffsetDateTime), Error> {
    let now = now.truncate_to_second();
    let outside = || {
        LifetimeSnafu {
            common_name,
            lifetime,
        }
        .build()
    };
    let end = now.checked_add(lifetime).ok_or_else(outside)?;
    let begin = now.checked_sub(BACKDATE).ok_or_else(outside)?;
    ensure!(
        lifetime.is_positive(),
        LifetimeSnafu {
            common_name,
            lifetime
        }
    );
    Ok((begin, end))
}

fn alternative_names(request: &Request) -> Result<Vec<SanType>, Error> {
    let dns_names = request.dns_names.iter().map(|name| {
        let refused = |reason| {
            DnsNameSnafu {
                common_name: &request.common_name,
                name,
                reason,
            }
            .build()
        };
        if name.parse::<IpAddr>().is_ok() {
            return Err(refused(
                "it is an address, which belongs among the addresses",
            ));
        }
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(refused("it is empty or contains blanks"));
        }
        Ia5String::try_from(name.as_str())
            .map(SanType::DnsName)
            .map_err(|_| refused("it has letters outside ASCII; give it in its xn-- form"))
    });
    let ips = request.ips.iter().map(|ip| Ok(SanType::IpAddress(*ip)));
    dns_names.chain(ips).collect()
}
