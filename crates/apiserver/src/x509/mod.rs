//! Certificates and requests for them, read by a crate and written here as DER: the crate that makes other certificates
//! writes one organization to a subject, and a user may be in many groups.

mod certificate;
mod der;
mod request;
mod subject;
mod usages;

pub(crate) use certificate::Certificate;
pub use request::{CertificateRequest, InvalidCertificateRequest};
pub(crate) use subject::{AlternativeNames, Subject};
pub use usages::UnknownUsage;
pub(crate) use usages::{KEY_USAGES, KeyUsages};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use windlass_clock::Timestamp;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

/// When the first certificate of a PEM expires; none if it cannot be read.
pub fn certificate_expires(pem: &[u8]) -> Option<Timestamp> {
    let (_, block) = parse_x509_pem(pem).ok()?;
    let (_, certificate) = parse_x509_certificate(&block.contents).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

/// DER as PEM.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
