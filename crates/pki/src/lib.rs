//! Certificate authorities, leaf certificates, service-account keys, kubeconfigs and expiry.
//!
//! Everything here is a function of its arguments (and of randomness for keys and serial
//! numbers): it reads no file and no clock, and knows no machine. The caller passes the time, which
//! makes expiry testable and lets a plan be computed for any moment.
//!
//! Generated keys are ECDSA P-256, which every supported Kubernetes (1.20 and later) takes for
//! TLS and, as ES256, for service-account tokens. Authorities and service-account keys of older
//! clusters (RSA) are parsed and used as they are.
//!
//! ```
//! use hatchery_pki::{AUTHORITY_LIFETIME, Authority, Request, check_certificate};
//! use time::{Duration, OffsetDateTime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = OffsetDateTime::now_utc();
//! let ca = Authority::new("kubernetes", AUTHORITY_LIFETIME, now)?;
//! let admin = Request::client("kubernetes-admin").in_group("system:masters");
//! let leaf = ca.issue(&admin, now)?;
//!
//! assert!(check_certificate(&leaf.cert_pem, &admin, &ca, now).is_ok());
//! assert!(check_certificate(&leaf.cert_pem, &admin, &ca, now + Duration::days(300)).is_err());
//! # Ok(())
//! # }
//! ```

mod authority;
mod certificate;
mod check;
mod kubeconfig;
mod private_key;
mod request;
mod service_account;

pub use authority::{AUTHORITY_LIFETIME, Authority, Error, Leaf};
pub use certificate::{InvalidCertificate, expiry};
pub use check::{RenewalReason, check_certificate};
pub use kubeconfig::{Credentials, Kubeconfig};
pub use request::{LEAF_LIFETIME, Request, Usage};
pub use service_account::{InvalidServiceAccountKey, ServiceAccountKey};
