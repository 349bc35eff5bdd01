//! Whom a certificate is for: the attributes of a subject, and the names beside it.

use super::der::{SEQUENCE, SET, UTF8_STRING, context, element};

/// An attribute of a subject, by the last number of its object identifier, 2.5.4.N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attribute(u8);

impl Attribute {
    pub(crate) const COMMON_NAME: Self = Self(3);
    pub(crate) const SERIAL_NUMBER: Self = Self(5);
    pub(crate) const ORGANIZATION: Self = Self(10);

    /// Those that are passed on into a certificate, in the order in which it has them: country, organization,
    /// organizational unit, locality, province, street, postal code, common name, serial number.
    const KEPT: [u8; 9] = [6, 10, 11, 7, 8, 9, 17, 3, 5];

    /// By the bytes of its object identifier, if it is one that is passed on.
    pub(crate) fn of(identifier: &[u8]) -> Option<Self> {
        match identifier {
            [0x55, 0x04, number] if Self::KEPT.contains(number) => Some(Self(*number)),
            _ => None,
        }
    }

    /// Whether a subject has at most one: the last that is said.
    fn is_single(self) -> bool {
        self == Self::COMMON_NAME || self == Self::SERIAL_NUMBER
    }
}

/// The attributes of a subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject(Vec<(Attribute, String)>);

impl Subject {
    /// A user, and the groups that the user is in.
    pub(crate) fn user(user: &str, groups: &[&str]) -> Self {
        let mut subject = Self::default();
        groups.iter().for_each(|group| subject.push(Attribute::ORGANIZATION, group));
        subject.push(Attribute::COMMON_NAME, user);
        subject
    }

    pub(crate) fn push(&mut self, attribute: Attribute, text: &str) {
        if attribute.is_single() {
            self.0.retain(|(other, _)| *other != attribute);
        }
        self.0.push((attribute, text.to_owned()));
    }

    pub(crate) fn all(&self, attribute: Attribute) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(other, _)| *other == attribute).map(|(_, text)| text.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn to_der(&self) -> Vec<u8> {
        let parts = Attribute::KEPT.into_iter().flat_map(|number| {
            self.all(Attribute(number)).map(move |text| {
                let value = element(UTF8_STRING, &[text.as_bytes()]);
                element(SET, &[&element(SEQUENCE, &[&[0x06, 0x03, 0x55, 0x04, number], &value])])
            })
        });
        element(SEQUENCE, &[&parts.collect::<Vec<_>>().concat()])
    }
}

/// Names beside the subject, under which a server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AlternativeNames {
    pub(crate) dns: Vec<String>,
    pub(crate) emails: Vec<String>,
    /// Four bytes or sixteen each.
    pub(crate) addresses: Vec<Vec<u8>>,
    pub(crate) uris: Vec<String>,
}

impl AlternativeNames {
    /// None without any name.
    pub(super) fn to_der(&self) -> Option<Vec<u8>> {
        let texts = |number: u8, texts: &[String]| {
            texts.iter().map(|text| context(number, &[text.as_bytes()])).collect::<Vec<_>>().concat()
        };
        let addresses: Vec<Vec<u8>> = self.addresses.iter().map(|address| context(7, &[address])).collect();
        let names = [texts(2, &self.dns), texts(1, &self.emails), addresses.concat(), texts(6, &self.uris)];
        let names = names.concat();
        (!names.is_empty()).then(|| element(SEQUENCE, &[&names]))
    }
}
