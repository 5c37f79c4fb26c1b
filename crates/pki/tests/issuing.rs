//! What is issued: read back by an independent parser and accepted by an independent verifier.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration as StdDuration;

use hatchery_pki::{AUTHORITY_LIFETIME, Authority, Error, Request, Usage, expiry};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use secrecy::ExposeSecret;
use time::{Duration, OffsetDateTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::{Pem, parse_x509_pem};

static NOW: LazyLock<OffsetDateTime> = LazyLock::new(|| at(1_800_000_000));
static CA: LazyLock<Authority> =
    LazyLock::new(|| Authority::new("kubernetes", AUTHORITY_LIFETIME, *NOW).unwrap());

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap()
}

fn pem(text: &str) -> Pem {
    parse_x509_pem(text.as_bytes()).unwrap().1
}

/// Whether the chain holds, according to the verifier that rustls uses.
fn verify(
    leaf_pem: &str,
    ca: &Authority,
    usage: KeyUsage,
    when: OffsetDateTime,
) -> Result<(), webpki::Error> {
    let ca_pem = pem(ca.cert_pem());
    let ca_der = CertificateDer::from(ca_pem.contents);
    let leaf_pem = pem(leaf_pem);
    let leaf_der = CertificateDer::from(leaf_pem.contents);
    let seconds = u64::try_from(when.unix_timestamp()).unwrap();
    EndEntityCert::try_from(&leaf_der)?
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &[anchor_from_trusted_cert(&ca_der)?],
            &[],
            UnixTime::since_unix_epoch(StdDuration::from_secs(seconds)),
            usage,
            None,
            None,
        )
        .map(|_| ())
}

fn names(cert_pem: &str) -> (BTreeSet<String>, BTreeSet<IpAddr>) {
    let pem = pem(cert_pem);
    let x509 = pem.parse_x509().unwrap();
    let (mut dns, mut ips) = (BTreeSet::new(), BTreeSet::new());
    if let Some(names) = x509.subject_alternative_name().unwrap() {
        for name in &names.value.general_names {
            match name {
                GeneralName::DNSName(name) => assert!(dns.insert((*name).to_owned())),
                GeneralName::IPAddress(octets) => assert!(ips.insert(match octets.len() {
                    4 => IpAddr::from(<[u8; 4]>::try_from(*octets).unwrap()),
                    _ => IpAddr::from(<[u8; 16]>::try_from(*octets).unwrap()),
                })),
                other => panic!("a name nobody asked for: {other:?}"),
            }
        }
    }
    (dns, ips)
}

fn requests() -> impl Strategy<Value = Request> {
    (
        "[a-zA-Z0-9:._ äöü节点-]{1,64}",
        prop::option::of("[a-z:. -]{1,40}"),
        prop::collection::btree_set(
            "(\\*\\.)?[a-z][a-z0-9-]{0,20}[a-z0-9](\\.[a-z0-9-]{1,20}){0,3}",
            0..6,
        ),
        prop::collection::btree_set(any::<IpAddr>(), 0..6),
        prop::sample::select(vec![Usage::Client, Usage::Server, Usage::Both]),
        1..20_000_i64,
    )
        .prop_map(
            |(name, organization, dns_names, ips, usage, hours)| Request {
                common_name: name,
                organization,
                dns_names,
                ips,
                usage,
                lifetime: Duration::hours(hours),
            },
        )
}

proptest! {
    #[test]
    fn what_is_asked_for_is_what_the_certificate_says(request in requests()) {
        let leaf = CA.issue(&request, *NOW).unwrap();
        let pem = pem(&leaf.cert_pem);
        let x509 = pem.parse_x509().unwrap();

        let common_names: Vec<_> = x509.subject().iter_common_name().map(|name| name.as_str().unwrap()).collect();
        prop_assert_eq!(common_names, [request.common_name.as_str()]);
        let organizations: Vec<_> = x509.subject().iter_organization().map(|name| name.as_str().unwrap()).collect();
        prop_assert_eq!(organizations, request.organization.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(names(&leaf.cert_pem), (request.dns_names, request.ips));
        prop_assert_eq!(expiry(&leaf.cert_pem).unwrap(), *NOW + request.lifetime);
        prop_assert!(!x509.is_ca());

        let usages = x509.extended_key_usage().unwrap().unwrap().value;
        let wanted = (request.usage != Usage::Server, request.usage != Usage::Client);
        prop_assert_eq!((usages.client_auth, usages.server_auth), wanted);
    }
}

#[test]
fn a_chain_holds_for_the_asked_usage_and_time_only() {
    let server = Request::server("kube-apiserver")
        .with_dns_names(["kubernetes"])
        .with_ips([[127, 0, 0, 1]]);
    let leaf = CA.issue(&server, *NOW).unwrap().cert_pem;

    verify(&leaf, &CA, KeyUsage::server_auth(), *NOW).unwrap();
    let clock_behind = *NOW - Duration::minutes(4);
    verify(&leaf, &CA, KeyUsage::server_auth(), clock_behind).unwrap();

    verify(&leaf, &CA, KeyUsage::client_auth(), *NOW).unwrap_err();
    verify(
        &leaf,
        &CA,
        KeyUsage::server_auth(),
        *NOW + Duration::days(366),
    )
    .unwrap_err();
    let stranger = Authority::new("kubernetes", AUTHORITY_LIFETIME, *NOW).unwrap();
    verify(&leaf, &stranger, KeyUsage::server_auth(), *NOW).unwrap_err();
}

#[test]
fn a_server_is_known_by_its_names_and_addresses_only() {
    let server = Request::server("kube-apiserver")
        .with_dns_names(["kubernetes.default.svc"])
        .with_ips([
            "10.96.0.1".parse::<IpAddr>().unwrap(),
            "fd00::1".parse().unwrap(),
        ]);
    let pem = pem(&CA.issue(&server, *NOW).unwrap().cert_pem);
    let der = CertificateDer::from(pem.contents);
    let leaf = EndEntityCert::try_from(&der).unwrap();
    let is_known_as = |name: &'static str| {
        leaf.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap())
            .is_ok()
    };

    assert!(
        is_known_as("kubernetes.default.svc") && is_known_as("10.96.0.1") && is_known_as("fd00::1")
    );
    assert!(
        !is_known_as("kubernetes.default")
            && !is_known_as("10.96.0.2")
            && !is_known_as("kube-apiserver")
    );
}

#[test]
fn serial_numbers_and_keys_are_never_the_same_twice() {
    let request = Request::client("kubernetes-admin");
    let mut serials = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for _ in 0..100 {
        let leaf = CA.issue(&request, *NOW).unwrap();
        let pem = pem(&leaf.cert_pem);
        let x509 = pem.parse_x509().unwrap();
        assert_eq!(x509.raw_serial().len(), 16);
        assert!(serials.insert(x509.raw_serial().to_vec()));
        assert!(keys.insert(leaf.key_pem.expose_secret().to_owned()));
    }
}

#[test]
fn an_authority_read_back_issues_what_the_first_one_would() {
    let copy = Authority::from_pem(CA.cert_pem(), CA.key_pem().clone()).unwrap();
    let leaf = copy.issue(&Request::client("admin"), *NOW).unwrap();
    verify(&leaf.cert_pem, &CA, KeyUsage::client_auth(), *NOW).unwrap();
    assert_eq!(copy.not_after(), *NOW + AUTHORITY_LIFETIME);
    assert_eq!(copy.common_name(), "kubernetes");
}

#[test]
fn a_leaf_never_outlives_its_authority() {
    let ca = Authority::new("short", Duration::days(30), *NOW).unwrap();
    let leaf = ca.issue(&Request::client("admin"), *NOW).unwrap();
    assert_eq!(expiry(&leaf.cert_pem).unwrap(), ca.not_after());

    let refused = ca
        .issue(&Request::client("admin"), ca.not_after())
        .unwrap_err();
    assert!(matches!(refused, Error::Expired { .. }), "{refused}");
}

#[test]
fn what_cannot_be_an_authority_is_refused() {
    let other = Authority::new("other", AUTHORITY_LIFETIME, *NOW).unwrap();
    let leaf = CA.issue(&Request::client("admin"), *NOW).unwrap();

    let mixed = Authority::from_pem(CA.cert_pem(), other.key_pem().clone()).unwrap_err();
    assert!(matches!(mixed, Error::KeyMismatch { .. }), "{mixed}");
    let leaf = Authority::from_pem(&leaf.cert_pem, leaf.key_pem).unwrap_err();
    assert!(matches!(leaf, Error::NotAnAuthority { .. }), "{leaf}");
    let swapped =
        Authority::from_pem(CA.key_pem().expose_secret(), CA.key_pem().clone()).unwrap_err();
    assert!(matches!(swapped, Error::Certificate { .. }), "{swapped}");
    let no_key = Authority::from_pem(CA.cert_pem(), CA.cert_pem().into()).unwrap_err();
    assert!(matches!(no_key, Error::Key { .. }), "{no_key}");
}

#[test]
fn names_no_certificate_can_carry_are_refused() {
    for name in ["10.0.0.1", "fd00::1", "", "two words", "节点.example"] {
        let refused = CA
            .issue(&Request::server("s").with_dns_names([name]), *NOW)
            .unwrap_err();
        assert!(
            matches!(refused, Error::DnsName { .. }),
            "{name}: {refused}"
        );
    }
    let nameless = CA.issue(&Request::client(""), *NOW).unwrap_err();
    assert!(matches!(nameless, Error::NoCommonName), "{nameless}");
    for lifetime in [Duration::ZERO, -Duration::DAY, Duration::MAX] {
        let refused = CA
            .issue(&Request::client("c").with_lifetime(lifetime), *NOW)
            .unwrap_err();
        assert!(matches!(refused, Error::Lifetime { .. }), "{refused}");
    }
}

#[test]
fn keys_are_not_shown_by_accident() {
    let leaf = CA.issue(&Request::client("admin"), *NOW).unwrap();
    for shown in [format!("{leaf:?}"), format!("{:?}", *CA)] {
        assert!(!shown.contains("PRIVATE KEY"), "{shown}");
    }
}
