//! Kubeconfigs: what a YAML reader finds in them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hatchery_pki::{Credentials, Kubeconfig, Leaf};
use proptest::prelude::{prop_assert_eq, proptest};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

fn read(kubeconfig: &Kubeconfig) -> Value {
    serde_saphyr::from_str(kubeconfig.render().expose_secret()).unwrap()
}

fn admin() -> Kubeconfig {
    Kubeconfig {
        cluster: "egg".into(),
        user: "default-admin".into(),
        context: "default-system".into(),
        server: "https://192.168.0.2:6443".into(),
        authority_pem: "the authority".into(),
        credentials: Credentials::Certificate(Leaf {
            cert_pem: "the certificate".into(),
            key_pem: "the key".into(),
        }),
    }
}

#[test]
fn everything_is_embedded() {
    let encode = |text: &str| STANDARD.encode(text);
    assert_eq!(
        read(&admin()),
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "egg", "cluster": {
                "server": "https://192.168.0.2:6443",
                "certificate-authority-data": encode("the authority"),
            }}],
            "users": [{"name": "default-admin", "user": {
                "client-certificate-data": encode("the certificate"),
                "client-key-data": encode("the key"),
            }}],
            "contexts": [{"name": "default-system", "context": {"cluster": "egg", "user": "default-admin"}}],
            "current-context": "default-system",
        })
    );
}

#[test]
fn a_token_is_a_string_and_is_not_shown_by_accident() {
    let kubeconfig = Kubeconfig {
        credentials: Credentials::Token("123456".into()),
        ..admin()
    };
    assert_eq!(
        read(&kubeconfig)["users"][0]["user"],
        json!({"token": "123456"})
    );
    assert!(!format!("{kubeconfig:?}").contains("123456"));
    assert!(!format!("{:?}", kubeconfig.render()).contains("123456"));
}

proptest! {
    #[test]
    fn names_are_read_back_as_given(name in "\\PC{0,40}") {
        let read = read(&Kubeconfig { cluster: name.clone(), user: name.clone(), context: name.clone(), ..admin() });
        for place in ["/clusters/0/name", "/users/0/name", "/contexts/0/name", "/contexts/0/context/cluster", "/current-context"] {
            prop_assert_eq!(read.pointer(place), Some(&Value::from(name.as_str())));
        }
    }
}
