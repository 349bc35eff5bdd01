//! Tokens of service accounts, signed by the test itself with the server's key: also ones that no server would sign.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs1KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use windlass_clock::Clock;

/// The issuer that the environment's server is told.
pub(super) const ISSUER: &str = "https://issuer.example.com";

/// What a good token of the account `default` says.
pub(super) fn claims(uid: &str) -> Value {
    let now = Clock::real().now().as_second();
    json!({
        "iss": ISSUER, "sub": "system:serviceaccount:default:default", "aud": [ISSUER], "jti": "one",
        "exp": now + 600, "iat": now, "nbf": now,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "default", "uid": uid}},
    })
}

/// The claims with one of them changed, or left out.
pub(super) fn with(mut claims: Value, name: &str, value: Value) -> Value {
    match value {
        Value::Null => _ = claims.as_object_mut().unwrap().remove(name),
        value => claims[name] = value,
    }
    claims
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Signed with the server's key, whatever the header says.
pub(super) fn signed(header: &Value, claims: &Value) -> String {
    let key = PrivatePkcs1KeyDer::from_pem_slice(include_bytes!("rsa.key")).unwrap();
    let key = RsaKeyPair::from_der(key.secret_pkcs1_der()).unwrap();
    let message = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Not signed at all.
pub(super) fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}.", part(header), part(claims))
}

/// Signed with the public key as if it were a secret.
pub(super) fn confused(claims: &Value) -> String {
    let message = format!("{}.{}", part(&json!({"alg": "HS256"})), part(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, include_bytes!("rsa.pub"));
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}
