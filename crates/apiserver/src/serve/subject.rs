//! The user and groups that a client's certificate names: its subject's common name and organizations.

use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::Tag;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::parse_x509_certificate;

/// The types of text that a name may have.
const TEXTS: [Tag; 4] = [Tag::Utf8String, Tag::PrintableString, Tag::T61String, Tag::Ia5String];

/// What the subject of a certificate says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The user.
    pub common_name: String,
    /// The groups that the user is in.
    pub organizations: Vec<String>,
}

/// The subject of a certificate that was verified; none if it cannot be read. Of several common names the last counts, as
/// for the reference.
pub fn of(certificate: &CertificateDer<'_>) -> Option<Subject> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let mut subject = Subject::default();
    for attribute in certificate.subject().iter_attributes() {
        if !TEXTS.contains(&attribute.attr_value().tag()) {
            continue;
        }
        let text = || std::str::from_utf8(attribute.as_slice()).map(str::to_owned).ok();
        if *attribute.attr_type() == OID_X509_COMMON_NAME {
            subject.common_name = text()?;
        } else if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
            subject.organizations.push(text()?);
        }
    }
    Some(subject)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use proptest::prelude::*;
    use rustls::pki_types::pem::PemObject;

    #[test]
    fn the_administrator_is_named_by_the_certificate() {
        let credentials = Credentials::generate().unwrap();
        let certificate = CertificateDer::from_pem_slice(credentials.admin_certificate().as_bytes()).unwrap();
        let subject = of(&certificate).unwrap();
        assert_eq!(subject.common_name, "kubernetes-admin");
        assert_eq!(subject.organizations, ["system:masters"]);
    }

    #[test]
    fn an_issued_certificate_names_its_user_and_all_groups() {
        let credentials = Credentials::generate().unwrap();
        let long = "g".repeat(300);
        let (certificate, _) = credentials.issue_client("jane", &["devs", "ops", &long]).unwrap();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let subject = of(&certificate).unwrap();
        assert_eq!(subject.common_name, "jane");
        assert_eq!(subject.organizations, ["devs", "ops", &long]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = of(&CertificateDer::from(bytes));
        }
    }
}
