//! Whether a certificate that exists is what would be issued today.

use std::collections::BTreeSet;
use std::fmt::Display;

use snafu::{ResultExt, Snafu, ensure};
use time::OffsetDateTime;

use crate::authority::{Authority, BACKDATE};
use crate::certificate::{Certificate, Unreadable};
use crate::request::Request;

/// Why a certificate has to be replaced, in words for a plan.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum Unfit {
    /// It is no certificate.
    #[snafu(display("it cannot be read"))]
    Unreadable {
        /// What is wrong with it.
        source: Unreadable,
    },
    /// Another authority signed it, also one of the same name with another key.
    #[snafu(display("it was not issued by the authority \"{wanted}\""))]
    Issuer {
        /// The authority in force.
        wanted: String,
    },
    /// The certificates between it and the root do not stand behind it.
    #[snafu(display(
        "the certificates of the authority \"{wanted}\" do not follow it in its file"
    ))]
    Chain {
        /// The authority in force.
        wanted: String,
    },
    /// It may sign others, which a leaf must not.
    #[snafu(display("it is an authority itself"))]
    IsAuthority,
    /// It names another subject.
    #[snafu(display("its common name is \"{found}\" instead of \"{wanted}\""))]
    CommonName {
        /// What it says.
        found: String,
        /// What is wanted.
        wanted: String,
    },
    /// It puts its subject in other groups.
    #[snafu(display("its organization is {found} instead of {wanted}"))]
    Organization {
        /// What it says.
        found: String,
        /// What is wanted.
        wanted: String,
    },
    /// Its DNS names or addresses are others.
    #[snafu(display("it {}", differences(missing, surplus)))]
    Names {
        /// Names wanted and not there.
        missing: Vec<String>,
        /// Names there and not wanted.
        surplus: Vec<String>,
    },
    /// It serves another side of a connection.
    #[snafu(display("it is made for {found} instead of {wanted}"))]
    Usage {
        /// What it is for.
        found: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
    /// It lasts longer than certificates are wanted to.
    #[snafu(display("it lasts {found} days instead of {wanted}"))]
    Lifetime {
        /// Its whole lifetime in days.
        found: i64,
        /// The wanted one.
        wanted: i64,
    },
    /// It begins in the future.
    #[snafu(display("it is valid only from {begins} on"))]
    NotYetValid {
        /// When.
        begins: OffsetDateTime,
    },
    /// It is over.
    #[snafu(display("it expired at {ended}"))]
    Expired {
        /// When.
        ended: OffsetDateTime,
    },
    /// It ends soon, and a new one would last longer.
    #[snafu(display("it expires at {ends}"))]
    Expiring {
        /// When.
        ends: OffsetDateTime,
    },
}

/// Whether an existing certificate can stay: it is what `authority` would issue for `request`,
/// and it is not about to expire. The order of names does not matter, nor the kind of its key.
///
/// # Errors
/// The first reason found to replace it.
pub fn judge(
    cert_pem: &str,
    request: &Request,
    authority: &Authority,
    now: OffsetDateTime,
) -> Result<(), Unfit> {
    let certificate = Certificate::from_pem(cert_pem).context(UnreadableSnafu)?;
    ensure!(
        certificate.is_issued_by(&authority.chain.signer),
        IssuerSnafu {
            wanted: authority.common_name()
        }
    );
    judge_chain(cert_pem, authority)?;
    judge_subject(&certificate, request)?;
    judge_names(&certificate, request)?;
    judge_usage(&certificate, request)?;
    judge_time(&certificate, request, authority, now)
}

/// What follows the certificate, as far as others need it to come up to the root that they trust.
fn judge_chain(text: &str, authority: &Authority) -> Result<(), Unfit> {
    let wanted: Vec<&[u8]> = authority.chain.carried().map(Certificate::der).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = Certificate::all_from_pem(text).context(UnreadableSnafu)?;
    let found: Vec<&[u8]> = found.iter().skip(1).map(Certificate::der).collect();
    ensure!(
        found == wanted,
        ChainSnafu {
            wanted: authority.common_name()
        }
    );
    Ok(())
}

fn judge_subject(certificate: &Certificate, request: &Request) -> Result<(), Unfit> {
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

fn judge_names(certificate: &Certificate, request: &Request) -> Result<(), Unfit> {
    let mut missing = lacking(&request.dns_names, &certificate.dns_names);
    missing.extend(lacking(&request.ips, &certificate.ips));
    let mut surplus = lacking(&certificate.dns_names, &request.dns_names);
    surplus.extend(lacking(&certificate.ips, &request.ips));
    ensure!(
        missing.is_empty() && surplus.is_empty(),
        NamesSnafu { missing, surplus }
    );
    Ok(())
}

fn judge_usage(certificate: &Certificate, request: &Request) -> Result<(), Unfit> {
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

fn judge_time(
    certificate: &Certificate,
    request: &Request,
    authority: &Authority,
    now: OffsetDateTime,
) -> Result<(), Unfit> {
    let (begins, ends) = (certificate.not_before, certificate.not_after);
    ensure!(
        ends - begins <= request.lifetime.saturating_add(BACKDATE),
        LifetimeSnafu {
            found: (ends - begins).whole_days(),
            wanted: request.lifetime.whole_days()
        }
    );
    ensure!(begins <= now, NotYetValidSnafu { begins });
    ensure!(now < ends, ExpiredSnafu { ended: ends });
    // Near the authority's own end a new certificate would last no longer than this one:
    // replacing it at every look would help nobody.
    let a_new_one_ends = authority.would_last_until(request.lifetime, now);
    ensure!(
        ends - now >= request.renewal_margin() || a_new_one_ends <= ends,
        ExpiringSnafu { ends }
    );
    Ok(())
}

fn lacking<T: Ord + Display>(wanted: &BTreeSet<T>, there: &BTreeSet<T>) -> Vec<String> {
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
    let parts = [("lacks", missing), ("has the unwanted", surplus)];
    let told: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(verb, names)| format!("{verb} {}", names.join(", ")))
        .collect();
    told.join(" and ")
}

fn sides((client, server): (bool, bool)) -> &'static str {
    match (client, server) {
        (true, true) => "clients and servers",
        (true, false) => "clients",
        (false, true) => "servers",
        (false, false) => "neither clients nor servers",
    }
}
