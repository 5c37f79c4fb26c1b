//! Intermediate authorities: what they issue holds up to the root, and what is no chain is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::time::Duration as StdDuration;

use hatchery_pki::{
    AUTHORITY_LIFETIME, Authority, Error, LEAF_LIFETIME, RenewalReason, Request, check_certificate,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use secrecy::ExposeSecret;
use time::{Duration, OffsetDateTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

/// An authority that `above` issued, for as many days.
fn below(
    above: &Authority,
    name: &str,
    days: i64,
    change: impl FnOnce(&mut CertificateParams),
) -> (String, KeyPair) {
    let key = KeyPair::from_pem(above.key_pem().expose_secret()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(above.cert_pem(), key).unwrap();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = now() - Duration::HOUR;
    params.not_after = now() + Duration::days(days);
    params.use_authority_key_identifier_extension = true;
    change(&mut params);
    let cert = params.signed_by(&key, &issuer).unwrap().pem();
    (cert, key)
}

/// One that may have authorities below it, as ours may not.
fn root() -> Authority {
    root_for(AUTHORITY_LIFETIME)
}

fn root_for(lifetime: Duration) -> Authority {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "root");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = now() - Duration::MINUTE;
    params.not_after = now() + lifetime;
    let cert = params.self_signed(&key).unwrap().pem();
    Authority::from_pem(&cert, key.serialize_pem().into()).unwrap()
}

fn intermediate(above: &Authority, name: &str) -> Authority {
    let (cert, key) = below(above, name, 2000, |_| ());
    let bundle = cert + above.cert_pem();
    Authority::from_pem(&bundle, key.serialize_pem().into()).unwrap()
}

/// Whether somebody who trusts `root` alone accepts a file with a certificate and its chain.
fn holds(file: &str, root: &Authority) -> Result<(), webpki::Error> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(file.as_bytes())
        .map(Result::unwrap)
        .collect();
    let root = CertificateDer::from_pem_slice(root.cert_pem().as_bytes()).unwrap();
    let seconds = u64::try_from(now().unix_timestamp()).unwrap();
    EndEntityCert::try_from(&all[0])?
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &[anchor_from_trusted_cert(&root)?],
            &all[1..],
            UnixTime::since_unix_epoch(StdDuration::from_secs(seconds)),
            KeyUsage::client_auth(),
            None,
            None,
        )
        .map(|_| ())
}

#[test]
fn a_leaf_of_an_intermediate_brings_what_leads_to_the_root() {
    let root = root();
    let upper = intermediate(&root, "upper");
    let lower = intermediate(&upper, "lower");
    for (authority, count) in [(&root, 1), (&upper, 2), (&lower, 3)] {
        let request = Request::client("admin");
        let leaf = authority.issue(&request, now()).unwrap().cert_pem;
        assert_eq!(leaf.matches("BEGIN CERTIFICATE").count(), count);
        holds(&leaf, &root).unwrap();
        assert_eq!(check_certificate(&leaf, &request, authority, now()), Ok(()));
        assert_eq!(
            authority.signer_pem().matches("BEGIN CERTIFICATE").count(),
            1
        );

        let end = leaf.find("-----END CERTIFICATE-----").unwrap() + 26;
        let alone = check_certificate(&leaf[..end], &request, authority, now());
        match count {
            1 => assert_eq!(alone, Ok(())),
            _ => assert!(
                matches!(alone, Err(RenewalReason::Chain { .. })),
                "{alone:?}"
            ),
        }
    }
    assert!(holds(&root.signer_pem(), &lower).is_err());
}

#[test]
fn an_authority_of_ours_may_have_none_below_it() {
    let ours = Authority::new("kubernetes", AUTHORITY_LIFETIME, now()).unwrap();
    let leaf = ours
        .issue(&Request::client("admin"), now())
        .unwrap()
        .cert_pem;
    holds(&leaf, &ours).unwrap();
    let (cert, key) = below(&ours, "stolen", 2000, |_| ());
    let file = cert.clone() + ours.cert_pem();
    let refused = Authority::from_pem(&file, key.serialize_pem().into()).unwrap_err();
    assert!(matches!(refused, Error::PathLength { .. }), "{refused}");
    // Who verifies a chain without us reads it in the certificate.
    let (_, pem) = x509_parser::pem::parse_x509_pem(ours.cert_pem().as_bytes()).unwrap();
    let parsed = pem.parse_x509().unwrap();
    let constraints = parsed.basic_constraints().unwrap().unwrap().value;
    assert_eq!(constraints.path_len_constraint, Some(0));
}

#[test]
fn without_its_root_an_intermediate_is_taken_too() {
    let (cert, key) = below(&root(), "alone", 2000, |_| ());
    let authority = Authority::from_pem(&cert, key.serialize_pem().into()).unwrap();
    let request = Request::client("admin");
    let leaf = authority.issue(&request, now()).unwrap().cert_pem;
    assert_eq!(leaf.matches("BEGIN CERTIFICATE").count(), 2);
    assert_eq!(
        check_certificate(&leaf, &request, &authority, now()),
        Ok(())
    );
}

#[test]
fn the_first_end_in_the_chain_is_the_end() {
    let short = root_for(Duration::days(100));
    let authority = intermediate(&short, "long");
    assert_eq!(authority.not_after(), short.not_after());
    assert_eq!(authority.not_before(), short.not_before());
    let leaf = authority.issue(&Request::client("admin"), now()).unwrap();
    assert!(hatchery_pki::expiry(&leaf.cert_pem).unwrap() < now() + LEAF_LIFETIME);
}

#[test]
fn what_is_no_chain_is_refused() {
    let (root, other) = (root(), root());
    let (cert, key) = below(&root, "lower", 2000, |_| ());
    let read = |text: String| Authority::from_pem(&text, key.serialize_pem().into()).unwrap_err();

    let wrong = read(format!("{cert}{}", other.cert_pem()));
    assert!(matches!(wrong, Error::BrokenChain { .. }), "{wrong}");
    let turned = read(format!("{}{cert}", root.cert_pem()));
    assert!(matches!(turned, Error::BrokenChain { .. }), "{turned}");
    let with_key = read(format!("{cert}{}", key.serialize_pem()));
    assert!(matches!(with_key, Error::Certificate { .. }), "{with_key}");
    assert!(!format!("{with_key:?}").contains(&key.serialize_pem()[40..80]));
    let cut = read(format!("{cert}{}", &root.cert_pem()[..200]));
    assert!(matches!(cut, Error::Certificate { .. }), "{cut}");
    let none = read(String::new());
    assert!(matches!(none, Error::Certificate { .. }), "{none}");
}

#[test]
fn who_may_not_sign_leaves_or_authorities_is_refused() {
    let root = root();
    let refused = |change: fn(&mut CertificateParams), above: bool| {
        let (cert, key) = below(&root, "upper", 2000, change);
        let upper = cert.clone() + root.cert_pem();
        if !above {
            return Authority::from_pem(&upper, key.serialize_pem().into()).err();
        }
        // Only this test makes something below what may have nothing below it.
        let issuer = Issuer::from_ca_cert_pem(&cert, key).unwrap();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let lower = params.signed_by(&key, &issuer).unwrap().pem();
        Authority::from_pem(&(lower + &upper), key.serialize_pem().into()).err()
    };
    let crl_only = |p: &mut CertificateParams| p.key_usages = vec![KeyUsagePurpose::CrlSign];
    let last = |p: &mut CertificateParams| p.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let leaf = |p: &mut CertificateParams| p.is_ca = IsCa::ExplicitNoCa;

    for above in [false, true] {
        for change in [crl_only as fn(&mut CertificateParams), leaf] {
            let found = refused(change, above);
            assert!(
                matches!(found, Some(Error::NotAnAuthority { .. })),
                "{found:?}"
            );
        }
    }
    assert!(refused(last, false).is_none());
    let found = refused(last, true);
    assert!(matches!(found, Some(Error::PathLength { .. })), "{found:?}");
}

#[test]
fn trust_is_shared_by_a_common_authority_only() {
    let (root, other) = (root(), root());
    let (one, two) = (intermediate(&root, "one"), intermediate(&root, "two"));
    assert!(one.trusts(&two) && root.trusts(&one) && one.trusts(&one));
    assert!(!one.trusts(&other) && !other.trusts(&two));
    let (cert, key) = below(&root, "three", 2000, |_| ());
    let alone = Authority::from_pem(&cert, key.serialize_pem().into()).unwrap();
    assert!(!alone.trusts(&one));
    assert!(root.trusts(&alone) && one.trusts(&alone) && !other.trusts(&alone));
}
