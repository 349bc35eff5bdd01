//! Slots that wait for their time, earliest first.
//!
//! A heap with four children per node (half as deep as with two, and siblings share cache lines), which knows where
//! each slot is: a key that is added again moves or leaves in O(log n), and nothing stale is ever left behind.

use super::lanes::{NONE, Slot};
use windlass_clock::Moment;

const CHILDREN: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    due: Moment,
    /// Among equal moments, who was queued first.
    number: u64,
    slot: Slot,
}

/// See the module's text.
pub(super) struct DueTimes {
    nodes: Vec<Node>,
    /// By slot: its node's index, or [`NONE`].
    positions: Vec<u32>,
    next_number: u64,
}

impl DueTimes {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), positions: Vec::new(), next_number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The earliest due moment, and whose it is.
    pub(super) fn first(&self) -> Option<(Moment, Slot)> {
        self.nodes.first().map(|node| (node.due, node.slot))
    }

    /// Adds `slot`, which is not waiting.
    pub(super) fn push(&mut self, slot: Slot, due: Moment) {
        let index = slot as usize;
        if index >= self.positions.len() {
            self.positions.resize(index + 1, NONE);
        }
        self.next_number += 1;
        self.nodes.push(Node { due, number: self.next_number, slot });
        self.rise(self.nodes.len() - 1);
    }

    /// Moves `slot`, which is waiting, to an earlier moment.
    pub(super) fn hasten(&mut self, slot: Slot, due: Moment) {
        let index = self.positions[slot as usize] as usize;
        self.nodes[index].due = due;
        self.rise(index);
    }

    /// Takes `slot`, which is waiting, out.
    pub(super) fn remove(&mut self, slot: Slot) {
        let index = self.positions[slot as usize] as usize;
        self.positions[slot as usize] = NONE;
        self.nodes.swap_remove(index);
        if index < self.nodes.len() {
            // What came from the end may belong above or below here.
            self.rise(index);
            self.sink(index);
        }
    }

    fn rise(&mut self, mut index: usize) {
        let node = self.nodes[index];
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.nodes[parent] < node {
                break;
            }
            self.put(index, self.nodes[parent]);
            index = parent;
        }
        self.put(index, node);
    }

    fn sink(&mut self, mut index: usize) {
        let node = self.nodes[index];
        loop {
            let first = index * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.nodes.len());
            let Some(least) = children.min_by_key(|child| self.nodes[*child]) else { break };
            if node < self.nodes[least] {
                break;
            }
            self.put(index, self.nodes[least]);
            index = least;
        }
        self.put(index, node);
    }

    fn put(&mut self, index: usize, node: Node) {
        self.nodes[index] = node;
        // There are never more nodes than slots, and slots are 32 bits.
        self.positions[node.slot as usize] = index as u32;
    }
}
