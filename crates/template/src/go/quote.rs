//! `strconv.Quote`: text between quotes, with Go's escapes.

use super::chars::is_print;
use std::fmt::Write;

/// `%q` of a string.
pub(crate) fn quote(bytes: &[u8]) -> String {
    quote_with(bytes, '"', false)
}

/// With the given quote, and with only ASCII if asked.
pub(crate) fn quote_with(bytes: &[u8], quote: char, ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(quote);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut out, c, quote, ascii);
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push(quote);
    out
}

fn push(out: &mut String, c: char, quote: char, ascii: bool) {
    if c == quote || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if is_print(c) && (!ascii || c.is_ascii()) {
        out.push(c);
        return;
    }
    let code = u32::from(c);
    let _ = match c {
        '\x07' => write!(out, "\\a"),
        '\x08' => write!(out, "\\b"),
        '\x0c' => write!(out, "\\f"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\x0b' => write!(out, "\\v"),
        _ if code < 0x20 || code == 0x7f => write!(out, "\\x{code:02x}"),
        _ if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// `%#U`
pub(crate) fn unicode(c: char) -> String {
    let code = u32::from(c);
    if is_print(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}
