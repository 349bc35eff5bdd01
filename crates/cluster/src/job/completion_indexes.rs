//! Sets of completion indexes, in the format of a Job's status: `0-2,5,7`.

use std::fmt;

/// A set of indexes, as ordered ranges that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads what a status or a policy says, as far as it is below `completions`. What cannot be read is passed over.
    pub(super) fn read(text: &str, completions: u32) -> Self {
        let range = |part: &str| -> Option<(u32, u32)> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
            (first < completions && first <= last).then(|| (first, last.min(completions - 1)))
        };
        Self::of(text.split(',').filter_map(range).collect())
    }

    fn of(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// With these as well.
    #[must_use]
    pub(super) fn with(&self, more: impl IntoIterator<Item = u32>) -> Self {
        let more = more.into_iter().map(|index| (index, index));
        Self::of(self.0.iter().copied().chain(more).collect())
    }

    /// With those of another set.
    #[must_use]
    pub(super) fn and(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(super) fn total(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn has(&self, index: u32) -> bool {
        let place = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(place).is_some_and(|(first, _)| *first <= index)
    }

    /// How many are in both.
    pub(super) fn common(&self, other: &Self) -> u32 {
        let overlap = |(first, last): &(u32, u32)| {
            let shared = other.0.iter().map(|(from, to)| {
                let (from, to) = (from.max(first), to.min(last));
                (to + 1).saturating_sub(*from)
            });
            shared.sum::<u32>()
        };
        self.0.iter().map(overlap).sum()
    }

    /// The first `count` below `completions` that are not in it.
    pub(super) fn gaps(&self, completions: u32, count: usize) -> Vec<u32> {
        let mut gaps = Vec::new();
        let mut next = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, completions)]) {
            let room = count - gaps.len();
            gaps.extend((next..completions.min(first)).take(room));
            next = next.max(last.saturating_add(1));
        }
        gaps
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn they_are_written_as_short_as_can_be() {
        let written = |indexes: &[u32]| Indexes::default().with(indexes.iter().copied()).to_string();
        assert_eq!(written(&[]), "");
        assert_eq!(written(&[3, 1, 2, 7, 5, 8]), "1-3,5,7,8");
        assert_eq!(Indexes::read("1-3,x,5,7,8-20", 10).to_string(), "1-3,5,7-9");
    }

    proptest! {
        #[test]
        fn they_are_a_set(one in proptest::collection::btree_set(0u32..40, 0..20), other in proptest::collection::btree_set(0u32..40, 0..20)) {
            let make = |set: &BTreeSet<u32>| Indexes::default().with(set.iter().copied());
            let (a, b) = (make(&one), make(&other));
            prop_assert_eq!(Indexes::read(&a.to_string(), 40), a.clone());
            prop_assert_eq!(a.total() as usize, one.len());
            prop_assert_eq!(a.common(&b) as usize, one.intersection(&other).count());
            let union: BTreeSet<u32> = one.union(&other).copied().collect();
            prop_assert_eq!(a.and(&b), make(&union));
            prop_assert!((0..41).all(|index| a.has(index) == one.contains(&index)));
            let gaps: Vec<u32> = (0..40).filter(|index| !one.contains(index)).take(7).collect();
            prop_assert_eq!(a.gaps(40, 7), gaps);
        }
    }
}
