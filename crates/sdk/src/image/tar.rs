//! Archives of plain files as tar has them, with nothing in their headers that differs from day to day.

/// Everything in an archive begins and ends at one of these.
const BLOCK: usize = 512;

/// An archive that grows.
pub(super) struct Archive(Vec<u8>);

impl Archive {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a file of root's, from the beginning of time.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        debug_assert!(path.len() < 100, "longer names need a prefix");
        let mut header = [0; BLOCK];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, path);
        put(100, &format!("{mode:07o}"));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{:011o}", content.len()));
        put(136, "00000000000");
        // The sum is taken with blanks in its own place.
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    /// The whole archive.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}
