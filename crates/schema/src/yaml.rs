//! YAML as kube-apiserver writes it, with go-yaml v2: the same down to the line breaks of long texts.

use crate::{go, json};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// The column after which a line is broken, at the next space.
const WIDTH: usize = 80;

/// A document in block style, keys sorted.
pub fn write(value: &Value) -> String {
    let mut out = Writer { text: String::new(), column: 0, width: WIDTH, lists: 0 };
    out.node(value, 0, false);
    out.text
}

/// The same as go-yaml v3 writes it: lists are indented below their key, and no line is broken.
pub fn write_indented(value: &Value) -> String {
    let mut out = Writer { text: String::new(), column: 0, width: usize::MAX, lists: 2 };
    out.node(value, 0, false);
    out.text
}

struct Writer {
    text: String,
    column: usize,
    width: usize,
    /// How far lists are indented below their key.
    lists: usize,
}

/// Keys in go-yaml's order: numbers in them count as numbers, and letters come after all else.
fn compare(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut digits = false;
    for (at, (&left, &right)) in a.iter().zip(&b).enumerate() {
        if left == right {
            digits = left.is_numeric();
            continue;
        }
        match (left.is_alphabetic(), right.is_alphabetic()) {
            (true, true) => return left.cmp(&right),
            (true, false) => return if digits { Ordering::Less } else { Ordering::Greater },
            (false, true) => return if digits { Ordering::Greater } else { Ordering::Less },
            (false, false) => {}
        }
        // Zeros that lead a number say nothing; behind another digit they do.
        let mut start = 0_i64;
        if left == '0' || right == '0' {
            let before = a[..at].iter().rev().take_while(|c| c.is_ascii_digit());
            start = i64::from(before.clone().any(|c| *c != '0'));
        }
        let number = |text: &[char]| {
            let run: Vec<i64> = text[at..].iter().map_while(|c| c.to_digit(10)).map(i64::from).collect();
            let value = run.iter().fold(start, |value, digit| value.wrapping_mul(10).wrapping_add(*digit));
            (value, run.len())
        };
        return number(&a).cmp(&number(&b)).then(left.cmp(&right));
    }
    a.len().cmp(&b.len())
}

fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by(|a, b| compare(a.0, b.0));
    sorted
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self, indent: usize) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// A value; `inline` if something stands before it in its line.
    fn node(&mut self, value: &Value, indent: usize, inline: bool) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (number, (name, field)) in sorted(fields).into_iter().enumerate() {
                    if number > 0 || !inline {
                        self.text.extend(std::iter::repeat_n(' ', indent));
                        self.column = indent;
                    }
                    self.string(name, indent, true);
                    self.put(":");
                    self.field(field, indent);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (number, item) in items.iter().enumerate() {
                    if number > 0 || !inline {
                        self.text.extend(std::iter::repeat_n(' ', indent));
                        self.column = indent;
                    }
                    self.put("- ");
                    match item {
                        Value::Object(fields) if !fields.is_empty() => self.node(item, indent + 2, true),
                        Value::Array(items) if !items.is_empty() => self.node(item, indent + 2, true),
                        item => self.scalar(item, indent),
                    }
                }
            }
            value => self.scalar(value, indent),
        }
    }

    /// What follows a key.
    fn field(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                self.text.push('\n');
                self.node(value, indent + 2, false);
            }
            // Lists stand below the first letter of their key.
            Value::Array(items) if !items.is_empty() => {
                self.text.push('\n');
                self.node(value, indent + self.lists, false);
            }
            value => {
                self.put(" ");
                self.scalar(value, indent);
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) => self.string(text, indent, false),
            Value::Number(number) => self.put(&go::number(number)),
            other => {
                let text = json::to_string(other);
                self.put(&text);
            }
        }
        self.text.push('\n');
        self.column = 0;
    }

    fn string(&mut self, text: &str, indent: usize, key: bool) {
        let looks = Looks::of(text);
        if text.contains('\n') && looks.block && !key {
            return self.literal(text, indent + 2);
        }
        let plain = !text.contains('\n') && !resolves(text);
        if plain && looks.plain {
            return self.folded(text, indent + 2, key);
        }
        if (plain || text.contains('\n')) && looks.single && !(key && text.contains('\n')) {
            self.put("'");
            self.folded(&text.replace('\'', "''"), indent + 2, key);
            return self.put("'");
        }
        self.double(text, indent + 2, key);
    }

    /// Text whose lines may be broken at spaces.
    fn folded(&mut self, text: &str, indent: usize, key: bool) {
        let mut rest = text.chars().peekable();
        let (mut spaced, mut first) = (false, true);
        while let Some(character) = rest.next() {
            let breaks = character == ' '
                && !key
                && !spaced
                && !first
                && self.column > self.width
                && rest.peek().is_some_and(|next| *next != ' ');
            if breaks {
                self.line(indent);
            } else {
                self.text.push(character);
                self.column += 1;
            }
            spaced = character == ' ';
            first = false;
        }
    }

    fn double(&mut self, text: &str, indent: usize, key: bool) {
        self.put("\"");
        let length = text.chars().count();
        let mut spaced = false;
        for (at, character) in text.chars().enumerate() {
            let inside = at > 0 && at + 1 < length;
            if character == ' ' && !key && !spaced && self.column > self.width && inside {
                self.line(indent);
                if text.chars().nth(at + 1) == Some(' ') {
                    self.put("\\");
                }
                spaced = true;
                continue;
            }
            spaced = character == ' ';
            match character {
                '"' => self.put("\\\""),
                '\\' => self.put("\\\\"),
                '\0' => self.put("\\0"),
                '\u{7}' => self.put("\\a"),
                '\u{8}' => self.put("\\b"),
                '\t' => self.put("\\t"),
                '\n' => self.put("\\n"),
                '\u{b}' => self.put("\\v"),
                '\u{c}' => self.put("\\f"),
                '\r' => self.put("\\r"),
                '\u{1b}' => self.put("\\e"),
                '\u{85}' => self.put("\\N"),
                '\u{a0}' => self.put("\\_"),
                '\u{2028}' => self.put("\\L"),
                '\u{2029}' => self.put("\\P"),
                character if printable(character) => {
                    self.text.push(character);
                    self.column += 1;
                }
                character => {
                    let code = u32::from(character);
                    let escaped = match code {
                        0..=0xff => format!("\\x{code:02X}"),
                        0x100..=0xffff => format!("\\u{code:04X}"),
                        _ => format!("\\U{code:08X}"),
                    };
                    self.put(&escaped);
                }
            }
        }
        self.put("\"");
    }

    /// Line by line, as it is. What it ends with is said at its head.
    fn literal(&mut self, text: &str, indent: usize) {
        let ends = text.len() - text.trim_end_matches('\n').len();
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        match ends {
            0 => self.put("-"),
            1 => {}
            _ => self.put("+"),
        }
        let body = text.strip_suffix('\n').unwrap_or(text);
        for line in body.split('\n') {
            match line {
                "" => self.text.push('\n'),
                line => {
                    self.line(indent);
                    self.put(line);
                }
            }
        }
    }
}

/// In which styles a text may be written.
struct Looks {
    plain: bool,
    single: bool,
    block: bool,
}

impl Looks {
    fn of(text: &str) -> Self {
        let mut looks = Self { plain: true, single: true, block: true };
        if text.is_empty() {
            return Self { plain: false, ..looks };
        }
        let characters: Vec<char> = text.chars().collect();
        let blank =
            |at: usize| characters.get(at).is_none_or(|next| matches!(next, ' ' | '\t' | '\n' | '\r'));
        if text.starts_with("---") || text.starts_with("...") {
            looks.plain = false;
        }
        for (at, &character) in characters.iter().enumerate() {
            let preceded = at == 0 || blank(at - 1);
            let indicator = match character {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if at == 0 =>
                {
                    true
                }
                '?' | ':' | '-' if at == 0 => blank(1),
                ':' => blank(at + 1),
                '#' => preceded,
                _ => false,
            };
            looks.plain &= !indicator;
            if character == '\n' {
                looks.plain = false;
            } else if !printable(character) {
                // Written with escapes, and so in quotes that have them.
                looks = Self { plain: false, single: false, block: false };
            }
        }
        let spaces = [' ', '\t'];
        if text.starts_with(spaces)
            || text.ends_with(spaces)
            || text.starts_with('\n')
            || text.ends_with('\n')
        {
            looks.plain = false;
        }
        if text.ends_with(' ') {
            looks.block = false;
        }
        if text.contains(" \n") {
            looks = Self { plain: false, single: false, block: false };
        }
        looks
    }
}

fn printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && !matches!(character, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

/// Would it be read as something else than a text if it stood there bare?
fn resolves(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "yes", "on", "n", "no", "off", "true", "false", "null"];
    if text.is_empty() || matches!(text, "~" | "<<" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    let cased = text == lower || text == text.to_ascii_uppercase() || {
        let mut characters = text.chars();
        characters.next().is_some_and(|first| first.is_ascii_uppercase())
            && characters.all(|rest| rest.is_ascii_lowercase())
    };
    if WORDS.contains(&lower.as_str()) && cased {
        return true;
    }
    if matches!(text.trim_start_matches(['+', '-']), ".inf" | ".Inf" | ".INF") {
        return true;
    }
    number(text) || time(text) || sexagesimal(text)
}

fn number(text: &str) -> bool {
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return false;
    }
    let plain: String = text.chars().filter(|character| *character != '_').collect();
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let all = |text: &str, radix: u32| !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix));
    let prefixed = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)];
    if prefixed
        .iter()
        .any(|(prefix, radix)| digits.strip_prefix(prefix).is_some_and(|rest| all(rest, *radix)))
    {
        return true;
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => all(fraction, 10),
        Some((whole, fraction)) => all(whole, 10) && (fraction.is_empty() || all(fraction, 10)),
        None => all(mantissa, 10),
    };
    mantissa && exponent.is_none_or(|exponent| all(exponent, 10))
}

/// `2026-01-01`, with or without a time of day behind it.
fn time(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let year =
        parts.next().is_some_and(|year| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()));
    let month = parts
        .next()
        .is_some_and(|month| matches!(month.len(), 1 | 2) && month.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(rest) = parts.next().filter(|_| year && month) else { return false };
    let day: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let after = &rest[day.len()..];
    matches!(day.len(), 1 | 2) && (after.is_empty() || time_of_day(after))
}

/// `T10:00:00Z`, or with a space and without a zone.
fn time_of_day(text: &str) -> bool {
    let digits = |part: &str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
    let (clock, zoned) = match text.split_at(1) {
        ("T" | "t", rest) => {
            let end = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
            let (clock, zone) = rest.split_at(end);
            let numeric =
                zone.len() == 6 && zone.as_bytes()[3] == b':' && digits(&zone[1..3]) && digits(&zone[4..]);
            (clock, zone == "Z" || numeric)
        }
        (" ", rest) => (rest, true),
        _ => return false,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    zoned
        && parts.len() == 3
        && parts.iter().all(|part| digits(part))
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

/// `1:30` was a number once.
fn sexagesimal(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = digits.split(':');
    let first = parts.next().is_some_and(|part| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    });
    let mut more = false;
    let rest = parts.all(|part| {
        more = true;
        let whole = part.split('.').next().unwrap_or_default();
        matches!(whole.len(), 1 | 2) && whole.bytes().all(|byte| byte.is_ascii_digit())
    });
    first && more && rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_and_lists_stand_in_blocks() {
        let value = json!({
            "a": {"b": [{"c": 1, "d": null}, [1, [2]], "x", {}], "e": {}, "f": []}, "g": true, "h": 1.5,
        });
        assert_eq!(
            write(&value),
            "a:\n  b:\n  - c: 1\n    d: null\n  - - 1\n    - - 2\n  - x\n  - {}\n  e: {}\n  f: []\ng: true\nh: 1.5\n"
        );
    }

    #[test]
    fn texts_that_would_be_something_else_are_quoted() {
        for (text, written) in [
            ("v1", "v1"),
            ("", "\"\""),
            ("1", "\"1\""),
            ("1e3", "\"1e3\""),
            ("0x1f", "\"0x1f\""),
            ("true", "\"true\""),
            ("No", "\"No\""),
            ("nO", "nO"),
            ("~", "\"~\""),
            ("2026-01-01T00:00:00Z", "\"2026-01-01T00:00:00Z\""),
            ("1:30", "\"1:30\""),
            ("a: b", "'a: b'"),
            ("a:b", "a:b"),
            ("it's # one", "'it''s # one'"),
            ("- x", "'- x'"),
            ("-x", "-x"),
            ("*", "'*'"),
            ("f:metadata", "f:metadata"),
            (" x", "' x'"),
            ("{}", "'{}'"),
            ("\ta", "\"\\ta\""),
            ("a\nb", "|-\n  a\n  b"),
            ("a\nb\n", "|\n  a\n  b"),
        ] {
            assert_eq!(write(&json!({ "k": text })), format!("k: {written}\n"), "{text:?}");
        }
    }
}
