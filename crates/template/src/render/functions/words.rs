//! Sprig's functions on words: abbreviations, wrapping and letter case.

use super::{Context, Row, integer, lossy, text};
use crate::go::chars::{is_digit, is_letter, is_space, lower, title, upper};
use crate::render::exec::Run;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("abbrev", "is>s", |_, given| {
        let width = integer(given, 0);
        Ok(if width < 4 { text(given, 1).into() } else { Value::str(abbreviate(text(given, 1), 0, width)) })
    }),
    ("abbrevboth", "iis>s", |_, given| {
        let (left, right) = (integer(given, 0), integer(given, 1));
        let text = text(given, 2);
        Ok(if right < 4 || left > 0 && right < 7 {
            text.into()
        } else {
            Value::str(abbreviate(text, left, right))
        })
    }),
    ("title", "s>s", |_, given| Ok(titled(&lossy(given, 0)).into())),
    ("untitle", "s>s", |_, given| {
        let mut start = true;
        let change = |c| {
            let first = std::mem::replace(&mut start, is_space(c));
            if first && !is_space(c) { lower(c) } else { c }
        };
        Ok(lossy(given, 0).chars().map(change).collect::<String>().into())
    }),
    ("initials", "s>s", |_, given| {
        // Byte by byte, as goutils does it.
        let mut gap = true;
        let mut out = String::new();
        for c in text(given, 0).iter().map(|byte| char::from(*byte)) {
            if is_space(c) {
                gap = true;
            } else if std::mem::take(&mut gap) {
                out.push(c);
            }
        }
        Ok(out.into())
    }),
    ("nospace", "s>s", |_, given| {
        let text = text(given, 0);
        let kept: String = text.iter().map(|byte| char::from(*byte)).filter(|c| !is_space(*c)).collect();
        Ok(if kept.chars().count() == text.len() { text.into() } else { kept.into() })
    }),
    ("swapcase", "s>s", |_, given| Ok(swap(&lossy(given, 0)).into())),
    ("snakecase", "s>s", |_, given| Ok(connected(&lossy(given, 0), '_').into())),
    ("kebabcase", "s>s", |_, given| Ok(connected(&lossy(given, 0), '-').into())),
    ("camelcase", "s>s", |_, given| Ok(camel(&lossy(given, 0)).into())),
    ("wrap", "is>s", |context, given| wrap(context, text(given, 1), integer(given, 0), b"", false)),
    ("wrapWith", "iss>s", |context, given| {
        wrap(context, text(given, 2), integer(given, 0), text(given, 1), true)
    }),
    ("shuffle", "s>s", |_, given| {
        let mut characters: Vec<char> = lossy(given, 0).chars().collect();
        for at in (1..characters.len()).rev() {
            let other = super::crypto::random_below(u64::try_from(at + 1).unwrap_or(1))?;
            characters.swap(at, usize::try_from(other).unwrap_or(0));
        }
        Ok(characters.into_iter().collect::<String>().into())
    }),
];

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::str(bytes)
    }
}

fn abbreviate(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let at = |place: i64| usize::try_from(place).unwrap_or(0).min(text.len());
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if length <= width {
        return text.to_vec();
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return [&text[..at(width - 3)], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + width - 3 < length {
        return [b"...", &*abbreviate(&text[at(offset)..], 0, width - 3)].concat();
    }
    [b"...", &text[at(length - (width - 3))..]].concat()
}

/// `strings.Title`: the first letter of each word.
fn titled(text: &str) -> String {
    let mut before = ' ';
    let separates = |c: char| match c {
        c if c.is_ascii() => !c.is_ascii_alphanumeric() && c != '_',
        c if is_letter(c) || is_digit(c) => false,
        c => is_space(c),
    };
    text.chars()
        .map(|c| {
            let previous = std::mem::replace(&mut before, c);
            if separates(previous) { title(c) } else { c }
        })
        .collect()
}

fn swap(text: &str) -> String {
    let mut gap = true;
    text.chars()
        .map(|c| {
            if c.is_uppercase() {
                gap = false;
                lower(c)
            } else if c.is_lowercase() {
                if std::mem::take(&mut gap) { title(c) } else { upper(c) }
            } else {
                gap = is_space(c);
                c
            }
        })
        .collect()
}

fn wrap(context: &Context<'_>, text: &[u8], width: i64, newline: &[u8], cut: bool) -> Run<Value> {
    let newline = if newline.is_empty() { b"\n" } else { newline };
    let width = usize::try_from(width).unwrap_or(1).max(1);
    context.engine.make(text.len().saturating_add((text.len() / width).saturating_mul(newline.len())))?;
    let mut out = Vec::new();
    let mut offset = 0;
    while text.len() - offset > width {
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        if let Some(space) = text[offset..=offset + width].iter().rposition(|byte| *byte == b' ') {
            out.extend_from_slice(&text[offset..offset + space]);
            out.extend_from_slice(newline);
            offset += space + 1;
        } else if cut {
            out.extend_from_slice(&text[offset..offset + width]);
            out.extend_from_slice(newline);
            offset += width;
        } else if let Some(space) = text[offset + width..].iter().position(|byte| *byte == b' ') {
            out.extend_from_slice(&text[offset..offset + width + space]);
            out.extend_from_slice(newline);
            offset += width + space + 1;
        } else {
            out.extend_from_slice(&text[offset..]);
            offset = text.len();
        }
    }
    out.extend_from_slice(&text[offset..]);
    Ok(Value::str(out))
}

fn connects(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

/// `xstrings.ToPascalCase`
fn camel(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    let mut current = None;
    let mut first_upper = false;
    for c in rest.by_ref() {
        current = Some(c);
        if !connects(c) {
            first_upper = c.is_uppercase();
            current = Some(upper(c));
            break;
        }
        out.push(c);
    }
    let Some(mut current) = current else { return out };
    let only_connectors = connects(current);
    if rest.as_str().is_empty() {
        if !text.is_empty() {
            // What is pushed here again is what xstrings pushes again.
            out.push(current);
        }
        let _ = only_connectors;
        return out;
    }
    for c in rest {
        let previous = current;
        current = c;
        if connects(current) && connects(previous) {
            out.push(previous);
            continue;
        }
        if connects(previous) {
            first_upper = current.is_uppercase();
            current = upper(current);
        } else {
            if first_upper {
                if current.is_uppercase() {
                    current = lower(current);
                } else {
                    first_upper = false;
                }
            }
            out.push(previous);
        }
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Word {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

fn is_number(c: char) -> bool {
    c.is_numeric()
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() { "!\"#%&'()*,-./:;?@[\\]_{}".contains(c) } else { crate::go::chars::is_punctuation(c) }
}

/// Is it a letter that has upper and lower case?
fn alphabet(c: char) -> bool {
    is_letter(c) && (c.is_uppercase() || c.is_lowercase())
}

fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else { return (Word::None, "", "") };
    let run = |keep: &dyn Fn(char) -> bool| text.find(|c| !keep(c)).unwrap_or(text.len());
    let (word, end) = if connects(first) {
        (Word::Connector, run(&connects))
    } else if is_punctuation(first) {
        (Word::Punctuation, run(&is_punctuation))
    } else if first.is_uppercase() {
        let uppers = run(&char::is_uppercase);
        let mut end = first.len_utf8();
        if uppers > end {
            end = uppers;
            // The last capital begins the next word.
            if text[end..].starts_with(alphabet) {
                end -= text[..end].chars().next_back().map_or(0, char::len_utf8);
            }
        } else if text[end..].starts_with(alphabet) {
            end += text[end..].find(|c: char| !alphabet(c) || c.is_uppercase()).unwrap_or(text.len() - end);
        }
        (Word::Upper, end)
    } else if alphabet(first) {
        (Word::Alphabet, run(&|c| alphabet(c) && !c.is_uppercase()))
    } else if is_number(first) {
        (Word::Number, run(&is_number))
    } else {
        (Word::Other, run(&|c| !(connects(c) || alphabet(c) || is_number(c) || is_punctuation(c))))
    };
    (word, &text[..end], &text[end..])
}

/// `xstrings.ToSnakeCase` and `ToKebabCase`
fn connected(text: &str, connector: char) -> String {
    let mut out = String::new();
    let lowered = |out: &mut String, kind: Word, word: &str| {
        if kind != Word::Upper && kind != Word::Connector {
            return out.push_str(word);
        }
        out.extend(word.chars().map(|c| {
            if connects(c) {
                connector
            } else if c.is_uppercase() {
                lower(c)
            } else {
                c
            }
        }));
    };
    let joins = |kind: Word| kind != Word::Connector && kind != Word::Punctuation;
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != Word::Connector {
            lowered(&mut out, kind, word);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Alphabet | Word::Number) {
                    lowered(&mut out, kind, word);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Word::None && joins(kind) {
                    out.push(connector);
                }
            }
            Word::Connector => lowered(&mut out, before, last),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if joins(kind) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind == Word::Alphabet {
                    out.push(connector);
                    lowered(&mut out, Word::Number, number);
                    while matches!(kind, Word::Alphabet | Word::Number) {
                        lowered(&mut out, kind, word);
                        (kind, word, rest) = next_word(rest);
                    }
                    if kind != Word::None && joins(kind) {
                        out.push(connector);
                    }
                } else {
                    lowered(&mut out, Word::Number, number);
                    if joins(kind) {
                        out.push(connector);
                    }
                }
            }
        }
    }
    lowered(&mut out, kind, word);
    out
}
