//! Validation of Secrets of type `kubernetes.io/tls`: the first thing that is wrong, in the words of Go's `crypto/tls`.

use super::text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use serde_json::Value;

const CERTIFICATE: &str = "CERTIFICATE";
const KEY: &str = "PRIVATE KEY";

/// About a Secret for TLS.
pub(super) fn warnings(secret: &Value, _: Option<&Value>) -> Vec<String> {
    if text(secret, &["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let given = |key: &str| STANDARD.decode(text(secret, &["data", key])).unwrap_or_default();
    wrong(&given("tls.crt"), &given("tls.key")).into_iter().collect()
}

fn wrong(certificate: &[u8], key: &[u8]) -> Option<String> {
    let blocks = blocks(certificate);
    let certificates: Vec<CertificateDer<'static>> = blocks
        .iter()
        .filter(|(label, _)| label == CERTIFICATE)
        .map(|(_, content)| CertificateDer::from(content.clone()))
        .collect();
    if certificates.is_empty() {
        return Some(match &blocks[..] {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [(label, _)] if label.ends_with(KEY) => {
                "tls: failed to find certificate PEM data in certificate input, \
                 but did find a private key; PEM inputs may have been switched"
                    .to_owned()
            }
            others => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: {}",
                labels(others)
            ),
        });
    }
    let blocks = self::blocks(key);
    let Some((_, key)) = blocks.iter().find(|(label, _)| label == KEY || label.ends_with(" PRIVATE KEY"))
    else {
        return Some(match &blocks[..] {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            [(label, _)] if label == CERTIFICATE => {
                "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            others => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
                 blocks of the following types: {}",
                labels(others)
            ),
        });
    };
    let Ok(key) = PrivateKeyDer::try_from(key.clone()) else {
        return Some("tls: failed to parse private key".to_owned());
    };
    // Go knows more kinds of keys: what is not known here may well be in order.
    let key = rustls::crypto::ring::sign::any_supported_type(&key).ok()?;
    match CertifiedKey::new(certificates, key).keys_match() {
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Some("tls: private key does not match public key".to_owned())
        }
        _ => None,
    }
}

fn labels(blocks: &[(String, Vec<u8>)]) -> String {
    let labels: Vec<&str> = blocks.iter().map(|(label, _)| label.as_str()).collect();
    format!("[{}]", labels.join(" "))
}

/// The blocks of PEM that a text holds, by their labels.
fn blocks(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let text = String::from_utf8_lossy(bytes);
    let (mut found, mut rest) = (Vec::new(), &*text);
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        rest = after;
        let Some((label, body)) = after.split_once("-----\n") else { continue };
        let Some((body, after)) = body.split_once(&format!("-----END {label}-----")) else { continue };
        let content: String = body.lines().filter(|line| !line.contains(':')).map(str::trim).collect();
        if let Ok(content) = STANDARD.decode(content) {
            found.push((label.to_owned(), content));
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::wrong;
    use crate::credentials::Credentials;

    #[test]
    fn a_certificate_and_its_key_are_told_from_what_is_not() {
        let (one, other) = (Credentials::generate().expect("keys"), Credentials::generate().expect("keys"));
        let said = |certificate: &str, key: &str| wrong(certificate.as_bytes(), key.as_bytes());
        let (certificate, key) = (one.server_certificate(), one.server_key());
        assert_eq!(said(certificate, key), None);
        let mismatch = "tls: private key does not match public key";
        assert_eq!(said(certificate, other.server_key()).as_deref(), Some(mismatch));
        let switched = "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
                        inputs may have been switched";
        assert_eq!(said(key, certificate).as_deref(), Some(switched));
        let none = "tls: failed to find any PEM data in key input";
        assert_eq!(said(certificate, "-----BEGIN -----\n").as_deref(), Some(none));
        let bad = "-----BEGIN PRIVATE KEY-----\naGk=\n-----END PRIVATE KEY-----\n";
        assert_eq!(said(certificate, bad).as_deref(), Some("tls: failed to parse private key"));
    }
}
