//! Judging a certificate: what was issued is accepted, every single change is noticed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::sync::LazyLock;

use hatchery_pki::{
    AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME, RenewalReason, Request, Usage, check_certificate,
};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};

static NOW: LazyLock<OffsetDateTime> =
    LazyLock::new(|| OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap());
static CA: LazyLock<Authority> =
    LazyLock::new(|| Authority::new("kubernetes", AUTHORITY_LIFETIME, *NOW).unwrap());

fn apiserver() -> Request {
    Request::server_and_client("kube-apiserver")
        .in_group("kubernetes")
        .with_dns_names(["kubernetes", "kubernetes.default"])
        .with_ips([[127, 0, 0, 1], [10, 96, 0, 1]])
}

proptest! {
    #[test]
    fn what_was_issued_is_accepted_until_it_nears_its_end(
        dns in prop::collection::btree_set("[a-z]{1,10}(\\.[a-z]{1,10}){0,3}", 0..6),
        ips in prop::collection::btree_set(any::<IpAddr>(), 0..6),
        lifetime in 3600..100_000_000_i64,
        nanoseconds in 0..1_000_000_000_i64,
    ) {
        let lifetime = Duration::seconds(lifetime);
        let request = apiserver().with_dns_names(dns).with_ips(ips).with_lifetime(lifetime);
        let now = *NOW + Duration::nanoseconds(nanoseconds);
        let cert = CA.issue(&request, now).unwrap().cert_pem;

        prop_assert_eq!(check_certificate(&cert, &request, &CA, now), Ok(()));
        let late = now + lifetime - request.renewal_margin();
        prop_assert_eq!(check_certificate(&cert, &request, &CA, late - Duration::seconds(2)), Ok(()));
        let result = check_certificate(&cert, &request, &CA, late + Duration::SECOND);
        prop_assert!(matches!(result, Err(RenewalReason::Expiring { .. })), "{result:?}");
        let result = check_certificate(&cert, &request, &CA, now + lifetime);
        prop_assert!(matches!(result, Err(RenewalReason::Expired { .. })), "{result:?}");
    }
}

/// Judges a certificate made for `apiserver()` against a request with one thing changed.
fn reason_after(change: impl FnOnce(&mut Request)) -> RenewalReason {
    let cert = CA.issue(&apiserver(), *NOW).unwrap().cert_pem;
    let mut request = apiserver();
    change(&mut request);
    check_certificate(&cert, &request, &CA, *NOW).unwrap_err()
}

#[test]
fn every_single_change_is_reported() {
    let reasons = [
        reason_after(|r| r.common_name = "kube-apiserver-2".into()),
        reason_after(|r| r.organization = None),
        reason_after(|r| r.organization = Some("system:masters".into())),
        reason_after(|r| {
            r.dns_names.insert("api.example".into());
        }),
        reason_after(|r| {
            r.dns_names.remove("kubernetes");
        }),
        reason_after(|r| {
            r.ips.insert([192, 168, 0, 1].into());
        }),
        reason_after(|r| {
            r.ips.pop_first();
        }),
        reason_after(|r| {
            r.ips.pop_first();
            r.dns_names.insert("api.example".into());
        }),
        reason_after(|r| r.usage = Usage::Client),
        reason_after(|r| r.usage = Usage::Server),
        reason_after(|r| r.lifetime = Duration::days(90)),
    ]
    .map(|reason| reason.to_string());

    assert_eq!(
        reasons,
        [
            r#"its common name is "kube-apiserver" instead of "kube-apiserver-2""#,
            r#"its organization is "kubernetes" instead of none"#,
            r#"its organization is "kubernetes" instead of "system:masters""#,
            "it lacks api.example",
            "it has the extra kubernetes",
            "it lacks 192.168.0.1",
            "it has the extra 10.96.0.1",
            "it lacks api.example and has the extra 10.96.0.1",
            "it is for clients and servers instead of clients",
            "it is for clients and servers instead of servers",
            "it is valid for 365 days instead of 90",
        ]
    );
}

#[test]
fn another_authority_is_noticed_even_under_the_same_name() {
    let cert = CA.issue(&apiserver(), *NOW).unwrap().cert_pem;
    let same_name = Authority::new("kubernetes", AUTHORITY_LIFETIME, *NOW).unwrap();
    for authority in [
        &same_name,
        &Authority::new("etcd-ca", AUTHORITY_LIFETIME, *NOW).unwrap(),
    ] {
        let reason = check_certificate(&cert, &apiserver(), authority, *NOW).unwrap_err();
        assert!(matches!(reason, RenewalReason::Issuer { .. }), "{reason}");
    }
}

#[test]
fn an_authority_or_a_damaged_text_is_no_leaf() {
    let reason =
        check_certificate(CA.cert_pem(), &Request::client("kubernetes"), &CA, *NOW).unwrap_err();
    assert_eq!(reason, RenewalReason::IsAuthority);

    let cert = CA.issue(&apiserver(), *NOW).unwrap().cert_pem;
    for text in [
        "",
        "nonsense",
        &cert[..cert.len() / 2],
        &cert.replace("CERTIFICATE", "PUBLIC KEY"),
    ] {
        let reason = check_certificate(text, &apiserver(), &CA, *NOW).unwrap_err();
        assert!(
            matches!(reason, RenewalReason::InvalidCertificate { .. }),
            "{reason}"
        );
    }
}

#[test]
fn a_certificate_from_the_future_is_refused() {
    let cert = CA
        .issue(&apiserver(), *NOW + Duration::HOUR)
        .unwrap()
        .cert_pem;
    let reason = check_certificate(&cert, &apiserver(), &CA, *NOW).unwrap_err();
    assert!(
        matches!(reason, RenewalReason::NotYetValid { .. }),
        "{reason}"
    );
}

#[test]
fn near_the_end_of_the_authority_nothing_is_renewed_in_vain() {
    let shortly_before = CA.not_after() - Duration::days(10);
    let cert = CA.issue(&apiserver(), shortly_before).unwrap().cert_pem;
    assert_eq!(
        check_certificate(&cert, &apiserver(), &CA, shortly_before + Duration::days(1)),
        Ok(())
    );

    let older = CA
        .issue(&apiserver(), shortly_before - LEAF_LIFETIME)
        .unwrap()
        .cert_pem;
    let reason =
        check_certificate(&older, &apiserver(), &CA, shortly_before - Duration::DAY).unwrap_err();
    assert!(matches!(reason, RenewalReason::Expiring { .. }), "{reason}");
}
