//! A fast hash of names that are part of the program, so that nobody can choose them to collide.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps with such names as keys.
pub(crate) type Quick = BuildHasherDefault<Words>;

/// Mixes in eight bytes at a time.
#[derive(Debug, Default)]
pub(crate) struct Words(u64);

impl Words {
    fn mix(&mut self, word: u64) {
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(SPREAD);
    }
}

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte));
        self.mix(last);
    }

    fn finish(&self) -> u64 {
        // The lowest bits choose the place in a map, and multiplying leaves them the least mixed.
        self.0 ^ self.0 >> 32
    }
}
