//! The patterns of `.Files.Glob`: `*` within a name, `**` across folders, `?`, `[a-z]` and `{a,b}`.

use regex::Regex;

/// A pattern as a regular expression; one that is broken matches everything below a folder, as in Helm.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    let mut out = String::from(r"(?s)\A");
    let mut characters = pattern.chars().peekable();
    let mut braces = 0_usize;
    while let Some(c) = characters.next() {
        match c {
            '*' if characters.next_if_eq(&'*').is_some() => out.push_str(".*"),
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                out.push('[');
                if characters.next_if_eq(&'!').is_some() {
                    out.push('^');
                }
                for member in characters.by_ref() {
                    if member == ']' {
                        break;
                    }
                    if matches!(member, '[' | '\\' | '&' | '~' | '^') {
                        out.push('\\');
                    }
                    out.push(member);
                }
                out.push(']');
            }
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            '\\' => {
                out.push_str(&characters.next().map(|c| regex::escape(&c.to_string())).unwrap_or_default())
            }
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push_str(r"\z");
    Regex::new(&out).ok()
}
