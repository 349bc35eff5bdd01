//! Quoted strings and characters of Go's source.

/// What stands between the quotes. Go's error is the same for all mistakes.
pub(super) fn unquote(quoted: &str) -> Result<Vec<u8>, &'static str> {
    const WRONG: &str = "invalid syntax";
    let inner = quoted.get(1..quoted.len().wrapping_sub(1)).ok_or(WRONG)?;
    if quoted.starts_with('`') {
        return if inner.contains('`') { Err(WRONG) } else { Ok(inner.replace('\r', "").into_bytes()) };
    }
    if inner.contains('\n') {
        return Err(WRONG);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, tail) = unquote_char(rest, '"')?;
        match unit {
            Unit::Char(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => out.push(byte),
        }
        rest = tail;
    }
    Ok(out)
}

pub(super) enum Unit {
    Char(char),
    Byte(u8),
}

/// The first character of a quoted text, and what follows it.
pub(super) fn unquote_char(text: &str, quote: char) -> Result<(Unit, &str), &'static str> {
    const WRONG: &str = "invalid syntax";
    let mut characters = text.chars();
    let first = characters.next().ok_or(WRONG)?;
    if first == quote {
        return Err(WRONG);
    }
    if first != '\\' {
        return Ok((Unit::Char(first), characters.as_str()));
    }
    let escape = characters.next().ok_or(WRONG)?;
    let rest = characters.as_str();
    let simple = match escape {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        '\'' | '"' if escape == quote => escape,
        'x' => {
            let (code, rest) = digits(rest, 2, 16)?;
            return Ok((Unit::Byte(u8::try_from(code).map_err(|_| WRONG)?), rest));
        }
        'u' | 'U' => {
            let (code, rest) = digits(rest, if escape == 'u' { 4 } else { 8 }, 16)?;
            return Ok((Unit::Char(char::from_u32(code).ok_or(WRONG)?), rest));
        }
        '0'..='7' => {
            let (code, rest) = digits(characters_from(text), 3, 8)?;
            return Ok((Unit::Byte(u8::try_from(code).map_err(|_| WRONG)?), rest));
        }
        _ => return Err(WRONG),
    };
    Ok((Unit::Char(simple), rest))
}

/// What follows the backslash.
fn characters_from(text: &str) -> &str {
    text.get(1..).unwrap_or_default()
}

fn digits(text: &str, count: usize, radix: u32) -> Result<(u32, &str), &'static str> {
    const WRONG: &str = "invalid syntax";
    let digits = text.get(..count).ok_or(WRONG)?;
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(WRONG);
    }
    Ok((u32::from_str_radix(digits, radix).map_err(|_| WRONG)?, &text[count..]))
}
