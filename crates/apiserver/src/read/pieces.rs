//! A body of many pieces, most of which others have too: the objects of a list, which are sent as they are stored. It is
//! put together while it is sent, so that a client who does not read costs little.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// How much is put together at a time.
const CHUNK: usize = 64 * 1024;

/// Bytes, in pieces.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    length: usize,
}

impl Pieces {
    /// Adds to the end.
    pub(crate) fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        self.length += piece.len();
        self.pieces.push_back(piece);
    }

    /// How many bytes are left.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Is nothing left?
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The next bytes to send; none at the end.
    pub(crate) fn chunk(&mut self) -> Option<Bytes> {
        if self.length == 0 {
            return None;
        }
        let mut chunk = BytesMut::new();
        while let Some(piece) = self.pieces.front() {
            let whole = chunk.is_empty() && (piece.len() >= CHUNK || piece.len() == self.length);
            if whole || (!chunk.is_empty() && chunk.len() + piece.len() > CHUNK) {
                break;
            }
            if chunk.is_empty() {
                chunk.reserve(CHUNK.min(self.length));
            }
            chunk.extend_from_slice(piece);
            self.length -= piece.len();
            self.pieces.pop_front();
        }
        if !chunk.is_empty() {
            return Some(chunk.freeze());
        }
        // Large enough to be sent without a copy.
        let piece = self.pieces.pop_front()?;
        self.length -= piece.len();
        Some(piece)
    }

    /// All that is left, at once.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.length);
        self.pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        all.freeze()
    }
}

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        let mut pieces = Self::default();
        pieces.push(bytes);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Pieces};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_are_the_pieces_in_their_order_and_small_ones_go_together(
            sizes in proptest::collection::vec(prop_oneof![0..200_usize, 0..3 * CHUNK], 0..40),
        ) {
            let mut pieces = Pieces::default();
            for (number, size) in sizes.iter().enumerate() {
                pieces.push(vec![number as u8; *size]);
            }
            let (whole, largest) = (pieces.to_bytes(), sizes.iter().copied().max().unwrap_or(0));
            prop_assert_eq!(pieces.len(), whole.len());
            let mut sent = Vec::new();
            while let Some(chunk) = pieces.chunk() {
                prop_assert!(!chunk.is_empty() && chunk.len() <= CHUNK.max(largest));
                sent.extend_from_slice(&chunk);
                prop_assert_eq!(pieces.len(), whole.len() - sent.len());
            }
            prop_assert_eq!(sent, whole);
        }
    }
}
