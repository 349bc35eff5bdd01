//! Go's regular expressions on Rust's engine: the same family, with a few differences in syntax.

use regex::{Regex, RegexBuilder};

/// A pattern that was compiled, or why it was not.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Compiled(Regex),
    Broken(String),
}

/// Compiles a Go pattern, or says why not in Go's words.
///
/// # Errors
/// If Go would refuse the pattern, or if it is too large.
pub fn go_regex(pattern: &str) -> Result<Regex, String> {
    match compile(pattern) {
        Pattern::Compiled(regex) => Ok(regex),
        Pattern::Broken(why) => Err(why),
    }
}

/// Compiles a Go pattern.
pub(crate) fn compile(pattern: &str) -> Pattern {
    let translated = match translate(pattern) {
        Ok(translated) => translated,
        Err(escape) => {
            return Pattern::Broken(format!("error parsing regexp: invalid escape sequence: `{escape}`"));
        }
    };
    match RegexBuilder::new(&translated).size_limit(10 << 20).nest_limit(200).build() {
        Ok(regex) => Pattern::Compiled(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            Pattern::Broken("error parsing regexp: expression too large".to_owned())
        }
        Err(_) => Pattern::Broken(format!("error parsing regexp: {}", complaint(pattern, &translated))),
    }
}

/// What Go says of a broken pattern, as far as both engines see the same mistake.
fn complaint(pattern: &str, translated: &str) -> String {
    use regex_syntax::ast::ErrorKind;
    let Err(error) = regex_syntax::ast::parse::Parser::new().parse(translated) else {
        return format!("invalid expression: `{pattern}`");
    };
    let span = error.span();
    let at = translated.get(span.start.offset..span.end.offset).unwrap_or_default();
    let rest = translated.get(span.start.offset..).unwrap_or_default();
    match error.kind() {
        ErrorKind::GroupUnclosed => format!("missing closing ): `{pattern}`"),
        ErrorKind::GroupUnopened => format!("unexpected ): `{pattern}`"),
        ErrorKind::ClassUnclosed => format!("missing closing ]: `{rest}`"),
        ErrorKind::ClassRangeInvalid => format!("invalid character class range: `{at}`"),
        ErrorKind::RepetitionMissing => format!("missing argument to repetition operator: `{at}`"),
        ErrorKind::RepetitionCountInvalid => format!("invalid repeat count: `{at}`"),
        ErrorKind::EscapeUnexpectedEof => "trailing backslash at end of expression: ``".to_owned(),
        ErrorKind::EscapeUnrecognized => format!("invalid escape sequence: `{at}`"),
        ErrorKind::UnsupportedLookAround => format!("invalid or unsupported Perl syntax: `{at}`"),
        _ => format!("invalid expression: `{pattern}`"),
    }
}

/// The classes `\d`, `\s`, `\w` and the boundary `\b` are ASCII in Go; inside brackets Go knows no nesting and no set
/// operations; `\Q...\E` quotes; a brace that starts no repetition stands for itself. There are
/// fewer escapes, and octal ones. Answers the escape that there is not.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    // Inside brackets, and whether a `]` would still be the literal first member.
    let mut class = false;
    let mut first = false;
    while let Some(c) = rest.next() {
        let was_first = std::mem::take(&mut first);
        match c {
            '\\' => match rest.next() {
                Some('Q') if !class => quoted(&mut rest, &mut out),
                Some(digit @ '0'..='7') => octal(digit, &mut rest, &mut out)?,
                Some(escape) if !is_escape(escape, class) => return Err(format!("\\{escape}")),
                Some(escape @ ('x' | 'p' | 'P')) if rest.peek() == Some(&'{') => {
                    out.extend(['\\', escape]);
                    copy_braces(&mut rest, &mut out);
                }
                Some(escape) => translate_escape(escape, class, &mut out),
                None => out.push('\\'),
            },
            '[' if class && rest.peek() == Some(&':') => copy_named_class(&mut rest, &mut out),
            '[' if class => out.push_str("\\["),
            '[' => {
                (class, first) = (true, true);
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            ']' if class && was_first => out.push_str("\\]"),
            ']' => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && stands_for_itself(rest.clone()) => out.push_str("\\-"),
            '{' if !class && !starts_repetition(rest.clone()) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    Ok(out)
}

fn is_escape(escape: char, class: bool) -> bool {
    match escape {
        'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' => true,
        'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P' => true,
        'A' | 'b' | 'B' | 'z' => !class,
        other => other.is_ascii() && !other.is_ascii_alphanumeric(),
    }
}

/// Up to three octal digits; a single one that is not zero would refer back to a group, which there is not.
fn octal(
    first: char,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) -> Result<(), String> {
    let digit = |c: char| c.to_digit(8);
    let mut value = digit(first).unwrap_or_default();
    let follows = rest.peek().copied().and_then(digit).is_some();
    if first != '0' && !follows {
        return Err(format!("\\{first}"));
    }
    for _ in 0..2 {
        let Some(next) = rest.peek().copied().and_then(digit) else { break };
        value = value * 8 + next;
        rest.next();
    }
    out.push_str(&format!("\\x{{{value:X}}}"));
    Ok(())
}

fn translate_escape(escape: char, class: bool, out: &mut String) {
    let ascii = match escape.to_ascii_lowercase() {
        'd' => Some("0-9"),
        's' => Some("\\t\\n\\x0c\\r "),
        'w' => Some("0-9A-Za-z_"),
        _ => None,
    };
    match (ascii, escape) {
        (Some(members), escape) if class && escape.is_ascii_lowercase() => out.push_str(members),
        (Some(members), escape) => {
            out.push_str(if escape.is_ascii_lowercase() { "[" } else { "[^" });
            out.push_str(members);
            out.push(']');
        }
        (None, 'b' | 'B') if !class => {
            out.push_str("(?-u:\\");
            out.push(escape);
            out.push(')');
        }
        (None, '<' | '>') => out.push(escape),
        (None, escape) => {
            out.push('\\');
            out.push(escape);
        }
    }
}

/// A dash before another one, or before a whole class, starts no range.
fn stands_for_itself(mut rest: impl Iterator<Item = char>) -> bool {
    match rest.next() {
        Some('-') => true,
        Some('\\') => rest.next().is_some_and(|c| "pPdDsSwW".contains(c)),
        _ => false,
    }
}

fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(c) = rest.next() {
        if c == '\\' && rest.next_if_eq(&'E').is_some() {
            return;
        }
        out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
}

/// `[:alpha:]` inside brackets is the same in both; the `[` was taken already.
fn copy_named_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let name: String = rest.clone().take(16).collect();
    match name.find(":]") {
        Some(end) => {
            out.push('[');
            out.extend(rest.by_ref().take(name[..end + 2].chars().count()));
        }
        None => out.push_str("\\["),
    }
}

/// What belongs to an escape, such as `{L}` of `\p{L}`.
fn copy_braces(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    for c in rest.by_ref() {
        out.push(c);
        if c == '}' {
            return;
        }
    }
}

/// Does `N}`, `N,}` or `N,M}` follow the brace?
fn starts_repetition(rest: impl Iterator<Item = char>) -> bool {
    let body: String = rest.take(12).take_while(|c| *c != '}').collect();
    let (least, most) = body.split_once(',').unwrap_or((&body, "0"));
    !least.is_empty()
        && least.len() <= 4
        && body.chars().all(|c| c.is_ascii_digit() || c == ',')
        && !most.contains(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        match compile(pattern) {
            Pattern::Compiled(regex) => regex.is_match(text),
            Pattern::Broken(why) => panic!("{pattern}: {why}"),
        }
    }

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{0661}", false),
            (r"^[\d-]+$", "1-2", true),
            (r"^[\D]$", "a", true),
            (r"^\w$", "é", false),
            (r"^[[a]+$", "[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "b", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^a{,3}$", "a{,3}", true),
            (r"^a{2}$", "aa", true),
            (r"^{a}$", "{a}", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\<a\>$", "<a>", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"^\-\_\/$", "-_/", true),
            (r"^[0-9-\p{L}]+$", "1-é", true),
            (r"^\p{L}+$", "é", true),
            (r"^\101\0$", "A\0", true),
            (r"^[\x00-\011]$", "\t", true),
            (r"^\x{e9}\_$", "é_", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn escapes_that_go_has_not_are_refused() {
        for (pattern, escape) in [
            (r"\u0000", r"\u"),
            (r"[\u0041]", r"\u"),
            (r"a\1", r"\1"),
            (r"[\b]", r"\b"),
            (r"\Z", r"\Z"),
            (r"\é", r"\é"),
        ] {
            let Pattern::Broken(why) = compile(pattern) else { panic!("{pattern}") };
            assert_eq!(why, format!("error parsing regexp: invalid escape sequence: `{escape}`"));
        }
    }

    #[test]
    fn a_broken_pattern_says_so() {
        assert!(matches!(compile("a("), Pattern::Broken(_)));
        assert!(matches!(compile("(((a{999}){999}){999})"), Pattern::Broken(_)));
    }
}
