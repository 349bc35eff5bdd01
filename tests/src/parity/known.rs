//! Differences that are known and explained in docs/parity.md: a behaviour's name and why it differs.
//!
//! The suite fails for a difference that is not here, and for a row here that became equal.

const KNOWN: &[(&str, &str)] = &[
    (
        "lists: a token that is none",
        "a broken token's error quotes a character that is not UTF-8 differently",
    ),
    (
        "bad input: JSON with a number out of range",
        "a number that no float holds is refused before it is known where it stands",
    ),
    ("bad input: YAML with a tab", "errors of YAML are worded by another parser"),
    ("lists: a timeout that is no duration", "the timeout of a request is neither read nor checked"),
    (
        "update: no managed fields",
        "an empty list of managed fields is read as none, so owners are kept and not forgotten",
    ),
    ("apply: a key given twice", "a key given twice in applied YAML is taken without a warning"),
    ("deletion: with options that are a list", "the error about options that are no object has other words"),
    ("validation: a rule", "CEL rules are not evaluated yet: a definition with them is refused"),
    ("definitions: a pattern that is none", "errors of regular expressions are worded by another engine"),
    (
        "definitions: no version that is stored",
        "the error quotes the versions in the form of the API, not of Go's internal type",
    ),
    (
        "definitions: two versions that are stored",
        "the error quotes the versions in the form of the API, not of Go's internal type",
    ),
    (
        "definitions: the same version twice",
        "the error quotes the versions in the form of the API, not of Go's internal type",
    ),
    (
        "definitions: a version's name with a dot",
        "the old field spec.version is not reported beside spec.versions",
    ),
    (
        "definitions: a webhook without a place",
        "conversion by webhook is not supported: the definition is refused for that",
    ),
    (
        "definitions: a webhook's place with the strategy None",
        "the missing review versions are not reported beside the place",
    ),
    (
        "definitions: a selectable field that the schema does not have",
        "selectable fields are not checked against the schema",
    ),
    (
        "definitions: a selectable field in the metadata",
        "selectable fields are not checked against the schema",
    ),
    ("definitions: the group and its version in discovery", "discovery shows no hash of the storage version"),
    ("custom resources: scaled", "the scale subresource of custom resources is not served"),
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
