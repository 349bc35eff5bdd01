//! Certificates of clients, written as DER: the crate that makes the others writes one organization to a subject, and a user
//! may be in many groups.

use super::CredentialsError;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use windlass_clock::Timestamp;
use x509_parser::parse_x509_certificate;

// Tags of DER.
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

// Names of things, as whole elements.
const ECDSA_WITH_SHA256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x0a];
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x25];
const CLIENT_AUTH: &[u8] = &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Digital signature and key encipherment: the first and the third of eight bits, five of which are not used.
const SIGNATURE_AND_ENCIPHERMENT: [u8; 2] = [0x05, 0xa0];

/// From this year on times have four digits for it.
const FOUR_DIGITS: i16 = 2050;

/// What a client's certificate says.
pub(super) struct Client<'a> {
    pub(super) user: &'a str,
    pub(super) groups: &'a [&'a str],
    /// As a certificate has it: SubjectPublicKeyInfo.
    pub(super) public_key: &'a [u8],
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Client<'_> {
    /// The certificate, as DER, signed by the CA of this certificate and key, which is of the curve P-256.
    pub(super) fn sign(&self, ca_certificate: &str, ca_key: &str) -> Result<Vec<u8>, CredentialsError> {
        let unusable = |error: &dyn std::fmt::Display| CredentialsError::Unusable(error.to_string());
        let ca =
            CertificateDer::from_pem_slice(ca_certificate.as_bytes()).map_err(|error| unusable(&error))?;
        let (_, ca) = parse_x509_certificate(&ca).map_err(|error| unusable(&error))?;
        let key = PrivateKeyDer::from_pem_slice(ca_key.as_bytes()).map_err(|error| unusable(&error))?;
        let key = any_supported_type(&key).map_err(|error| unusable(&error))?;
        let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]);
        let signer = signer.ok_or_else(|| unusable(&"the key of the CA is not of the curve P-256"))?;
        let mut serial = [0; 16];
        SystemRandom::new().fill(&mut serial).map_err(|error| unusable(&error))?;
        // Positive, and of the same length whatever it is.
        serial[0] = serial[0] & 0x7f | 0x40;
        let algorithm = element(SEQUENCE, &[ECDSA_WITH_SHA256]);
        let signed = element(
            SEQUENCE,
            &[
                &element(VERSION, &[&element(INTEGER, &[&[2]])]),
                &element(INTEGER, &[&serial]),
                &algorithm,
                ca.subject().as_raw(),
                &element(SEQUENCE, &[&time(self.not_before), &time(self.not_after)]),
                &self.subject(),
                self.public_key,
                &element(EXTENSIONS, &[&extensions()]),
            ],
        );
        let signature = signer.sign(&signed).map_err(|error| unusable(&error))?;
        Ok(element(SEQUENCE, &[&signed, &algorithm, &element(BIT_STRING, &[&[0], &signature])]))
    }

    fn subject(&self) -> Vec<u8> {
        let part = |kind: &[u8], text: &str| {
            element(SET, &[&element(SEQUENCE, &[kind, &element(UTF8_STRING, &[text.as_bytes()])])])
        };
        let mut parts: Vec<Vec<u8>> = self.groups.iter().map(|group| part(ORGANIZATION, group)).collect();
        parts.push(part(COMMON_NAME, self.user));
        element(SEQUENCE, &[&parts.concat()])
    }
}

fn extensions() -> Vec<u8> {
    let critical = element(BOOLEAN, &[&[0xff]]);
    let value = |inner: &[u8]| element(OCTET_STRING, &[inner]);
    let usage = element(BIT_STRING, &[&SIGNATURE_AND_ENCIPHERMENT]);
    element(
        SEQUENCE,
        &[
            &element(SEQUENCE, &[BASIC_CONSTRAINTS, &critical, &value(&element(SEQUENCE, &[]))]),
            &element(SEQUENCE, &[KEY_USAGE, &critical, &value(&usage)]),
            &element(SEQUENCE, &[EXTENDED_KEY_USAGE, &value(&element(SEQUENCE, &[CLIENT_AUTH]))]),
        ],
    )
}

fn time(time: Timestamp) -> Vec<u8> {
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC);
    match zoned.year() < FOUR_DIGITS {
        true => element(UTC_TIME, &[zoned.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()]),
        false => element(GENERALIZED_TIME, &[zoned.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()]),
    }
}

/// An element of DER: a tag, the length, and what is in it.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    let digits = length.to_be_bytes();
    let digits = &digits[digits.iter().take_while(|digit| **digit == 0).count()..];
    match (length, u8::try_from(digits.len())) {
        (0x80.., Ok(count)) => {
            bytes.push(0x80 | count);
            bytes.extend_from_slice(digits);
        }
        _ => bytes.push(digits.last().copied().unwrap_or(0)),
    }
    bytes.extend(parts.iter().flat_map(|part| part.iter()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_or_say_how_long_they_are() {
        assert_eq!(element(SEQUENCE, &[]), [0x30, 0]);
        assert_eq!(element(SEQUENCE, &[&[7; 0x7f]])[..2], [0x30, 0x7f]);
        assert_eq!(element(SEQUENCE, &[&[7; 0x80]])[..3], [0x30, 0x81, 0x80]);
        assert_eq!(element(SEQUENCE, &[&[7; 0x80], &[7; 0x80]])[..4], [0x30, 0x82, 1, 0]);
    }
}
