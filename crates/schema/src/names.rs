//! Validation of names, labels and qualified keys, with Kubernetes' error texts.

use crate::field::{FieldError, Path};
use std::net::{IpAddr, Ipv4Addr};

/// What a kind's names must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// `a.b-c`: most kinds.
    Subdomain,
    /// `a-b`, which may begin with a digit: namespaces.
    Label,
    /// `a-b`, which begins with a letter: services.
    Label1035,
    /// Anything that fits into a path: RBAC's kinds, and what is inside embedded resources.
    PathSegment,
    /// An IP address in the form that is its own: IPAddresses.
    Address,
}

impl NameRule {
    /// What is wrong with a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label => label(name),
            Self::Label1035 => label_1035(name),
            Self::PathSegment => path_segment(name, false),
            Self::Address => address(name),
        }
    }

    /// What is wrong with a `generateName`, which may end in a dash.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => return path_segment(prefix, true),
            Self::Address => return address(prefix),
            _ => {}
        }
        match prefix.as_bytes() {
            // The dash and the byte before it are hidden, as the real server does.
            [head @ .., _, b'-'] => self.check(&format!("{}a", String::from_utf8_lossy(head))),
            _ => self.check(prefix),
        }
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                          and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                               start with an alphabetic character, and end with an alphanumeric character";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
                        and must start and end with an alphanumeric character";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";

/// Names are measured in characters and the parts of labels in bytes, or so the messages say.
fn too_long(max: usize, unit: &str) -> String {
    format!("must be no more than {max} {unit}")
}

fn mismatch(rule: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// One or more bytes that fit `inner`, of which the first and the last fit `edge`.
fn shaped(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if edge(first) && edge(last))
        && bytes.iter().all(|&byte| inner(byte))
}

fn is_label(text: &str) -> bool {
    shaped(text, lower_alphanumeric, |byte| lower_alphanumeric(byte) || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// An address of either family, written as it is written by everybody.
fn address(text: &str) -> Vec<String> {
    let Ok(known) = text.parse::<IpAddr>() else {
        let plain = text
            .split('.')
            .map(|part| part.parse::<u8>().map_or_else(|_| part.to_owned(), |part| part.to_string()));
        let plain = plain.collect::<Vec<_>>().join(".");
        return vec![match plain.parse::<Ipv4Addr>() {
            Ok(_) => "must not have leading 0s".to_owned(),
            Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
        }];
    };
    if matches!(known, IpAddr::V6(known) if known.to_ipv4_mapped().is_some()) {
        return vec!["must not be an IPv4-mapped IPv6 address".to_owned()];
    }
    let own = known.to_string();
    if own == text { Vec::new() } else { vec![format!("must be in canonical form ({own:?})")] }
}

/// A DNS label of RFC 1123.
pub fn label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63, "characters"));
    }
    if !is_label(text) {
        wrong.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            mismatch(LABEL_RULE, LABEL, &["my-name", "123-abc"])
        });
    }
    wrong
}

/// A path below a domain, such as `acme.io/foo`.
pub fn domain_prefixed_path(path: &Path, text: &str) -> Vec<FieldError> {
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let Some((domain, below)) =
        text.split_once('/').filter(|(domain, below)| !domain.is_empty() && !below.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(path, text, why)];
    };
    let mut wrong: Vec<FieldError> =
        subdomain(domain).into_iter().map(|why| FieldError::invalid(path, domain, why)).collect();
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !below.bytes().all(is_path) {
        let why = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        wrong.push(FieldError::invalid(path, below, why));
    }
    wrong
}

/// A DNS subdomain of RFC 1123.
pub fn subdomain(text: &str) -> Vec<String> {
    subdomain_in(text, "characters")
}

fn subdomain_in(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_long(253, unit));
    }
    if !is_subdomain(text) {
        wrong.push(mismatch(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

/// A DNS label of RFC 1035.
pub fn label_1035(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63, "characters"));
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        wrong.push(mismatch(LABEL_1035_RULE, LABEL_1035, &["my-name", "abc-123"]));
    }
    wrong
}

/// What keeps a text from being a part of a path; one that is only the beginning of a name may be dots.
pub fn path_segment(text: &str, prefix: bool) -> Vec<String> {
    if !prefix && (text == "." || text == "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|illegal| text.contains(**illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

fn is_key_name(text: &str) -> bool {
    shaped(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte),
    )
}

/// A qualified name, `name` or `prefix/name`: the keys of labels and annotations, finalizers.
pub fn qualified(text: &str) -> Vec<String> {
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                mismatch(KEY_RULE, KEY, EXAMPLES)
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            wrong.extend(subdomain_in(prefix, "bytes").into_iter().map(|why| format!("prefix part {why}")))
        }
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", too_long(63, "bytes")));
    }
    if !is_key_name(name) {
        wrong.push(format!("name part {}", mismatch(KEY_RULE, KEY, EXAMPLES)));
    }
    wrong
}

/// A label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63, "bytes"));
    }
    if !text.is_empty() && !is_key_name(text) {
        wrong.push(mismatch(VALUE_RULE, VALUE, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        for (rule, good, bad) in [
            (NameRule::Subdomain, vec!["a", "a.b-c", "1.2"], vec!["", "A", "a..b", "-a", "a-", "a_b"]),
            (NameRule::Label, vec!["a", "1-a"], vec!["", "a.b", "a-"]),
            (NameRule::Label1035, vec!["a", "a-1"], vec!["", "1a", "a.b"]),
            (
                NameRule::Address,
                vec!["10.0.0.1", "2001:db8::1"],
                vec!["", "a", "10.0.0.01", "::ffff:1.2.3.4", "2001:DB8::1"],
            ),
            (NameRule::PathSegment, vec!["a:b", "A B", ""], vec![".", "..", "a/b", "a%b"]),
        ] {
            for name in good {
                assert!(rule.check(name).is_empty(), "{rule:?} {name}");
            }
            for name in bad {
                assert!(!rule.check(name).is_empty(), "{rule:?} {name}");
            }
        }
        assert!(NameRule::Subdomain.check_prefix("a-").is_empty());
        assert!(!NameRule::Subdomain.check_prefix("-").is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(qualified("/a"), ["prefix part must be non-empty"]);
        assert!(qualified("a/b/c")[0].starts_with("a valid label key must consist"));
    }
}
