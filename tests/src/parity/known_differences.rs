//! Known differences, which docs/parity.md explains: a behaviour's name and why it differs.
//!
//! The suite fails for a difference that is not here, and for a row here that became equal.

const KNOWN: &[(&str, &str)] = &[
    (
        "bad input: JSON with a number out of range",
        "a number that no float holds is refused before it is known where it stands",
    ),
    (
        "a request for a certificate is signed with nothing",
        "an empty certificate is no change: the reference writes the request once more",
    ),
];

/// Why a behaviour is known to differ, if it is.
pub fn known(behaviour: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == behaviour).map(|(_, why)| *why)
}

/// The names of all behaviours that are known to differ.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}
