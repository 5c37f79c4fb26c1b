//! Whether an existing certificate is still the one that would be issued today.

use std::collections::BTreeSet;
use std::fmt::Display;

use snafu::{ResultExt, Snafu, ensure};
use time::OffsetDateTime;

use crate::authority::{Authority, BACKDATE};
use crate::certificate::{Certificate, InvalidCertificate};
use crate::request::Request;

/// Why a certificate has to be renewed. The messages are shown by `plan`, with the certificate as their subject.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum RenewalReason {
    #[snafu(display("it cannot be parsed"))]
    InvalidCertificate { source: InvalidCertificate },
    #[snafu(display("it was not issued by the current authority \"{wanted}\""))]
    Issuer { wanted: String },
    #[snafu(display("its file lacks the intermediate certificates of the authority \"{wanted}\""))]
    Chain { wanted: String },
    #[snafu(display("it is a certificate authority"))]
    IsAuthority,
    #[snafu(display("its common name is \"{found}\" instead of \"{wanted}\""))]
    CommonName { found: String, wanted: String },
    #[snafu(display("its organization is {found} instead of {wanted}"))]
    Organization { found: String, wanted: String },
    #[snafu(display("it {}", differences(missing, surplus)))]
    Names {
        missing: Vec<String>,
        surplus: Vec<String>,
    },
    #[snafu(display("it is for {found} instead of {wanted}"))]
    Usage {
        found: &'static str,
        wanted: &'static str,
    },
    #[snafu(display("it is valid for {found} days instead of {wanted}"))]
    Lifetime { found: i64, wanted: i64 },
    #[snafu(display("it is not valid before {not_before}"))]
    NotYetValid { not_before: OffsetDateTime },
    #[snafu(display("it expired at {not_after}"))]
    Expired { not_after: OffsetDateTime },
    #[snafu(display("it expires at {not_after}"))]
    Expiring { not_after: OffsetDateTime },
}

/// Checks that an existing certificate is what `authority` would issue for `request`, and that it is not about to expire.
/// Neither the order of names nor the type of the key matters.
///
/// # Errors
/// The first reason found to renew it.
pub fn check_certificate(
    cert_pem: &str,
    request: &Request,
    authority: &Authority,
    now: OffsetDateTime,
) -> Result<(), RenewalReason> {
    let certificate = Certificate::from_pem(cert_pem).context(InvalidCertificateSnafu)?;
    ensure!(
        certificate.is_issued_by(&authority.chain.signer),
        IssuerSnafu {
            wanted: authority.common_name()
        }
    );
    check_chain(cert_pem, authority)?;
    check_subject(&certificate, request)?;
    check_names(&certificate, request)?;
    check_usage(&certificate, request)?;
    check_validity(&certificate, request, authority, now)
}

/// The intermediate certificates that clients need to reach the root that they trust.
fn check_chain(text: &str, authority: &Authority) -> Result<(), RenewalReason> {
    let wanted: Vec<&[u8]> = authority
        .chain
        .intermediates()
        .map(Certificate::der)
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = Certificate::all_from_pem(text).context(InvalidCertificateSnafu)?;
    let found: Vec<&[u8]> = found.iter().skip(1).map(Certificate::der).collect();
    ensure!(
        found == wanted,
        ChainSnafu {
            wanted: authority.common_name()
        }
    );
    Ok(())
}

fn check_subject(certificate: &Certificate, request: &Request) -> Result<(), RenewalReason> {
    ensure!(!certificate.is_authority, IsAuthoritySnafu);
    ensure!(
        certificate.common_name == request.common_name,
        CommonNameSnafu {
            found: &certificate.common_name,
            wanted: &request.common_name
        }
    );
    let wanted: BTreeSet<String> = request.organization.iter().cloned().collect();
    ensure!(
        certificate.organizations == wanted,
        OrganizationSnafu {
            found: listed(&certificate.organizations),
            wanted: listed(&wanted)
        }
    );
    Ok(())
}

fn check_names(certificate: &Certificate, request: &Request) -> Result<(), RenewalReason> {
    let mut missing = missing_from(&request.dns_names, &certificate.dns_names);
    missing.extend(missing_from(&request.ips, &certificate.ips));
    let mut surplus = missing_from(&certificate.dns_names, &request.dns_names);
    surplus.extend(missing_from(&certificate.ips, &request.ips));
    ensure!(
        missing.is_empty() && surplus.is_empty(),
        NamesSnafu { missing, surplus }
    );
    Ok(())
}

fn check_usage(certificate: &Certificate, request: &Request) -> Result<(), RenewalReason> {
    let found = (certificate.client, certificate.server);
    let wanted = (request.usage.client(), request.usage.server());
    ensure!(
        found == wanted,
        UsageSnafu {
            found: sides(found),
            wanted: sides(wanted)
        }
    );
    Ok(())
}

fn check_validity(
    certificate: &Certificate,
    request: &Request,
    authority: &Authority,
    now: OffsetDateTime,
) -> Result<(), RenewalReason> {
    let (not_before, not_after) = (certificate.not_before, certificate.not_after);
    ensure!(
        not_after - not_before <= request.lifetime.saturating_add(BACKDATE),
        LifetimeSnafu {
            found: (not_after - not_before).whole_days(),
            wanted: request.lifetime.whole_days()
        }
    );
    ensure!(not_before <= now, NotYetValidSnafu { not_before });
    ensure!(now < not_after, ExpiredSnafu { not_after });
    // Shortly before the authority expires, a new certificate would be valid no longer than this one: renewing it at
    // every run would not help.
    let renewed_until = authority.not_after_for(request.lifetime, now);
    ensure!(
        not_after - now >= request.renewal_margin() || renewed_until <= not_after,
        ExpiringSnafu { not_after }
    );
    Ok(())
}

fn missing_from<T: Ord + Display>(wanted: &BTreeSet<T>, there: &BTreeSet<T>) -> Vec<String> {
    wanted.difference(there).map(T::to_string).collect()
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn differences(missing: &[String], surplus: &[String]) -> String {
    let parts = [("lacks", missing), ("has the extra", surplus)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(verb, names)| format!("{verb} {}", names.join(", ")))
        .collect();
    parts.join(" and ")
}

fn sides((client, server): (bool, bool)) -> &'static str {
    match (client, server) {
        (true, true) => "clients and servers",
        (true, false) => "clients",
        (false, true) => "servers",
        (false, false) => "neither clients nor servers",
    }
}
