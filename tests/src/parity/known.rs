//! Differences that are known and explained in docs/parity.md: a behaviour's name and why it differs.
//!
//! The suite fails for a difference that is not here, and for a row here that became equal.

const KNOWN: &[(&str, &str)] =
    &[("validation: a rule", "CEL rules are not evaluated yet: a definition with them is refused")];

/// Why a behaviour is known to differ, if it is.
pub fn known(behaviour: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == behaviour).map(|(_, why)| *why)
}
