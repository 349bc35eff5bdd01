//! What is written at once and holds at once or not at all: a header, and records under one checksum.
//!
//! ```text
//! 0  mark       4 bytes that no UTF-8 text contains
//! 4  length     of the payload, 8 bytes
//! 12 number     the first revision in it, or what else orders the frames of a file, 8 bytes
//! 20 count      of records, 4 bytes
//! 24 payload's checksum, 4 bytes
//! 28 header's checksum, 4 bytes
//! 32 payload
//! ```
//!
//! Both checksums start from the file's own number: what another file left on the disk is never taken for a frame.

use super::bytes::Reader;
use super::checksum::checksum;

const MARK: [u8; 4] = [0xFF, 0xFE, 0xFF, 0xF7];

/// How long a header is.
pub(super) const HEADER: usize = 32;

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: u64,
    pub(super) number: u64,
    pub(super) count: u32,
    payload: u32,
}

fn seed(file: u64) -> u32 {
    checksum(0, &file.to_le_bytes())
}

/// Starts a frame: records are appended to what it returns, and [`seal`] makes it whole.
pub(super) fn start() -> Vec<u8> {
    vec![0; HEADER]
}

/// Writes the header of a frame that [`start`] started.
pub(super) fn seal(frame: &mut [u8], file: u64, number: u64, count: u32) {
    let (header, payload) = frame.split_at_mut(HEADER);
    header[..4].copy_from_slice(&MARK);
    header[4..12].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[12..20].copy_from_slice(&number.to_le_bytes());
    header[20..24].copy_from_slice(&count.to_le_bytes());
    header[24..28].copy_from_slice(&checksum(seed(file), payload).to_le_bytes());
    let own = checksum(seed(file), &header[..28]);
    header[28..].copy_from_slice(&own.to_le_bytes());
}

/// Reads a header, if there is one whose checksum is right.
pub(super) fn header(bytes: &[u8], file: u64) -> Option<Header> {
    let bytes = bytes.get(..HEADER)?;
    if bytes[..4] != MARK {
        return None;
    }
    let mut reader = Reader(&bytes[4..]);
    let header =
        Header { length: reader.u64()?, number: reader.u64()?, count: reader.u32()?, payload: reader.u32()? };
    (reader.u32()? == checksum(seed(file), &bytes[..28])).then_some(header)
}

impl Header {
    /// Is this the payload that the header speaks of?
    pub(super) fn fits(&self, payload: &[u8], file: u64) -> bool {
        payload.len() as u64 == self.length && checksum(seed(file), payload) == self.payload
    }
}

/// The frame at the start of `bytes`, if there is a whole one.
pub(super) fn read(bytes: &[u8], file: u64) -> Option<(Header, &[u8])> {
    let header = header(bytes, file)?;
    let end = usize::try_from(header.length).ok()?.checked_add(HEADER)?;
    let payload = bytes.get(HEADER..end)?;
    header.fits(payload, file).then_some((header, payload))
}

/// Where in `bytes` the first header is, whether its payload is whole or not.
pub(super) fn find_header(bytes: &[u8], file: u64) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.windows(MARK.len()).position(|window| window == MARK)?;
        if header(&bytes[at..], file).is_some() {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = start();
        frame.extend_from_slice(payload);
        seal(&mut frame, 7, 3, 1);
        frame
    }

    #[test]
    fn a_frame_is_read_whole_or_not_at_all() {
        let whole = frame(b"payload");
        let (header, payload) = read(&whole, 7).unwrap();
        assert_eq!((header.number, header.count, payload), (3, 1, &b"payload"[..]));
        assert!(read(&whole, 8).is_none(), "it belongs to another file");
        for at in 0..whole.len() {
            assert!(read(&whole[..at], 7).is_none());
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(read(&damaged, 7).is_none());
        }
    }

    #[test]
    fn a_header_is_found_behind_anything() {
        let mut bytes = vec![0xFF, 0xFE, 0xFF, 0xFE, 0xFF];
        bytes.extend_from_slice(&MARK);
        let at = bytes.len();
        bytes.extend_from_slice(&frame(b"payload")[..HEADER + 2]);
        assert_eq!(find_header(&bytes, 7), Some(at));
        assert_eq!(find_header(&bytes, 8), None);
        assert_eq!(find_header(&[], 7), None);
    }
}
