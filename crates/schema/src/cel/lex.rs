//! The lexer: tokens from an expression's text.

use super::Complaint;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Ident(String),
    Int(String),
    Uint(String),
    Double(String),
    String(String),
    Bytes(Vec<u8>),
    Sign(&'static str),
    End,
}

/// A token and the character that it begins with.
pub(super) type Placed = (usize, Token);

const SIGNS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "<", ">", "=", "`",
];

pub(super) fn tokens(source: &[char]) -> Result<Vec<Placed>, Complaint> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&c) = source.get(at) {
        let next = source.get(at + 1).copied().unwrap_or('\0');
        if matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c') {
            at += 1;
        } else if c == '/' && next == '/' {
            at += source[at..].iter().take_while(|c| **c != '\n').count();
        } else if let Some(prefix) = quote_after(source, at) {
            let start = at;
            let token = quoted(source, &mut at, prefix)?;
            found.push((start, token));
        } else if c.is_ascii_alphabetic() || c == '_' {
            let name: String =
                source[at..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
            let start = at;
            at += name.len();
            found.push((start, Token::Ident(name)));
        } else if c.is_ascii_digit() || c == '.' && next.is_ascii_digit() {
            let start = at;
            let token = number(source, &mut at);
            found.push((start, token));
        } else {
            let sign =
                SIGNS.iter().find(|sign| sign.chars().eq(source[at..].iter().take(sign.len()).copied()));
            let Some(sign) = sign else {
                return Err(Complaint::new(at, format!("Syntax error: token recognition error at: '{c}'")));
            };
            found.push((at, Token::Sign(sign)));
            at += sign.len();
        }
    }
    found.push((source.len(), Token::End));
    Ok(found)
}

/// How many letters before a quote say what kind of text it is, if one follows here.
fn quote_after(source: &[char], at: usize) -> Option<usize> {
    let letters = source[at..].iter().take(3).take_while(|c| matches!(c, 'r' | 'R' | 'b' | 'B')).count();
    (letters < 3 && matches!(source.get(at + letters), Some('"' | '\''))).then_some(letters)
}

fn number(source: &[char], at: &mut usize) -> Token {
    let start = *at;
    let digits = |from: usize, wanted: fn(&char) -> bool| {
        source.get(from..).map_or(0, |rest| rest.iter().take_while(|c| wanted(c)).count())
    };
    let text = |from: usize, to: usize| source[from..to].iter().collect::<String>();
    let unsigned = |at: &mut usize| {
        let marked = matches!(source.get(*at), Some('u' | 'U'));
        *at += usize::from(marked);
        marked
    };
    let hex = source[start] == '0' && source.get(start + 1) == Some(&'x');
    if hex && digits(start + 2, char::is_ascii_hexdigit) > 0 {
        *at = start + 2 + digits(start + 2, char::is_ascii_hexdigit);
        let end = *at;
        return if unsigned(at) { Token::Uint(text(start, end)) } else { Token::Int(text(start, end)) };
    }
    *at += digits(start, char::is_ascii_digit);
    let mut double = false;
    if source.get(*at) == Some(&'.') && digits(*at + 1, char::is_ascii_digit) > 0 {
        double = true;
        *at += 1 + digits(*at + 1, char::is_ascii_digit);
    }
    if matches!(source.get(*at), Some('e' | 'E')) {
        let sign = usize::from(matches!(source.get(*at + 1), Some('+' | '-')));
        let exponent = digits(*at + 1 + sign, char::is_ascii_digit);
        if exponent > 0 {
            double = true;
            *at += 1 + sign + exponent;
        }
    }
    let end = *at;
    match double {
        true => Token::Double(text(start, end)),
        false if unsigned(at) => Token::Uint(text(start, end)),
        false => Token::Int(text(start, end)),
    }
}

fn quoted(source: &[char], at: &mut usize, prefix: usize) -> Result<Token, Complaint> {
    let start = *at;
    let marks: String = source[start..start + prefix].iter().collect::<String>().to_ascii_lowercase();
    let (raw, bytes) = (marks.contains('r'), marks.contains('b'));
    let quote = source[start + prefix];
    let body = start + prefix;
    let triple = source.get(body..body + 3).is_some_and(|three| three.iter().all(|c| *c == quote));
    let width = if triple { 3 } else { 1 };
    let mut here = body + width;
    let unfinished = || {
        let text: String = source[start..].iter().take(32).collect();
        Complaint::new(start, format!("Syntax error: token recognition error at: '{text}'"))
    };
    let closes =
        |here: usize| source.get(here..here + width).is_some_and(|end| end.iter().all(|c| *c == quote));
    let mut text = String::new();
    let mut octets = Vec::new();
    loop {
        let &c = source.get(here).ok_or_else(unfinished)?;
        if closes(here) {
            break;
        }
        if !triple && matches!(c, '\n' | '\r') {
            return Err(unfinished());
        }
        if c == '\\' && !raw {
            let (code, length) = escape(&source[here + 1..], bytes)
                .ok_or_else(|| Complaint::new(start, "unable to unescape string".to_owned()))?;
            match (bytes, code) {
                (true, Escaped::Octet(octet)) => octets.push(octet),
                (_, Escaped::Octet(octet)) => text.push(char::from(octet)),
                (_, Escaped::Char(c)) => text.push(c),
            }
            here += 1 + length;
        } else {
            // A backslash before a quote keeps it, even where nothing is unescaped.
            text.push(c);
            here += 1;
            if c == '\\' && raw && source.get(here) == Some(&quote) {
                text.push(quote);
                here += 1;
            }
        }
        if bytes {
            octets.extend_from_slice(std::mem::take(&mut text).as_bytes());
        }
    }
    *at = here + width;
    Ok(if bytes { Token::Bytes(octets) } else { Token::String(text) })
}

enum Escaped {
    Octet(u8),
    Char(char),
}

/// What follows a backslash stands for, and how many characters it takes.
fn escape(rest: &[char], bytes: bool) -> Option<(Escaped, usize)> {
    let code = |from: usize, width: usize, radix: u32| {
        let digits: String = rest.get(from..from + width)?.iter().collect();
        digits.chars().all(|c| c.is_digit(radix)).then(|| u32::from_str_radix(&digits, radix).ok())?
    };
    let placed = |code: u32, length: usize| {
        let escaped = match u8::try_from(code) {
            Ok(octet) if bytes => Escaped::Octet(octet),
            _ => Escaped::Char(char::from_u32(code)?),
        };
        Some((escaped, length))
    };
    let plain = |c: char| Some((Escaped::Char(c), 1));
    match *rest.first()? {
        'a' => plain('\x07'),
        'b' => plain('\x08'),
        'f' => plain('\x0c'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\x0b'),
        c @ ('\\' | '\'' | '"' | '`' | '?') => plain(c),
        'x' | 'X' => placed(code(1, 2, 16)?, 3),
        'u' if !bytes => placed(code(1, 4, 16)?, 5),
        'U' if !bytes => placed(code(1, 8, 16)?, 9),
        '0'..='3' => placed(code(0, 3, 8)?, 3),
        _ => None,
    }
}
