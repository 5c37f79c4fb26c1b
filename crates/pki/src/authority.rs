//! Certificate authorities: creation, parsing, and the issuing of certificates.

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
use crate::certificate::{Certificate, InvalidCertificate};
use crate::private_key;
use crate::request::Request;

/// The default lifetime of an authority.
pub const AUTHORITY_LIFETIME: Duration = Duration::days(10 * 365);

/// Certificates are valid from this long before their creation, for machines whose clock is behind.
pub(crate) const BACKDATE: Duration = Duration::minutes(5);

/// Why an authority could not be created or parsed, or could not issue a certificate.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("cannot generate a key for \"{common_name}\""))]
    Generate {
        common_name: String,
        source: rcgen::Error,
    },
    #[snafu(display("the system provided no random bytes for a serial number"))]
    Random,
    #[snafu(display("a lifetime of {} days is not possible for the certificate \"{common_name}\"", lifetime.whole_days()))]
    Lifetime {
        common_name: String,
        lifetime: Duration,
    },
    #[snafu(display("cannot sign the certificate \"{common_name}\""))]
    Sign {
        common_name: String,
        source: rcgen::Error,
    },
    #[snafu(display(
        "\"{name}\" is not a valid DNS name for the certificate \"{common_name}\": {reason}"
    ))]
    DnsName {
        common_name: String,
        name: String,
        reason: &'static str,
    },
    #[snafu(display("a certificate needs a common name"))]
    NoCommonName,
    #[snafu(display("the authority's certificate is not valid"))]
    Certificate { source: InvalidCertificate },
    #[snafu(display(
        "the key of the authority \"{common_name}\" cannot be parsed; it must be an unencrypted PEM key, RSA or ECDSA"
    ))]
    Key {
        common_name: String,
        source: rcgen::Error,
    },
    #[snafu(display(
        "the certificate \"{common_name}\" is not a certificate authority: it may not sign other certificates"
    ))]
    NotAnAuthority { common_name: String },
    #[snafu(display(
        "the certificate \"{common_name}\" was not issued by \"{above}\", which follows it; the issuing certificate comes first, then the one that issued it, and so on up to the root"
    ))]
    BrokenChain { common_name: String, above: String },
    #[snafu(display(
        "the path length constraint of the authority \"{common_name}\" does not allow this many authorities below it"
    ))]
    PathLength { common_name: String },
    #[snafu(display(
        "the key does not belong to the certificate of the authority \"{common_name}\""
    ))]
    KeyMismatch { common_name: String },
    #[snafu(display(
        "the authority \"{common_name}\" has a subject with repeated or combined attributes, which is not supported"
    ))]
    Subject { common_name: String },
    #[snafu(display(
        "the authority \"{common_name}\" expired at {not_after}; replace it before certificates can be issued"
    ))]
    Expired {
        common_name: String,
        not_after: OffsetDateTime,
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
            .field("not_after", &self.not_after())
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates a self-signed authority that issues leaf certificates only: it may not sign other authorities.
    ///
    /// # Errors
    /// When the name is empty, the lifetime is not possible, or the system provides no randomness.
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

    /// Parses an existing authority with an RSA or ECDSA key. For an intermediate authority, the certificates above it
    /// follow its own, up to the root or up to the last one that clients have to trust.
    ///
    /// # Errors
    /// When either text cannot be parsed, certificate and key do not belong together, the certificate may not sign
    /// others, or the chain is broken.
    pub fn from_pem(cert_pem: &str, key_pem: SecretString) -> Result<Self, Error> {
        let chain = Chain::from_pem(cert_pem)?;
        let common_name = chain.signer.common_name.as_str();
        let key = private_key::read(key_pem.expose_secret()).context(KeySnafu { common_name })?;
        ensure!(
            key.public_key_raw() == chain.signer.public_key,
            KeyMismatchSnafu { common_name }
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

    /// The trust bundle in PEM format: the authority's own certificate and, for an intermediate one, those above it.
    pub fn cert_pem(&self) -> &str {
        &self.cert_pem
    }

    /// The authority's own certificate alone, for signers that take no other: kube-controller-manager refuses a file
    /// with more than one.
    pub fn signer_pem(&self) -> String {
        self.chain.signer.to_pem()
    }

    /// The authority's private key in PEM format, as it was parsed or generated.
    pub fn key_pem(&self) -> &SecretString {
        &self.key_pem
    }

    /// The common name of the authority's subject.
    pub fn common_name(&self) -> &str {
        &self.chain.signer.common_name
    }

    /// When the validity of the authority and of all those above it has begun.
    pub fn not_before(&self) -> OffsetDateTime {
        self.chain.not_before()
    }

    /// When the authority or one above it expires, and with it everything it issued.
    pub fn not_after(&self) -> OffsetDateTime {
        self.chain.not_after()
    }

    /// Whether a client that trusts this authority also trusts certificates issued by the other.
    pub fn trusts(&self, other: &Self) -> bool {
        let trusted_by = |one: &Certificate, other: &Certificate| {
            one.public_key == other.public_key || other.is_issued_by(one)
        };
        self.chain
            .all()
            .any(|one| other.chain.all().any(|above| trusted_by(one, above)))
    }

    /// Generates a key and issues a certificate for it.
    ///
    /// # Errors
    /// When the authority has expired, a name is not valid in a certificate, or the system provides no randomness.
    pub fn issue(&self, request: &Request, now: OffsetDateTime) -> Result<Leaf, Error> {
        let common_name = request.common_name.as_str();
        ensure!(
            now < self.not_after(),
            ExpiredSnafu {
                common_name: self.common_name(),
                not_after: self.not_after()
            }
        );
        let mut params = parameters(common_name, request.organization.as_deref())?;
        (params.not_before, params.not_after) = validity(common_name, request.lifetime, now)?;
        params.not_after = params.not_after.min(self.not_after());
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
            cert_pem: self.chain.append_to(certificate.pem()),
            key_pem: key.serialize_pem().into(),
        })
    }

    /// When a certificate issued at `now` would expire.
    pub(crate) fn not_after_for(&self, lifetime: Duration, now: OffsetDateTime) -> OffsetDateTime {
        now.saturating_add(lifetime).min(self.not_after())
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

/// `notBefore` and `notAfter` in whole seconds, since certificates know no smaller unit.
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
            return Err(refused("it is an IP address"));
        }
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(refused("it is empty or contains spaces"));
        }
        Ia5String::try_from(name.as_str())
            .map(SanType::DnsName)
            .map_err(|_| refused("it is not ASCII; use its xn-- form"))
    });
    let ips = request.ips.iter().map(|ip| Ok(SanType::IpAddress(*ip)));
    dns_names.chain(ips).collect()
}
