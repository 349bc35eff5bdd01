//! Escaped property names, as expressions spell them: `a-b` is `a__dash__b`, `namespace` is `__namespace__`.

use super::parse::{RESERVED, WORDS};
use std::borrow::Cow;

const ESCAPES: [(&str, &str); 4] = [("__", "underscores"), (".", "dot"), ("-", "dash"), ("/", "slash")];

/// Is it a word of the language?
pub(super) fn is_reserved(name: &str) -> bool {
    WORDS.contains(&name) || RESERVED.contains(&name)
}

/// The name in an expression; none for one that cannot be spelt.
pub(super) fn escape(name: &str) -> Option<Cow<'_, str>> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(fits) {
        return None;
    }
    if is_reserved(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if !name.contains("__") && !name.contains(['.', '-', '/']) {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        match ESCAPES.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((sign, word)) => {
                escaped.push_str(&format!("__{word}__"));
                rest = &rest[sign.len()..];
            }
            None => {
                escaped.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Some(Cow::Owned(escaped))
}

/// The property's own name; none where something is escaped that is never.
pub(super) fn unescape(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut plain = String::new();
    let mut rest = name;
    while let Some(start) = rest.find("__") {
        let inner = &rest[start + 2..];
        let Some(length) = inner.find('_').filter(|end| *end > 0 && inner[*end..].starts_with("__")) else {
            let kept = start + 1;
            plain.push_str(&rest[..kept]);
            rest = &rest[kept..];
            continue;
        };
        let word = &inner[..length];
        let sign = ESCAPES.iter().find(|(_, known)| *known == word).map(|(sign, _)| *sign);
        let reserved = (is_reserved(word) && name.len() == word.len() + 4).then_some(word);
        plain.push_str(&rest[..start]);
        plain.push_str(sign.or(reserved)?);
        rest = &inner[length + 2..];
    }
    plain.push_str(rest);
    Some(Cow::Owned(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        for (name, escaped) in [
            ("a", "a"),
            ("_a_b_", "_a_b_"),
            ("namespace", "__namespace__"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("a__b", "a__underscores__b"),
            ("x_-y", "x___dash__y"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(escaped));
            assert_eq!(unescape(escaped).as_deref(), Some(name), "{escaped}");
        }
        for name in ["", "1a", "a b", "$x"] {
            assert_eq!(escape(name), None);
        }
        assert_eq!(unescape("a__int__b"), None);
        assert_eq!(unescape("a__if__b"), None);
    }
}
