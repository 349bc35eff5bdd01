//! The user and groups that a client's certificate names: its subject's common name and organizations.
//!
//! Only certificates that our CA signed get here, so a small reader of the few forms that a subject has is enough.

use webpki::EndEntityCert;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// UTF8String, PrintableString, TeletexString and IA5String.
const STRINGS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// What the subject of a certificate says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The user.
    pub common_name: String,
    /// The groups that the user is in.
    pub organizations: Vec<String>,
}

/// The subject of a certificate that was verified; none if it cannot be read.
pub fn of(certificate: &rustls::pki_types::CertificateDer<'_>) -> Option<Subject> {
    read(EndEntityCert::try_from(certificate).ok()?.subject())
}

/// Reads the names inside of a subject. Of several common names the last counts, as for the reference.
fn read(mut names: &[u8]) -> Option<Subject> {
    let mut subject = Subject::default();
    while !names.is_empty() {
        let (mut set, rest) = expect(names, SET)?;
        names = rest;
        while !set.is_empty() {
            let (attribute, rest) = expect(set, SEQUENCE)?;
            set = rest;
            let (kind, value) = expect(attribute, OBJECT_IDENTIFIER)?;
            let (tag, value, _) = element(value)?;
            if !STRINGS.contains(&tag) {
                continue;
            }
            let text = || String::from_utf8(value.to_vec()).ok();
            if kind == COMMON_NAME {
                subject.common_name = text()?;
            } else if kind == ORGANIZATION {
                subject.organizations.push(text()?);
            }
        }
    }
    Some(subject)
}

fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// The tag and content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ ..=0x7f => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        // Longer than any subject.
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use proptest::prelude::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    #[test]
    fn the_administrator_is_named_by_the_certificate() {
        let credentials = Credentials::generate().unwrap();
        let certificate = CertificateDer::from_pem_slice(credentials.admin_certificate().as_bytes()).unwrap();
        let subject = of(&certificate).unwrap();
        assert_eq!(subject.common_name, "kubernetes-admin");
        assert_eq!(subject.organizations, ["system:masters"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes);
        }
    }
}
