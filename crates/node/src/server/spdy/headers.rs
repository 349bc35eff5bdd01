//! Headers of streams: names and values, compressed with a dictionary that both sides know and a memory of what went before.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use std::io;

/// The dictionary that version 3 of the protocol defines.
const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");

/// What the headers of a stream may come to: those of Kubernetes have a hundred bytes.
const LARGEST: usize = 16 * 1024;

/// Names, in small letters, and values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::server) struct Headers(pub(super) Vec<(String, String)>);

impl Headers {
    /// The value of a header, by its name in small letters.
    pub(in crate::server) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The names and values in `block`.
    pub(super) fn parse(block: &[u8]) -> Option<Self> {
        let mut rest = block;
        let count = number(&mut rest)?;
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((text(&mut rest)?.to_ascii_lowercase(), text(&mut rest)?));
        }
        rest.is_empty().then_some(Self(headers))
    }

    /// The block that says the same.
    pub(super) fn encode(&self) -> Vec<u8> {
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        let mut block = number(self.0.len()).to_vec();
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            block.extend_from_slice(&number(text.len()));
            block.extend_from_slice(text.as_bytes());
        }
        block
    }
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*number)).ok()
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

/// Reads what the other side compressed, from the first block on.
pub(super) struct Inflater {
    zlib: Decompress,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self { zlib: Decompress::new(true) }
    }

    pub(super) fn inflate(&mut self, mut compressed: &[u8]) -> io::Result<Vec<u8>> {
        let mut block = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let (read, written) = (self.zlib.total_in(), self.zlib.total_out());
            let result = self.zlib.decompress(compressed, &mut buffer, FlushDecompress::Sync);
            let read = usize::try_from(self.zlib.total_in() - read).unwrap_or(compressed.len());
            let written = usize::try_from(self.zlib.total_out() - written).unwrap_or(buffer.len());
            compressed = compressed.get(read..).unwrap_or_default();
            block.extend_from_slice(&buffer[..written]);
            match result {
                Ok(_) => {}
                // It asks once, at the beginning.
                Err(error) if error.needs_dictionary().is_some() => {
                    self.zlib.set_dictionary(DICTIONARY).map_err(io::Error::other)?;
                    continue;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
            if block.len() > LARGEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the headers of a stream are too large",
                ));
            }
            if written < buffer.len() && (compressed.is_empty() || read == 0) {
                return Ok(block);
            }
        }
    }
}

/// Compresses for the other side, from the first block on.
pub(super) struct Deflater {
    zlib: Compress,
}

impl Deflater {
    pub(super) fn new() -> io::Result<Self> {
        let mut zlib = Compress::new(Compression::fast(), true);
        zlib.set_dictionary(DICTIONARY).map_err(io::Error::other)?;
        Ok(Self { zlib })
    }

    pub(super) fn deflate(&mut self, mut block: &[u8]) -> io::Result<Vec<u8>> {
        let mut compressed = Vec::new();
        let mut buffer = [0; 1024];
        loop {
            let (read, written) = (self.zlib.total_in(), self.zlib.total_out());
            self.zlib.compress(block, &mut buffer, FlushCompress::Sync).map_err(io::Error::other)?;
            let read = usize::try_from(self.zlib.total_in() - read).unwrap_or(block.len());
            let written = usize::try_from(self.zlib.total_out() - written).unwrap_or(buffer.len());
            block = block.get(read..).unwrap_or_default();
            compressed.extend_from_slice(&buffer[..written]);
            if written < buffer.len() {
                return Ok(compressed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_compressed_is_read_again_block_after_block() {
        let (mut deflater, mut inflater) = (Deflater::new().unwrap(), Inflater::new());
        for port in 0..20 {
            let long = "x".repeat(port * 300);
            let headers = Headers(vec![
                ("streamtype".into(), "data".into()),
                ("port".into(), port.to_string()),
                ("long".into(), long),
            ]);
            let compressed = deflater.deflate(&headers.encode()).unwrap();
            let read = Headers::parse(&inflater.inflate(&compressed).unwrap()).unwrap();
            assert_eq!(read, headers);
            assert_eq!(read.get("streamtype"), Some("data"));
        }
    }

    #[test]
    fn headers_that_grow_too_large_are_refused() {
        let (mut deflater, mut inflater) = (Deflater::new().unwrap(), Inflater::new());
        let bomb = deflater.deflate(&vec![0; 10_000_000]).unwrap();
        assert!(bomb.len() < 100_000);
        assert!(inflater.inflate(&bomb).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Inflater::new().inflate(&bytes);
            let _ = Headers::parse(&bytes);
        }
    }
}
