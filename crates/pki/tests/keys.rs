//! Service-account keys, and keys of clusters that others made: RSA, PKCS#8 or PKCS#1.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hatchery_pki::{Authority, Request, ServiceAccountKey, check_certificate};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, PKCS_RSA_SHA256};
use secrecy::{ExposeSecret, SecretString};
use time::OffsetDateTime;

fn rsa() -> KeyPair {
    KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap()
}

/// The form client-go writes: the same key without its PKCS#8 envelope, whose header has 26
/// bytes for a key of this size.
fn pkcs1_pem(pair: &KeyPair) -> SecretString {
    let body = STANDARD.encode(&pair.serialized_der()[26..]);
    let lines: Vec<&str> = body
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let (begin, end) = (
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
    );
    format!("{begin}\n{}\n{end}\n", lines.join("\n")).into()
}

#[test]
fn a_new_service_account_key_survives_being_read_back() {
    let made = ServiceAccountKey::generate().unwrap();
    let read = ServiceAccountKey::from_pem(made.private_pem().clone()).unwrap();
    assert_eq!(made.public_pem(), read.public_pem());
    assert!(made.public_pem().starts_with("-----BEGIN PUBLIC KEY-----"));
    assert!(!format!("{made:?}").contains("BEGIN PRIVATE"));

    let other = ServiceAccountKey::generate().unwrap();
    assert_ne!(made.public_pem(), other.public_pem());
    ServiceAccountKey::from_pem(made.public_pem().into()).unwrap_err();
}

/// As `openssl ecparam -genkey` writes it.
#[test]
fn a_curve_before_the_key_does_not_hide_it() {
    let made = ServiceAccountKey::generate().unwrap();
    let curve = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let text = format!("{curve}{}", made.private_pem().expose_secret());
    let read = ServiceAccountKey::from_pem(text.into()).unwrap();
    assert_eq!(made.public_pem(), read.public_pem());
    ServiceAccountKey::from_pem(curve.into()).unwrap_err();
}

#[test]
fn an_rsa_service_account_key_is_kept_as_it_was() {
    let pair = rsa();
    for private in [pair.serialize_pem().into(), pkcs1_pem(&pair)] {
        let key = ServiceAccountKey::from_pem(private.clone()).unwrap();
        assert_eq!(key.private_pem().expose_secret(), private.expose_secret());
        assert_eq!(key.public_pem(), pair.public_key_pem());
    }
}

#[test]
fn an_rsa_authority_issues_and_checks() {
    let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
    let pair = rsa();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "kubernetes");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert_pem = params.self_signed(&pair).unwrap().pem();

    for key in [pair.serialize_pem().into(), pkcs1_pem(&pair)] {
        let ca = Authority::from_pem(&cert_pem, key).unwrap();
        let request = Request::client("kubernetes-admin").in_group("system:masters");
        let leaf = ca.issue(&request, now).unwrap();
        assert_eq!(
            check_certificate(&leaf.cert_pem, &request, &ca, now),
            Ok(())
        );
    }
}
