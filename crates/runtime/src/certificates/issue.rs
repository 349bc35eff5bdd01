//! Makes keys and certificates.

use super::due::{ISSUED_FOR, RENEW_AT, Stage, issued_for, margin, overlap, renew_at, stage};
use super::recipe::{Certificate, CertificateAuthority, Issue, Purpose};
use crate::fingerprint::fingerprint;
use k8s_openapi::api::core::v1::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_clock::Timestamp;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const TRUSTED: &str = "ca.crt";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";
/// Certificates are valid from before they were made: clocks differ.
const EARLIER: Duration = Duration::from_secs(300);

/// A certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IssueError {
    #[error("Secret {0}, whose certificate authority is to sign, is not there")]
    NoAuthority(String),
    #[error("Secret {name} has no certificate authority: {key} is missing or is no text")]
    Incomplete { name: String, key: &'static str },
    #[error(transparent)]
    Made(#[from] rcgen::Error),
}

/// What a Secret is to hold: entries (`None` for one to be removed) and annotations.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    entries: Vec<(&'static str, Option<String>)>,
    annotations: Vec<(&'static str, String)>,
}

impl Contents {
    /// Puts them into a new Secret, or into a merge patch for one.
    pub(crate) fn merge_into(self, secret: &mut Value) {
        for (name, value) in self.entries {
            match value {
                Some(text) => secret["stringData"][name] = json!(text),
                None => secret["data"][name] = Value::Null,
            }
        }
        for (name, value) in self.annotations {
            secret["metadata"]["annotations"][name] = json!(value);
        }
    }

    /// What an authority says of itself, from what is trusted from now on.
    fn authority(entries: Vec<(&'static str, Option<String>)>, look_again: Timestamp) -> Self {
        let trusted = entries.iter().find(|(name, _)| *name == TRUSTED).and_then(|(_, text)| text.clone());
        let signer = entries.iter().find(|(name, _)| *name == CERTIFICATE).and_then(|(_, text)| text.clone());
        // Texts can always be written.
        let which = fingerprint(&(signer, trusted)).unwrap_or_default();
        let annotations = vec![(ISSUED_FOR, which), (RENEW_AT, look_again.to_string())];
        Self { entries, annotations }
    }
}

impl Issue {
    /// Makes what a Secret of this name is to hold, given what it holds, and the Secret of its authority.
    ///
    /// # Errors
    /// When the authority is not there, or cannot be used.
    pub(crate) fn make(
        &self,
        name: &str,
        live: Option<&Secret>,
        authority: Option<&Secret>,
        now: Timestamp,
    ) -> Result<Contents, IssueError> {
        match self {
            Self::Authority(wanted) => wanted.make(name, live, now),
            Self::Certificate(wanted) => wanted.make(authority, now),
        }
    }
}

impl CertificateAuthority {
    fn make(&self, name: &str, live: Option<&Secret>, now: Timestamp) -> Result<Contents, IssueError> {
        let entry = |key: &'static str| live.and_then(|live| text(live, key));
        let (current, next) = (entry(CERTIFICATE), entry(NEXT_CERTIFICATE).zip(entry(NEXT_KEY)));
        let due = live.and_then(|live| renew_at(&live.metadata)).filter(|_| current.is_some());
        let renewed_after = self.valid_for - margin(self.valid_for);
        let (contents, look_again) = match (stage(self.valid_for, due, next.is_some(), now), next, current) {
            (Stage::Announce, _, Some(current)) => {
                let (certificate, key) = self.generate(name, now)?;
                let entries = vec![
                    (CERTIFICATE, Some(current.clone())),
                    (TRUSTED, Some(current + &certificate)),
                    (NEXT_CERTIFICATE, Some(certificate)),
                    (NEXT_KEY, Some(key)),
                ];
                (entries, overlap(self.valid_for))
            }
            (Stage::Succeed, Some((certificate, key)), current) => {
                let entries = vec![
                    (TRUSTED, Some(certificate.clone() + &current.unwrap_or_default())),
                    (CERTIFICATE, Some(certificate)),
                    (KEY, Some(key)),
                    (NEXT_CERTIFICATE, None),
                    (NEXT_KEY, None),
                ];
                (entries, renewed_after - overlap(self.valid_for))
            }
            (_, _, current) => {
                let (certificate, key) = self.generate(name, now)?;
                let entries = vec![
                    (TRUSTED, Some(certificate.clone() + &current.unwrap_or_default())),
                    (CERTIFICATE, Some(certificate)),
                    (KEY, Some(key)),
                ];
                (entries, renewed_after)
            }
        };
        Ok(Contents::authority(contents, now + look_again))
    }

    /// A new one, with its key.
    fn generate(&self, name: &str, now: Timestamp) -> Result<(String, String), IssueError> {
        let key = KeyPair::generate()?;
        let mut params = authority_params(name);
        limit(&mut params, now, self.valid_for);
        Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
    }
}

impl Certificate {
    fn make(&self, authority: Option<&Secret>, now: Timestamp) -> Result<Contents, IssueError> {
        let name = &self.signed_by;
        let authority = authority.ok_or_else(|| IssueError::NoAuthority(name.clone()))?;
        let entry = |key: &'static str| {
            text(authority, key).ok_or_else(|| IssueError::Incomplete { name: name.clone(), key })
        };
        let (trusted, signing_key) = (entry(TRUSTED)?, KeyPair::from_pem(&entry(KEY)?)?);
        let which = authority.metadata.annotations.as_ref().and_then(|all| all.get(ISSUED_FOR));
        let authority = authority_params(name);
        let issuer = Issuer::from_params(&authority, &signing_key);
        let key = KeyPair::generate()?;
        let mut params = match &self.purpose {
            Purpose::Server(names) => {
                let mut params = CertificateParams::new(names.clone())?;
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                params.distinguished_name = common_name(names.first().map_or("server", String::as_str));
                params
            }
            Purpose::Client(name) => {
                let mut params = CertificateParams::default();
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                params.distinguished_name = common_name(name);
                params
            }
        };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        limit(&mut params, now, self.valid_for);
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let look_again = now + (self.valid_for - margin(self.valid_for));
        Ok(Contents {
            entries: vec![
                (CERTIFICATE, Some(certificate)),
                (KEY, Some(key.serialize_pem())),
                (TRUSTED, Some(trusted)),
            ],
            annotations: vec![
                (ISSUED_FOR, issued_for(self, which.map_or("", String::as_str))),
                (RENEW_AT, look_again.to_string()),
            ],
        })
    }
}

/// What is the same in every certificate of an authority, and in what it signs as its issuer: it follows from the Secret's name.
fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The longest common name that X.509 has.
const LONGEST_COMMON_NAME: usize = 64;

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name.chars().take(LONGEST_COMMON_NAME).collect::<String>());
    distinguished
}

/// Makes it valid from now, for a time.
fn limit(params: &mut CertificateParams, now: Timestamp, valid_for: Duration) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = Duration::from_secs(now.as_second().try_into().unwrap_or_default());
    params.not_before = epoch + now.saturating_sub(EARLIER);
    params.not_after = epoch + now + valid_for;
}

/// A key pair, private and public, as PEM.
///
/// # Errors
/// When the system gave no randomness.
pub(crate) fn key_pair() -> Result<(String, String), IssueError> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    String::from_utf8(bytes.clone()).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::sync::Arc;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// The Secret after a merge of what was made, as the API server merges it.
    fn merged(live: Option<&Secret>, contents: Contents) -> Secret {
        let mut secret = live.cloned().unwrap_or_default();
        for (name, value) in contents.entries {
            let data = secret.data.get_or_insert_default();
            match value {
                Some(text) => data.insert(name.to_owned(), ByteString(text.into_bytes())),
                None => data.remove(name),
            };
        }
        let annotations = contents.annotations.into_iter().map(|(name, value)| (name.to_owned(), value));
        secret.metadata.annotations.get_or_insert_default().extend(annotations);
        secret
    }

    fn issue(certificate: &Certificate, authority: &Secret, now: Timestamp) -> Secret {
        merged(None, Issue::Certificate(certificate.clone()).make("tls", None, Some(authority), now).unwrap())
    }

    /// Whether who trusts this Secret's `ca.crt` takes that one's certificate for a server of this name.
    fn trusts(trusted: &Secret, shown: &Secret, name: &str, now: Timestamp) -> bool {
        let all = |secret: &Secret, key: &str| -> Vec<CertificateDer<'static>> {
            let pem = text(secret, key).unwrap();
            CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
        };
        let mut roots = rustls::RootCertStore::empty();
        all(trusted, TRUSTED).into_iter().for_each(|root| roots.add(root).unwrap());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().try_into().unwrap()));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(&all(shown, CERTIFICATE)[0], &[], &name, &[], now).is_ok()
    }

    #[test]
    fn a_certificate_is_trusted_for_its_names_and_its_time() {
        let wanted = CertificateAuthority::new();
        let authority = merged(None, wanted.make("ca", None, at(0)).unwrap());
        let certificate =
            Certificate::server(["db-rw", "*.db.shop.svc", "10.0.0.1"], "ca").valid_for(3 * HOUR);
        let tls = issue(&certificate, &authority, at(0));
        for name in ["db-rw", "db-0.db.shop.svc", "10.0.0.1"] {
            assert!(trusts(&tls, &tls, name, at(60)), "{name}");
        }
        assert!(!trusts(&tls, &tls, "other", at(60)));
        assert!(trusts(&tls, &tls, "db-rw", at(-200)), "clocks differ");
        assert!(!trusts(&tls, &tls, "db-rw", at(3 * 3600 + 1)), "its time is over");
        assert_eq!(renew_at(&tls.metadata), Some(at(2 * 3600)));
        let other = merged(None, wanted.make("ca", None, at(0)).unwrap());
        assert!(!trusts(&other, &tls, "db-rw", at(60)), "another authority of the same name");
    }

    /// Whoever has not heard of the last change trusts what was issued after it, and what was issued before it is trusted by whoever has.
    #[test]
    fn nobody_meets_an_authority_that_they_have_not_heard_of() {
        let wanted = CertificateAuthority::new().valid_for(30 * HOUR);
        let certificate = Certificate::server(["db"], "ca");
        let mut authority = merged(None, wanted.make("ca", None, at(0)).unwrap());
        let mut tls = issue(&certificate, &authority, at(0));
        let mut signers = std::collections::BTreeSet::new();
        for _ in 0..7 {
            let now = renew_at(&authority.metadata).unwrap();
            let next = merged(Some(&authority), wanted.make("ca", Some(&authority), now).unwrap());
            assert_ne!(
                next.metadata.annotations, authority.metadata.annotations,
                "certificates are issued anew"
            );
            let renewed = issue(&certificate, &next, now);
            assert!(trusts(&tls, &renewed, "db", now) && trusts(&renewed, &tls, "db", now), "{now}");
            signers.insert(text(&next, CERTIFICATE));
            (authority, tls) = (next, renewed);
        }
        assert_eq!(signers.len(), 4, "every second change is another signer");
        assert!(text(&authority, NEXT_KEY).is_some());
    }

    #[test]
    fn an_authority_that_was_forgotten_is_replaced_at_once() {
        let wanted = CertificateAuthority::new().valid_for(30 * HOUR);
        let authority = merged(None, wanted.make("ca", None, at(0)).unwrap());
        let late = at(31 * 3600);
        let next = merged(Some(&authority), wanted.make("ca", Some(&authority), late).unwrap());
        assert_ne!(text(&next, CERTIFICATE), text(&authority, CERTIFICATE));
        let tls = issue(&Certificate::server(["db"], "ca"), &next, late);
        assert!(trusts(&tls, &tls, "db", late));
    }

    #[test]
    fn what_cannot_sign_is_named() {
        let certificate = Issue::Certificate(Certificate::client("replicator", "ca"));
        let refused = |authority: Option<&Secret>| {
            certificate.make("tls", None, authority, at(0)).unwrap_err().to_string()
        };
        assert_eq!(refused(None), "Secret ca, whose certificate authority is to sign, is not there");
        let says = "Secret ca has no certificate authority: ca.crt is missing or is no text";
        assert_eq!(refused(Some(&Secret::default())), says);
    }
}
