//! A certificate that a CA signs.

use super::der::{BIT_STRING, BOOLEAN, INTEGER, OCTET_STRING, SEQUENCE, constructed, context, element, time};
use super::subject::{AlternativeNames, Subject};
use super::usages::KeyUsages;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use windlass_clock::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::parse_x509_certificate;

// Names of things, as whole elements.
const ECDSA_WITH_SHA256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x25];
const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x23];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];

/// What a certificate says.
pub(crate) struct Certificate<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) names: &'a AlternativeNames,
    pub(crate) usages: &'a KeyUsages,
    /// As a certificate has it: SubjectPublicKeyInfo.
    pub(crate) public_key: &'a [u8],
    pub(crate) not_before: Timestamp,
    /// It never holds longer than that of the CA.
    pub(crate) not_after: Timestamp,
}

impl Certificate<'_> {
    /// The certificate, as DER, signed by the CA of this certificate and key, which is of the curve P-256. What goes wrong
    /// is told in words.
    pub(crate) fn sign(&self, ca_certificate: &str, ca_key: &str) -> Result<Vec<u8>, String> {
        let ca =
            CertificateDer::from_pem_slice(ca_certificate.as_bytes()).map_err(|error| error.to_string())?;
        let (_, ca) = parse_x509_certificate(&ca).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(ca_key.as_bytes()).map_err(|error| error.to_string())?;
        let key = any_supported_type(&key).map_err(|error| error.to_string())?;
        let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]);
        let signer = signer.ok_or("its key is not of the curve P-256")?;
        let expires = Timestamp::from_second(ca.validity().not_after.timestamp()).unwrap_or(Timestamp::MAX);
        if self.not_before >= expires {
            return Err(format!("it has expired: NotAfter={expires}"));
        }
        let mut serial = [0; 16];
        SystemRandom::new().fill(&mut serial).map_err(|error| error.to_string())?;
        // Positive, and of the same length whatever it is.
        serial[0] = serial[0] & 0x7f | 0x40;
        let algorithm = element(SEQUENCE, &[ECDSA_WITH_SHA256]);
        let signed = element(
            SEQUENCE,
            &[
                &constructed(0, &[&element(INTEGER, &[&[2]])]),
                &element(INTEGER, &[&serial]),
                &algorithm,
                ca.subject().as_raw(),
                &element(SEQUENCE, &[&time(self.not_before), &time(self.not_after.min(expires))]),
                &self.subject.to_der(),
                self.public_key,
                &constructed(3, &[&element(SEQUENCE, &[&self.extensions(&ca)])]),
            ],
        );
        let signature = signer.sign(&signed).map_err(|error| error.to_string())?;
        Ok(element(SEQUENCE, &[&signed, &algorithm, &element(BIT_STRING, &[&[0], &signature])]))
    }

    fn extensions(&self, ca: &X509Certificate<'_>) -> Vec<u8> {
        let authority = ca.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => {
                Some(element(SEQUENCE, &[&context(0, &[identifier.0])]))
            }
            _ => None,
        });
        let all = [
            (KEY_USAGE, true, self.usages.of_the_key()),
            (EXTENDED_KEY_USAGE, false, self.usages.extended()),
            (BASIC_CONSTRAINTS, true, Some(element(SEQUENCE, &[]))),
            (AUTHORITY_KEY_IDENTIFIER, false, authority),
            // Without a subject these are all that it is known by.
            (SUBJECT_ALTERNATIVE_NAME, self.subject.is_empty(), self.names.to_der()),
        ];
        let written = all.into_iter().filter_map(|(name, critical, value)| {
            let value = element(OCTET_STRING, &[&value?]);
            let critical = if critical { element(BOOLEAN, &[&[0xff]]) } else { Vec::new() };
            Some(element(SEQUENCE, &[name, &critical, &value]))
        });
        written.collect::<Vec<_>>().concat()
    }
}
