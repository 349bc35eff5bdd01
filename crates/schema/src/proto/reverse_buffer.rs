//! A buffer that is filled from its end to its start, so that a message is written before its length prefix.

/// A buffer that grows at its front.
pub(super) struct ReverseBuffer {
    bytes: Vec<u8>,
    /// Where what was written begins.
    start: usize,
}

impl ReverseBuffer {
    /// An empty buffer with a capacity of about this number of bytes.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], start: capacity }
    }

    /// How many bytes were written.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Puts bytes before all others.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            self.grow(bytes.len());
        }
        let end = self.start;
        self.start -= bytes.len();
        self.bytes[self.start..end].copy_from_slice(bytes);
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let more = needed.max(self.bytes.len()).max(64);
        let mut bytes = vec![0; self.bytes.len() + more];
        bytes[self.start + more..].copy_from_slice(&self.bytes[self.start..]);
        self.start += more;
        self.bytes = bytes;
    }

    pub(super) fn varint(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        while value >= 0x80 {
            bytes[length] = value as u8 | 0x80;
            value >>= 7;
            length += 1;
        }
        bytes[length] = value as u8;
        self.put(&bytes[..=length]);
    }

    /// A field's number and wire type.
    pub(super) fn tag(&mut self, number: u32, wire: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire));
    }

    /// Everything written since there were `before` bytes is the value of this field.
    pub(super) fn close(&mut self, number: u32, before: usize) {
        self.varint((self.len() - before) as u64);
        self.tag(number, super::wire::BYTES);
    }

    /// A field of bytes.
    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.put(bytes);
        self.varint(bytes.len() as u64);
        self.tag(number, super::wire::BYTES);
    }

    /// What was written, with no room to spare.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes[self.start..].to_vec()
    }
}
