//! Which slot a key has.
//!
//! A hash and its slot lie side by side, and those that meet follow each other: with a million keys every look is one line
//! of memory that is in no cache. Tables that keep hashes and values apart take two, and half as long again.

use super::lanes::{NONE, Slot};

#[derive(Debug, Clone, Copy)]
struct Cell {
    hash: u32,
    slot: Slot,
}

const EMPTY: Cell = Cell { hash: 0, slot: NONE };
const SMALLEST: usize = 8;

/// Slots by the hash of their keys, which are elsewhere.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// A power of two of them, a quarter empty at least; or none at all.
    cells: Vec<Cell>,
    len: usize,
}

impl Index {
    /// How many slots there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The slot with this hash that `is` the one.
    pub(super) fn find(&self, hash: u32, is: impl Fn(Slot) -> bool) -> Option<Slot> {
        self.position(hash, is).map(|at| self.cells[at].slot)
    }

    /// Adds a slot that is not there.
    pub(super) fn insert(&mut self, hash: u32, slot: Slot) {
        if (self.len + 1) * 4 > self.cells.len() * 3 {
            let larger = vec![EMPTY; SMALLEST.max(self.cells.len() * 2)];
            for cell in std::mem::replace(&mut self.cells, larger) {
                if cell.slot != NONE {
                    self.put(cell);
                }
            }
        }
        self.put(Cell { hash, slot });
        self.len += 1;
    }

    /// Removes a slot, if it is there.
    pub(super) fn remove(&mut self, hash: u32, slot: Slot) {
        let Some(mut hole) = self.position(hash, |other| other == slot) else { return };
        let mask = self.cells.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let cell = self.cells[at];
            if cell.slot == NONE {
                break;
            }
            // What was put behind the hole only because it was taken moves into it; what is at home behind it stays.
            let from_home = at.wrapping_sub(cell.hash as usize) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.cells[hole] = cell;
                hole = at;
            }
        }
        self.cells[hole] = EMPTY;
        self.len -= 1;
    }

    fn position(&self, hash: u32, is: impl Fn(Slot) -> bool) -> Option<usize> {
        let mask = self.cells.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let cell = self.cells[at];
            if cell.slot == NONE {
                return None;
            }
            if cell.hash == hash && is(cell.slot) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts a cell into the first empty place from its home on; there is one.
    fn put(&mut self, cell: Cell) {
        let mask = self.cells.len() - 1;
        let mut at = cell.hash as usize & mask;
        while self.cells[at].slot != NONE {
            at = (at + 1) & mask;
        }
        self.cells[at] = cell;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_knows_what_was_put_there_and_not_removed(
            // Few hashes, so that they meet, also around the end.
            changes in proptest::collection::vec((0..40_u32, any::<bool>()), 0..200),
            hashes in proptest::collection::vec(prop_oneof![0..4_u32, 6..9_u32, any::<u32>()], 40),
        ) {
            let mut index = Index::default();
            let mut model = BTreeMap::new();
            for (slot, add) in changes {
                let hash = hashes[slot as usize];
                match add {
                    true if model.insert(slot, hash).is_none() => index.insert(hash, slot),
                    true => {}
                    false => {
                        model.remove(&slot);
                        index.remove(hash, slot);
                    }
                }
                prop_assert_eq!(index.len(), model.len());
                for slot in 0..40 {
                    let found = index.find(hashes[slot as usize], |other| other == slot);
                    prop_assert_eq!(found, model.contains_key(&slot).then_some(slot));
                }
            }
        }
    }
}
