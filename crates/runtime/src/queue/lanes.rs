//! Slots that are ready, in one first-in-first-out lane per priority.
//!
//! Lanes are linked lists through one array indexed by slot: joining, leaving from the middle and taking the first of
//! the highest lane each touch a fixed number of cells, and allocate only when the array grows. One more such list has
//! the slots that are idle.

use super::priority::Priority;

/// Where an entry lives in the queue's storage.
pub(super) type Slot = u32;

/// No slot: the end of a lane. Storage stops growing before it would be one.
pub(super) const NONE: Slot = Slot::MAX;

const LANES: usize = 256;

#[derive(Clone, Copy)]
struct Lane {
    first: Slot,
    last: Slot,
    len: u32,
}

const EMPTY: Lane = Lane { first: NONE, last: NONE, len: 0 };

#[derive(Clone, Copy)]
struct Link {
    before: Slot,
    after: Slot,
}

/// See the module's text.
pub(super) struct Lanes {
    lanes: Box<[Lane; LANES]>,
    /// One bit per lane that is not empty, so that the highest is found in four looks.
    busy: [u64; LANES / 64],
    idle: Lane,
    links: Vec<Link>,
    len: usize,
}

impl Lane {
    fn push(&mut self, links: &mut Vec<Link>, slot: Slot) {
        let index = slot as usize;
        if index >= links.len() {
            links.resize(index + 1, Link { before: NONE, after: NONE });
        }
        links[index] = Link { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = slot,
            last => links[last as usize].after = slot,
        }
        self.last = slot;
        self.len += 1;
    }

    fn remove(&mut self, links: &mut [Link], slot: Slot) {
        let Link { before, after } = links[slot as usize];
        match before {
            NONE => self.first = after,
            before => links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => links[after as usize].before = before,
        }
        self.len -= 1;
    }
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            lanes: Box::new([EMPTY; LANES]),
            busy: [0; LANES / 64],
            idle: EMPTY,
            links: Vec::new(),
            len: 0,
        }
    }

    /// How many slots are ready.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds `slot`, which is in no list, at the end of its priority's lane.
    pub(super) fn push(&mut self, slot: Slot, priority: Priority) {
        let rank = priority.rank();
        self.lanes[rank].push(&mut self.links, slot);
        self.busy[rank / 64] |= 1 << (rank % 64);
        self.len += 1;
    }

    /// Takes `slot` out of the lane of `priority`, where it is.
    pub(super) fn remove(&mut self, slot: Slot, priority: Priority) {
        let rank = priority.rank();
        let lane = &mut self.lanes[rank];
        lane.remove(&mut self.links, slot);
        if lane.len == 0 {
            self.busy[rank / 64] &= !(1 << (rank % 64));
        }
        self.len -= 1;
    }

    /// Adds `slot`, which is in no list, to those that are idle.
    pub(super) fn rest(&mut self, slot: Slot) {
        self.idle.push(&mut self.links, slot);
    }

    /// Takes `slot`, which is idle, to be used again.
    pub(super) fn rouse(&mut self, slot: Slot) {
        self.idle.remove(&mut self.links, slot);
    }

    /// The slot that has been idle for longest.
    pub(super) fn longest_idle(&self) -> Option<Slot> {
        (self.idle.first != NONE).then_some(self.idle.first)
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.idle.len as usize
    }

    /// The first slot of the highest lane that has any; it stays there.
    pub(super) fn first(&self) -> Option<(Slot, Priority)> {
        let (word, bits) = self.busy.iter().enumerate().rev().find(|(_, bits)| **bits != 0)?;
        let rank = word * 64 + bits.ilog2() as usize;
        Some((self.lanes[rank].first, priority_at(rank)))
    }

    /// The lanes that are not empty, highest first: their priority, length and first slot.
    pub(super) fn busy(&self) -> impl Iterator<Item = (Priority, usize, Slot)> {
        let lanes = self.lanes.iter().enumerate().rev().filter(|(_, lane)| lane.len > 0);
        lanes.map(|(rank, lane)| (priority_at(rank), lane.len as usize, lane.first))
    }
}

fn priority_at(rank: usize) -> Priority {
    Priority::of_rank(u8::try_from(rank).expect("there are 256 lanes"))
}
