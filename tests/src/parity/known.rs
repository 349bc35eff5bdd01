//! Differences that are known and explained in docs/parity.md: a behaviour's name and why it differs.
//!
//! The suite fails for a difference that is not here, and for a row here that became equal.

const KNOWN: &[(&str, &str)] = &[
    (
        "lists: a token that is none",
        "a broken token's error quotes a character that is not UTF-8 differently",
    ),
    ("lists: a timeout that is no duration", "the timeout of a request is neither read nor checked"),
    (
        "update: no managed fields",
        "an empty list of managed fields is read as none, so owners are kept and not forgotten",
    ),
    ("apply: a key given twice", "a key given twice in applied YAML is taken without a warning"),
    ("deletion: with options that are a list", "the error about options that are no object has other words"),
    (
        "rules: estimated as too costly",
        "what a rule costs is bounded when it runs, and not estimated for its definition",
    ),
    ("paths: a check of health that there is not", "every path under a health endpoint answers ok"),
    (
        "paths: a group's version that there is not",
        "a group's unknown version is answered in plain text, not with a Status",
    ),
    ("paths: the old path of watches", "paths under /watch/, deprecated since 1.11, are not served"),
    (
        "bodies: a list of the kind",
        "lists of a kind are unknown to the decoder, so the error has other words",
    ),
    ("bodies: YAML that is none", "errors of YAML are worded by another parser"),
    (
        "accepted: any application",
        "a wildcard within application is taken as JSON, where the reference answers 406",
    ),
    ("accepted: something that there is not", "YAML and protobuf are not produced"),
    ("accepted: a transform that there is not", "the answer carries empty details"),
    ("Secret: TLS with empty keys", "certificates are not read, so nothing warns about a bad one"),
];

/// Why a behaviour is known to differ, if it is.
pub fn known(behaviour: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == behaviour).map(|(_, why)| *why)
}

/// The names of all behaviours that are known to differ.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}
