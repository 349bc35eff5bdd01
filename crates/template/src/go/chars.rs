//! What Go knows of characters: by category, and with one character for each upper and lower case.

use std::sync::OnceLock;

struct Class(OnceLock<Vec<(char, char)>>, &'static str);

impl Class {
    fn contains(&self, c: char) -> bool {
        let ranges =
            self.0.get_or_init(|| match regex_syntax::parse(self.1).map(regex_syntax::hir::Hir::into_kind) {
                Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
                    class.ranges().iter().map(|range| (range.start(), range.end())).collect()
                }
                _ => Vec::new(),
            });
        let at = ranges.partition_point(|(_, end)| *end < c);
        ranges.get(at).is_some_and(|(start, _)| *start <= c)
    }
}

static LETTERS: Class = Class(OnceLock::new(), r"\p{L}");
static DIGITS: Class = Class(OnceLock::new(), r"\p{Nd}");
static PRINTED: Class = Class(OnceLock::new(), r"[\p{L}\p{M}\p{N}\p{P}\p{S} ]");

/// `unicode.IsLetter`
pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { LETTERS.contains(c) }
}

/// `unicode.IsDigit`
pub(crate) fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { DIGITS.contains(c) }
}

/// `unicode.IsPrint`
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() { !c.is_ascii_control() } else { PRINTED.contains(c) }
}

/// `unicode.IsSpace`
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace()
}

/// `unicode.ToUpper`: one character, where Rust may answer with several.
pub(crate) fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// `unicode.ToLower`
pub(crate) fn lower(c: char) -> char {
    if c == '\u{130}' {
        return 'i';
    }
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// `unicode.ToTitle`, which differs from upper case for four letters that are two.
pub(crate) fn title(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c,
        _ => upper(c),
    }
}

static PUNCTUATION: Class = Class(OnceLock::new(), r"\p{P}");

/// `unicode.IsPunct`, beyond ASCII
pub(crate) fn is_punctuation(c: char) -> bool {
    PUNCTUATION.contains(c)
}
