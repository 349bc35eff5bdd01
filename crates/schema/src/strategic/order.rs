//! The order of a merged list: the patch's items as the patch has them, the others as they were, interleaved as far as
//! the old order tells.

use serde_json::Value;
use std::collections::HashMap;

/// An item and what it is known by.
pub(super) struct Known {
    pub(super) id: String,
    pub(super) item: Value,
}

/// Where each id comes first.
pub(super) struct Places(HashMap<String, usize>);

impl Places {
    pub(super) fn new(ids: impl IntoIterator<Item = String>) -> Self {
        let mut places = HashMap::new();
        for (place, id) in ids.into_iter().enumerate() {
            places.entry(id).or_insert(place);
        }
        Self(places)
    }

    pub(super) fn get(&self, id: &str) -> Option<usize> {
        self.0.get(id).copied()
    }
}

/// What tells a scalar from all others, its type included.
pub(super) fn id(value: &Value) -> String {
    // Unlike the API's own writer, this tells 1.0 from 1.
    value.to_string()
}

/// Splits the items of `merged` into those that `patch` has and the rest, and puts both in order: the first by `patch`,
/// the rest by `live`, which also decides between the two.
pub(super) fn arrange(merged: Vec<Known>, patch: &Places, live: &Places) -> Vec<Value> {
    let (mut patched, mut others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|known| patch.get(&known.id).is_some());
    sort(&mut patched, patch);
    sort(&mut others, live);
    interleave(others, patched, live)
}

/// The reference sorts by insertion, and takes an item for less than another where either has no place. Long lists it
/// sorts in pieces: there such items just go first.
fn sort(items: &mut [Known], places: &Places) {
    const LONG: usize = 20;
    let all_placed = items.iter().all(|known| places.get(&known.id).is_some());
    if all_placed || items.len() > LONG {
        items.sort_by_key(|known| places.get(&known.id));
        return;
    }
    for next in 1..items.len() {
        for at in (1..=next).rev() {
            let (this, before) = (places.get(&items[at].id), places.get(&items[at - 1].id));
            if this.zip(before).is_some_and(|(this, before)| this >= before) {
                break;
            }
            items.swap(at, at - 1);
        }
    }
}

/// Both lists keep their order; an item of `left` goes before one of `right` only if `places` knows that it does.
fn interleave(left: Vec<Known>, right: Vec<Known>, places: &Places) -> Vec<Value> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    for known in right {
        let place = places.get(&known.id);
        let before = |other: &Known| match (places.get(&other.id), place) {
            (Some(other), Some(this)) => other < this,
            _ => false,
        };
        while let Some(other) = left.next_if(before) {
            all.push(other.item);
        }
        all.push(known.item);
    }
    all.extend(left.map(|known| known.item));
    all
}
