//! What a certificate may be used for, by the words of the certificates API.

use super::der::{BIT_STRING, SEQUENCE, element};
use std::collections::BTreeSet;

/// Uses of the key itself, each with its bit of the extension, the first of which is the highest here.
const OF_THE_KEY: [(&str, u16); 10] = [
    ("signing", 1 << 15),
    ("digital signature", 1 << 15),
    ("content commitment", 1 << 14),
    ("key encipherment", 1 << 13),
    ("data encipherment", 1 << 12),
    ("key agreement", 1 << 11),
    ("cert sign", 1 << 10),
    ("crl sign", 1 << 9),
    ("encipher only", 1 << 8),
    ("decipher only", 1 << 7),
];

/// Uses of the certificate, each with its object identifier, in the order in which a certificate has them.
const EXTENDED: [(&str, &[u8]); 13] = [
    ("any", &[0x06, 0x04, 0x55, 0x1d, 0x25, 0x00]),
    ("server auth", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]),
    ("client auth", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]),
    ("code signing", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03]),
    ("email protection", EMAIL_PROTECTION),
    ("s/mime", EMAIL_PROTECTION),
    ("ipsec end system", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x05]),
    ("ipsec tunnel", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x06]),
    ("ipsec user", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x07]),
    ("timestamping", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08]),
    ("ocsp signing", &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09]),
    ("microsoft sgc", &[0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x0a, 0x03, 0x03]),
    ("netscape sgc", &[0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x04, 0x01]),
];

const EMAIL_PROTECTION: &[u8] = &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04];

/// All words that name a use, sorted.
pub(crate) const KEY_USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// A word that names no use of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized usage value: {0:?}")]
pub struct UnknownUsage(pub String);

/// What a certificate may be used for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyUsages {
    of_the_key: u16,
    /// Places in [`EXTENDED`].
    extended: BTreeSet<usize>,
}

impl KeyUsages {
    pub(crate) fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownUsage> {
        let mut usages = Self::default();
        for word in words {
            if let Some((_, bit)) = OF_THE_KEY.iter().find(|(name, _)| *name == word) {
                usages.of_the_key |= bit;
            } else if let Some((_, identifier)) = EXTENDED.iter().find(|(name, _)| *name == word) {
                // Two words may mean the same.
                usages.extended.extend(EXTENDED.iter().position(|(_, other)| other == identifier));
            } else {
                return Err(UnknownUsage(word.to_owned()));
            }
        }
        Ok(usages)
    }

    /// The uses of the key as a string of bits, without those at its end that are not set.
    pub(super) fn of_the_key(&self) -> Option<Vec<u8>> {
        let [first, second] = self.of_the_key.to_be_bytes();
        let bytes: &[u8] = match (first, second) {
            (0, 0) => return None,
            (first, 0) => &[unused(first), first],
            (first, second) => &[unused(second), first, second],
        };
        Some(element(BIT_STRING, &[bytes]))
    }

    pub(super) fn extended(&self) -> Option<Vec<u8>> {
        let identifiers: Vec<&[u8]> =
            self.extended.iter().filter_map(|place| EXTENDED.get(*place)).map(|(_, it)| *it).collect();
        (!identifiers.is_empty()).then(|| element(SEQUENCE, &identifiers))
    }
}

/// How many bits at the end of a byte are not set.
fn unused(byte: u8) -> u8 {
    u8::try_from(byte.trailing_zeros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_known() {
        assert!(KEY_USAGES.is_sorted());
        assert_eq!(KEY_USAGES.len(), OF_THE_KEY.len() + EXTENDED.len());
        assert!(KeyUsages::parse(KEY_USAGES.iter().copied()).is_ok());
        assert_eq!(KeyUsages::parse(["mining"]), Err(UnknownUsage("mining".into())));
    }

    #[test]
    fn bits_end_with_one_that_is_set() {
        let bits = |words: &[&str]| KeyUsages::parse(words.iter().copied()).unwrap().of_the_key();
        assert_eq!(bits(&["client auth"]), None);
        assert_eq!(bits(&["digital signature", "key encipherment"]), Some(vec![3, 2, 5, 0xa0]));
        assert_eq!(bits(&["decipher only"]), Some(vec![3, 3, 7, 0, 0x80]));
    }

    #[test]
    fn two_words_for_one_use_are_one_use() {
        let extended = |words: &[&str]| KeyUsages::parse(words.iter().copied()).unwrap().extended();
        assert_eq!(extended(&["s/mime", "email protection"]), extended(&["s/mime"]));
        assert_eq!(extended(&["signing"]), None);
    }
}
