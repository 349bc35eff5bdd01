//! The timelines of data: each promotion begins another.

use crate::lsn::Lsn;

/// Which timelines some data is of, as a history file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timelines {
    /// Those that were left, the oldest first, each with the position up to which it counts.
    left: Vec<(u32, Lsn)>,
    last: u32,
}

impl Timelines {
    /// Of data that never saw a promotion, or whose history is not known.
    pub fn only(last: u32) -> Self {
        Self { left: Vec::new(), last }
    }

    /// What the history file of a timeline says. Lines that are none of a history are ignored, as PostgreSQL does with comments.
    pub fn of_history(last: u32, text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        Self { left: text.lines().filter_map(line).collect(), last }
    }

    /// The timeline of the data before a position. A replica knows of a timeline as soon as it connects; that it has any of its
    /// data, only its position says.
    pub fn at(&self, position: Lsn) -> u32 {
        self.left.iter().find(|(_, until)| position <= *until).map_or(self.last, |(timeline, _)| *timeline)
    }

    /// The latest that is known.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Those of a server that is promoted at a position.
    #[cfg(test)]
    pub(crate) fn promoted_at(&self, position: Lsn) -> Self {
        let mut left: Vec<(u32, Lsn)> =
            self.left.iter().copied().filter(|(_, until)| *until < position).collect();
        left.push((self.at(position), position));
        Self { left, last: self.last + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_of_the_timeline_that_it_was_written_on() {
        let text =
            "1\t0/5000098\tno recovery target specified\n\n2\t0/6000000\tno recovery target specified\n# x\n";
        let timelines = Timelines::of_history(3, text);
        let at = |text: &str| timelines.at(text.parse().unwrap());
        assert_eq!((at("0/1"), at("0/5000098"), at("0/5000099"), at("0/6000001")), (1, 1, 2, 3));
        assert_eq!(Timelines::only(7).at(Lsn(1)), 7);
        assert_eq!(Timelines::only(1).promoted_at(Lsn(9)).at(Lsn(10)), 2);
    }
}
