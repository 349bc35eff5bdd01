//! A fact about the world outside the cluster, as far as it is known.

use serde::{Deserialize, Serialize};
use windlass_clock::Timestamp;

/// A fact about the world outside the cluster: known since a poll that went well, or unknown. Unknown is not absent: a
/// decision that needs it waits.
///
/// ```
/// use windlass::{Fact, Observed};
/// let observed = Observed::empty().with_fact("lag", 3).now_is("2026-01-01T00:00:00Z".parse().unwrap());
/// assert_eq!(observed.fact::<u32>("lag").unwrap().known(), Some(&3));
/// assert!(matches!(observed.fact::<u32>("size").unwrap(), Fact::Unknown { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fact<T> {
    /// It was polled.
    Known {
        /// What it is.
        value: T,
        /// When it was so.
        at: Timestamp,
    },
    /// It was not polled yet, or the last poll failed or took too long.
    Unknown {
        /// Why it is not known.
        why: String,
    },
}

impl<T> Fact<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    pub(crate) fn not_yet() -> Self {
        Self::Unknown { why: "it was not asked for yet".to_owned() }
    }
}

impl<T: PartialEq> Fact<T> {
    /// Whether a decision could tell the two apart: when it was polled, or how it failed, makes no difference.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.known() == other.known()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_value_is_news() {
        let known = |value, at| Fact::Known { value, at: Timestamp::from_second(at).unwrap() };
        let unknown = |why: &str| Fact::Unknown { why: why.to_owned() };
        assert!(known(1, 1).says_the_same(&known(1, 2)));
        assert!(!known(1, 1).says_the_same(&known(2, 1)));
        assert!(!known(1, 1).says_the_same(&unknown("gone")));
        assert!(unknown("late").says_the_same(&unknown("gone")));
    }
}
