//! Validates the names that authors choose, and turns them into paths, modules and variables.

use super::ScaffoldError;

/// Words that Rust keeps to itself, now or later.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield", "union",
];

/// Types that are everywhere in Rust, or in the file of every kind: one of the same name would hide them.
const TAKEN: [&str; 35] = [
    "Self",
    "Option",
    "Some",
    "None",
    "Result",
    "Ok",
    "Err",
    "Vec",
    "String",
    "Box",
    "Default",
    "Clone",
    "Copy",
    "Send",
    "Sync",
    "Sized",
    "Drop",
    "Fn",
    "FnMut",
    "FnOnce",
    "Iterator",
    "IntoIterator",
    "Extend",
    "Eq",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "From",
    "Into",
    "AsRef",
    "Condition",
    "CustomResource",
    "JsonSchema",
    "Serialize",
    "Deserialize",
];

/// Modules that a project has anyway, or that would hide a crate.
const MODULES: [&str; 14] = [
    "api",
    "controller",
    "generated",
    "main",
    "lib",
    "mod",
    "windlass",
    "kube",
    "serde",
    "serde_json",
    "schemars",
    "tokio",
    "std",
    "core",
];

/// Whether Rust keeps this word to itself.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Whether it is a DNS label: what names of objects, groups and plurals consist of.
fn is_label(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !name.is_empty()
        && name.len() <= 63
        && name.starts_with(edge)
        && name.ends_with(edge)
        && name.chars().all(|c| edge(c) || c == '-')
}

/// The project's name, which is also that of its crate, its image and its namespace.
///
/// # Errors
/// When it cannot be all of these.
pub fn project(name: &str) -> Result<(), ScaffoldError> {
    let why = if !is_label(name) || name.len() > 50 {
        "use lower-case letters, digits and dashes, 50 at most, and begin and end with a letter or digit"
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        "a crate's name begins with a letter"
    } else if is_keyword(name) || MODULES.contains(&name.replace('-', "_").as_str()) || name == "test" {
        "Rust, or a crate that operators use, has that name; add -operator to it"
    } else {
        return Ok(());
    };
    Err(ScaffoldError::name("project name", name, why))
}

/// The domain that all groups end with.
///
/// # Errors
/// When it is no DNS name with at least one dot.
pub fn domain(domain: &str) -> Result<(), ScaffoldError> {
    let why = if domain.len() > 200 || !domain.split('.').all(is_label) {
        "it is a DNS name such as example.com, in lower case"
    } else if !domain.contains('.') {
        "a group needs a dot: use one that you own, such as example.com"
    } else if domain.ends_with(".k8s.io")
        || domain.ends_with(".kubernetes.io")
        || domain == "k8s.io"
        || domain == "kubernetes.io"
    {
        "groups of that domain belong to Kubernetes, which asks for an approval of each; use one that you own"
    } else {
        return Ok(());
    };
    Err(ScaffoldError::name("domain", domain, why))
}

/// A group, without the domain; empty for the domain alone.
///
/// # Errors
/// When it is not made of DNS labels, or looks like a version.
pub fn group(group: &str) -> Result<(), ScaffoldError> {
    let why = if group.is_empty() {
        return Ok(());
    } else if group.len() > 100 || !group.split('.').all(is_label) {
        "it is a DNS label such as cache, in lower case; the domain is added to it"
    } else if is_version(group) {
        "that is a version; --version takes it"
    } else {
        return Ok(());
    };
    Err(ScaffoldError::name("group", group, why))
}

fn is_version(version: &str) -> bool {
    let number = |text: &str| {
        !text.is_empty()
            && text.len() <= 5
            && !text.starts_with('0')
            && text.chars().all(|c| c.is_ascii_digit())
    };
    let Some(rest) = version.strip_prefix('v') else { return false };
    match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => number(major) && number(minor),
        None => number(rest),
    }
}

/// A version.
///
/// # Errors
/// When it is not one of those that Kubernetes puts in order.
pub fn version(version: &str) -> Result<(), ScaffoldError> {
    match is_version(version) {
        true => Ok(()),
        false => Err(ScaffoldError::name("version", version, "it is one like v1, v1beta1 or v1alpha1")),
    }
}

/// A kind.
///
/// # Errors
/// When it is not in CamelCase, or a type of that name could not be in Rust.
pub fn kind(kind: &str) -> Result<(), ScaffoldError> {
    let why = if TAKEN.contains(&kind) {
        "Rust has a type of that name that all code uses; use a longer one, such as with the application's name before it"
    } else if !kind.starts_with(|c: char| c.is_ascii_uppercase())
        || !kind.chars().all(|c| c.is_ascii_alphanumeric())
    {
        "it is in CamelCase, such as Memcached or BackupPolicy: letters and digits, the first a capital"
    } else if kind.len() > 50 {
        "50 letters are the most"
    } else if kind.ends_with("List") && kind.len() > 4 {
        "Kubernetes names the lists of a kind so; leave out List"
    } else {
        return Ok(());
    };
    Err(ScaffoldError::name("kind", kind, why))
}

/// A plural.
///
/// # Errors
/// When it is no DNS label.
pub fn plural(plural: &str) -> Result<(), ScaffoldError> {
    match is_label(plural) && plural.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => Ok(()),
        false => Err(ScaffoldError::name(
            "plural",
            plural,
            "it is a DNS label such as memcacheds: lower case, a letter first",
        )),
    }
}

/// What a second controller is called, after its kind.
///
/// # Errors
/// When it is no DNS label.
pub fn concern(name: &str) -> Result<(), ScaffoldError> {
    match is_label(name) && name.len() <= 30 && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => Ok(()),
        false => Err(ScaffoldError::name(
            "controller name",
            name,
            "it is a DNS label such as backup, 30 letters at most",
        )),
    }
}

/// `HTTPRoute` as `http_route`: as a module, a file, a variable. A keyword gets an underscore.
pub(super) fn snake(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut name = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || letters.get(at + 1).is_some_and(char::is_ascii_lowercase)
            });
        if begins_word {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    unkeyed(name)
}

/// A group or a dashed name as a module.
pub(super) fn module(name: &str) -> String {
    let name = name.replace(['-', '.'], "_");
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => unkeyed(name),
    }
}

fn unkeyed(name: String) -> String {
    match is_keyword(&name) {
        true => name + "_",
        false => name,
    }
}

/// `nightly-backup` as `NightlyBackup`: as a condition.
pub(super) fn camel(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
            .unwrap_or_default()
    };
    name.split('-').map(capital).collect()
}

/// `BackupPolicy` as `backup policy`: in sentences.
pub(super) fn words(kind: &str) -> String {
    snake(kind).trim_end_matches('_').replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_a_way_out() {
        for (refused, part) in [
            (kind("Self"), "longer"),
            (kind("Option"), "longer"),
            (kind("memcached"), "CamelCase"),
            (kind("My-Kind"), "CamelCase"),
            (kind("Größe"), "CamelCase"),
            (kind(""), "CamelCase"),
            (kind("ThingList"), "lists"),
            (group("Cache"), "lower case"),
            (group("cache_1"), "lower case"),
            (group("-cache"), "lower case"),
            (group("v1"), "version"),
            (version("1"), "v1"),
            (version("v0"), "v1"),
            (version("v1alpha"), "v1"),
            (version("v1gamma1"), "v1"),
            (domain("example"), "dot"),
            (domain("apps.k8s.io"), "Kubernetes"),
            (domain("Example.com"), "lower case"),
            (project("Memcached"), "lower-case"),
            (project("9lives"), "letter"),
            (project("windlass"), "-operator"),
            (project("type"), "-operator"),
            (project(""), "lower-case"),
            (plural("Things"), "lower case"),
            (concern("a b"), "label"),
        ] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        for fine in [kind("Type"), kind("HTTPRoute"), kind("X1"), group(""), group("cache"), group("a.b-c")] {
            fine.unwrap();
        }
        for fine in [version("v1"), version("v2beta10"), domain("example.com"), project("memcached-operator")]
        {
            fine.unwrap();
        }
    }

    #[test]
    fn kinds_become_modules() {
        for (kind, module) in [
            ("Memcached", "memcached"),
            ("HTTPRoute", "http_route"),
            ("BackupPolicy", "backup_policy"),
            ("Type", "type_"),
            ("OAuth2Client", "o_auth2_client"),
            ("X1", "x1"),
            ("DNS", "dns"),
        ] {
            assert_eq!(snake(kind), module);
        }
        assert_eq!(module("a.b-c"), "a_b_c");
        assert_eq!(module("match"), "match_");
        assert_eq!(camel("nightly-backup"), "NightlyBackup");
    }
}
