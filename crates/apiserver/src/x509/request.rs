//! A PKCS#10 request for a certificate, as a CertificateSigningRequest carries it.

use super::subject::{AlternativeNames, Attribute, Subject};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::IpAddr;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

/// Why something is no request for a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCertificateRequest {
    /// It is not PEM, or it is something else.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotPem,
    /// What the PEM holds cannot be read.
    #[error("asn1: structure error: {0}")]
    Malformed(String),
    /// It is not signed by the key that it brings.
    #[error("{0}")]
    Signature(String),
}

/// A request for a certificate that was signed by the key that it asks it for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    pub(crate) subject: Subject,
    pub(crate) names: AlternativeNames,
    /// As a certificate has it: SubjectPublicKeyInfo.
    pub(crate) public_key: Vec<u8>,
}

impl CertificateRequest {
    /// Reads the first block of a PEM.
    ///
    /// # Errors
    /// If it is no request, or not signed by its key.
    pub fn from_pem(pem: &[u8]) -> Result<Self, InvalidCertificateRequest> {
        let (_, block) = parse_x509_pem(pem).map_err(|_| InvalidCertificateRequest::NotPem)?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err(InvalidCertificateRequest::NotPem);
        }
        let malformed =
            |error: &dyn std::fmt::Display| InvalidCertificateRequest::Malformed(error.to_string());
        let (rest, request) =
            X509CertificationRequest::from_der(&block.contents).map_err(|error| malformed(&error))?;
        if !rest.is_empty() {
            return Err(malformed(&"trailing data"));
        }
        request.verify_signature().map_err(|error| unsigned(&request, &error))?;
        let info = &request.certification_request_info;
        let mut subject = Subject::default();
        for attribute in info.subject.iter_attributes() {
            let kind = Attribute::of(attribute.attr_type().as_bytes());
            if let (Some(kind), Ok(text)) = (kind, attribute.as_str()) {
                subject.push(kind, text);
            }
        }
        let mut names = AlternativeNames::default();
        for extension in request.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(found) = extension else { continue };
            for name in &found.general_names {
                match name {
                    GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                    GeneralName::RFC822Name(name) => names.emails.push((*name).to_owned()),
                    GeneralName::URI(name) => names.uris.push((*name).to_owned()),
                    GeneralName::IPAddress(address) => names.addresses.push(address.to_vec()),
                    _ => {}
                }
            }
        }
        if names.addresses.iter().any(|address| !matches!(address.len(), 4 | 16)) {
            return Err(malformed(&"cannot parse IP address"));
        }
        Ok(Self { subject, names, public_key: info.subject_pki.raw.to_vec() })
    }

    /// Reads what a CertificateSigningRequest holds: the same in base64.
    pub(crate) fn from_base64(text: &str) -> Result<Self, InvalidCertificateRequest> {
        Self::from_pem(&STANDARD.decode(text).unwrap_or_default())
    }

    /// The common name of the subject: the user, for a certificate of a client.
    pub fn common_name(&self) -> &str {
        self.subject.all(Attribute::COMMON_NAME).next().unwrap_or_default()
    }

    /// The organizations of the subject: the groups of the user, for a certificate of a client.
    pub fn organizations(&self) -> Vec<&str> {
        self.subject.all(Attribute::ORGANIZATION).collect()
    }

    /// The DNS names that it asks for beside the subject.
    pub fn dns_names(&self) -> &[String] {
        &self.names.dns
    }

    /// The addresses of e-mail that it asks for beside the subject.
    pub fn email_addresses(&self) -> &[String] {
        &self.names.emails
    }

    /// The IP addresses that it asks for beside the subject.
    pub fn ip_addresses(&self) -> Vec<IpAddr> {
        let address = |bytes: &Vec<u8>| match bytes.len() {
            4 => <[u8; 4]>::try_from(bytes.as_slice()).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(bytes.as_slice()).ok().map(IpAddr::from),
        };
        self.names.addresses.iter().filter_map(address).collect()
    }

    /// The URIs that it asks for beside the subject.
    pub fn uris(&self) -> &[String] {
        &self.names.uris
    }
}

/// In the words of the reference, which depend on the kind of the key.
fn unsigned(request: &X509CertificationRequest<'_>, error: &X509Error) -> InvalidCertificateRequest {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
    let key = &request.certification_request_info.subject_pki.algorithm.algorithm;
    let why = match (error, key.as_bytes()) {
        (X509Error::SignatureUnsupportedAlgorithm, _) => {
            "x509: cannot verify signature: algorithm unimplemented"
        }
        (_, RSA) => "crypto/rsa: verification error",
        (_, ED25519) => "x509: Ed25519 verification failure",
        _ => "x509: ECDSA verification failure",
    };
    InvalidCertificateRequest::Signature(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn request(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params =
            CertificateParams::new(["db.example.com".to_owned(), "10.0.0.7".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "dev");
        params.distinguished_name.push(DnType::CommonName, "jane");
        change(&mut params);
        params.serialize_request(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn read(der: &[u8]) -> Result<CertificateRequest, InvalidCertificateRequest> {
        CertificateRequest::from_pem(super::super::pem("CERTIFICATE REQUEST", der).as_bytes())
    }

    #[test]
    fn a_request_says_who_wants_what() {
        let request = read(&request(|_| {})).unwrap();
        assert_eq!((request.common_name(), request.organizations()), ("jane", vec!["dev"]));
        assert_eq!(request.dns_names(), ["db.example.com"]);
        assert_eq!(request.ip_addresses(), [IpAddr::from([10, 0, 0, 7])]);
        assert_eq!((request.email_addresses().len(), request.uris().len()), (0, 0));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let der = request(|_| {});
        assert_eq!(CertificateRequest::from_pem(b"x"), Err(InvalidCertificateRequest::NotPem));
        let other = super::super::pem("CERTIFICATE", &der);
        assert_eq!(CertificateRequest::from_pem(other.as_bytes()), Err(InvalidCertificateRequest::NotPem));
        assert!(matches!(read(&der[1..]), Err(InvalidCertificateRequest::Malformed(_))));
        assert!(matches!(read(&[&der[..], &[0]].concat()), Err(InvalidCertificateRequest::Malformed(_))));
        let name = der.windows(4).position(|word| word == b"jane").unwrap();
        let forged = [&der[..name], b"john", &der[name + 4..]].concat();
        let why = InvalidCertificateRequest::Signature("x509: ECDSA verification failure".into());
        assert_eq!(read(&forged), Err(why));
        for length in 0..der.len() {
            assert!(read(&der[..length]).is_err(), "{length} bytes of it");
        }
    }
}
