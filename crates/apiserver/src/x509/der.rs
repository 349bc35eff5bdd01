//! DER, as far as certificates are written with it.

use windlass_clock::Timestamp;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// From this year on times have four digits for it.
const FOUR_DIGITS: i16 = 2050;

/// An element of DER: a tag, the length, and what is in it.
pub(super) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
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

/// The element of a tag that only its surroundings give a meaning.
pub(super) fn context(number: u8, parts: &[&[u8]]) -> Vec<u8> {
    element(0x80 | number, parts)
}

/// The same, of elements.
pub(super) fn constructed(number: u8, parts: &[&[u8]]) -> Vec<u8> {
    element(0xa0 | number, parts)
}

pub(super) fn time(time: Timestamp) -> Vec<u8> {
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC);
    match zoned.year() < FOUR_DIGITS {
        true => element(UTC_TIME, &[zoned.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()]),
        false => element(GENERALIZED_TIME, &[zoned.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()]),
    }
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
