//! Who may lead, from what was seen of the lease. Pure.

use super::lease::Found;
use std::time::Duration;
use windlass_clock::Moment;

/// The lease in one version, and when that version was first seen here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sighting {
    /// Who holds it; empty for nobody.
    pub(super) holder: String,
    pub(super) version: String,
    /// How long it lasts without a change.
    pub(super) lasts: Duration,
    pub(super) transitions: i32,
    pub(super) since: Moment,
}

/// What a candidate does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// Takes the lease, or renews its own.
    Hold,
    /// The lease is another's, for no longer than this unless it changes.
    Wait(Moment),
}

/// What is known after looking at `now`. A version that was seen before keeps its time: only a change proves that its
/// holder is alive.
pub(super) fn sighted(
    known: Option<Sighting>,
    found: Option<Found>,
    now: Moment,
    lasts: Duration,
) -> Option<Sighting> {
    let found = found?;
    let since = known.filter(|known| known.version == found.version).map_or(now, |known| known.since);
    Some(Sighting {
        holder: found.holder,
        version: found.version,
        // What its holder promised, where it did.
        lasts: found.lasts.unwrap_or(lasts),
        transitions: found.transitions,
        since,
    })
}

pub(super) fn next(me: &str, observed: Option<&Sighting>, now: Moment) -> Step {
    let Some(observed) = observed else { return Step::Hold };
    let lapses = observed.since + observed.lasts;
    if observed.holder.is_empty() || observed.holder == me || now >= lapses {
        Step::Hold
    } else {
        Step::Wait(lapses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(15);

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(seconds)
    }

    fn found(holder: &str, version: &str) -> Option<Found> {
        Some(Found { holder: holder.into(), version: version.into(), lasts: None, transitions: 3 })
    }

    #[test]
    fn who_finds_no_lease_takes_it() {
        assert_eq!(next("me", None, at(0)), Step::Hold);
        let given_back = sighted(None, found("", "1"), at(0), LASTS);
        assert_eq!(next("me", given_back.as_ref(), at(0)), Step::Hold);
    }

    #[test]
    fn ones_own_is_renewed() {
        let mine = sighted(None, found("me", "1"), at(0), LASTS);
        assert_eq!(next("me", mine.as_ref(), at(1)), Step::Hold);
    }

    #[test]
    fn anothers_is_waited_for_until_it_did_not_change_for_as_long_as_it_lasts() {
        let first = sighted(None, found("other", "1"), at(10), LASTS);
        assert_eq!(next("me", first.as_ref(), at(10)), Step::Wait(at(25)));
        let again = sighted(first.clone(), found("other", "1"), at(20), LASTS);
        assert_eq!(next("me", again.as_ref(), at(24)), Step::Wait(at(25)));
        assert_eq!(next("me", again.as_ref(), at(25)), Step::Hold);
        let renewed = sighted(again, found("other", "2"), at(24), LASTS);
        assert_eq!(next("me", renewed.as_ref(), at(25)), Step::Wait(at(39)));
    }

    #[test]
    fn its_holders_word_on_how_long_it_lasts_counts() {
        let brief = found("other", "1").map(|found| Found { lasts: Some(Duration::from_secs(1)), ..found });
        let observed = sighted(None, brief, at(0), LASTS);
        assert_eq!(next("me", observed.as_ref(), at(0)), Step::Wait(at(1)));
    }
}
