//! `fmt.Sprintf`.

use super::padding::Flags;
use super::print::{directive, show};
use crate::value::Value;

/// Widths and precisions beyond this are refused by Go, too.
const WIDEST: i64 = 1_000_000;

/// Formats the values by the directives in the text.
pub(crate) fn sprintf(format: &[u8], values: &[Value]) -> Vec<u8> {
    let mut run = Run { out: Vec::new(), values, next: 0, reordered: false, good: true };
    run.all(format);
    run.out
}

struct Run<'a> {
    out: Vec<u8>,
    values: &'a [Value],
    next: usize,
    reordered: bool,
    /// Was the last `[n]` one that there is?
    good: bool,
}

impl Run<'_> {
    fn all(&mut self, format: &[u8]) {
        let mut at = 0;
        while at < format.len() {
            let text =
                format[at..].iter().position(|byte| *byte == b'%').map_or(format.len(), |found| at + found);
            self.out.extend_from_slice(&format[at..text]);
            at = text;
            if at >= format.len() {
                break;
            }
            at = self.directive(format, at + 1);
        }
        if !self.reordered && self.next < self.values.len() {
            self.extra();
        }
    }

    fn extra(&mut self) {
        self.out.extend_from_slice(b"%!(EXTRA ");
        for (at, value) in self.values[self.next..].iter().enumerate() {
            if at > 0 {
                self.out.extend_from_slice(b", ");
            }
            if value.is_nil() {
                self.out.extend_from_slice(b"<nil>");
            } else {
                self.out.extend_from_slice(value.type_name().as_bytes());
                self.out.push(b'=');
                self.out.extend_from_slice(show(value).as_bytes());
            }
        }
        self.out.push(b')');
    }

    /// One directive, behind its `%`. Answers where the text goes on.
    fn directive(&mut self, format: &[u8], mut at: usize) -> usize {
        let mut flags = Flags::default();
        self.good = true;
        let mut after = false;
        while let Some(flag) = format.get(at) {
            match flag {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            at += 1;
        }
        (at, after) = self.index(format, at, after);
        if format.get(at) == Some(&b'*') {
            at += 1;
            match self.star() {
                Some(width) => {
                    flags.minus |= width < 0;
                    flags.zero &= width >= 0;
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.out.extend_from_slice(b"%!(BADWIDTH)"),
            }
            after = false;
        } else {
            let (number, end) = digits(format, at);
            flags.width = number;
            at = end;
            if after && number.is_some() {
                self.good = false;
            }
        }
        if format.get(at) == Some(&b'.') {
            at += 1;
            if after {
                self.good = false;
            }
            (at, after) = self.index(format, at, after);
            if format.get(at) == Some(&b'*') {
                at += 1;
                match self.star() {
                    Some(precision) => flags.precision = usize::try_from(precision).ok(),
                    None => self.out.extend_from_slice(b"%!(BADPREC)"),
                }
                if flags.precision.is_none() && self.next > 0 {
                    // A negative precision means none, and is complained about.
                    let negative =
                        matches!(self.values.get(self.next - 1), Some(Value::Int(_, value)) if *value < 0);
                    if negative {
                        self.out.extend_from_slice(b"%!(BADPREC)");
                    }
                }
                after = false;
            } else {
                let (number, end) = digits(format, at);
                flags.precision = Some(number.unwrap_or(0));
                at = end;
            }
        }
        if !after {
            (at, _) = self.index(format, at, after);
        }
        if at >= format.len() {
            self.out.extend_from_slice(b"%!(NOVERB)");
            return at;
        }
        let (verb, size) = decode(&format[at..]);
        at += size;
        self.verb(verb, flags);
        at
    }

    fn verb(&mut self, verb: char, mut flags: Flags) {
        if verb == '%' {
            return self.out.push(b'%');
        }
        if !self.good {
            return self.out.extend_from_slice(format!("%!{verb}(BADINDEX)").as_bytes());
        }
        let Some(value) = self.values.get(self.next) else {
            return self.out.extend_from_slice(format!("%!{verb}(MISSING)").as_bytes());
        };
        self.next += 1;
        if verb == 'v' {
            flags.sharp_v = flags.sharp;
            flags.sharp = false;
            flags.plus_v = flags.plus;
            flags.plus = false;
        }
        if flags.minus {
            flags.zero = false;
        }
        directive(&mut self.out, &flags, verb, value, 0);
    }

    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next);
        self.next += usize::from(value.is_some());
        match value {
            Some(Value::Int(_, number)) if number.abs() <= WIDEST => Some(*number),
            Some(Value::Uint(_, number)) => i64::try_from(*number).ok().filter(|number| *number <= WIDEST),
            _ => None,
        }
    }

    /// `[n]`, which chooses the next value.
    fn index(&mut self, format: &[u8], at: usize, after: bool) -> (usize, bool) {
        if format.get(at) != Some(&b'[') {
            return (at, after);
        }
        self.reordered = true;
        let Some(close) = format[at..].iter().position(|byte| *byte == b']') else {
            self.good = false;
            return (at + 1, after);
        };
        let (number, end) = digits(format, at + 1);
        match number {
            Some(number) if end == at + close && (1..=self.values.len()).contains(&number) => {
                self.next = number - 1;
                (end + 1, true)
            }
            _ => {
                self.good = false;
                (at + close + 1, after)
            }
        }
    }
}

fn digits(format: &[u8], at: usize) -> (Option<usize>, usize) {
    let mut end = at;
    let mut number: i64 = 0;
    while let Some(digit) = format.get(end).filter(|byte| byte.is_ascii_digit()) {
        if number > WIDEST {
            return (None, end);
        }
        number = number * 10 + i64::from(digit - b'0');
        end += 1;
    }
    let number = usize::try_from(number).ok().filter(|_| end > at && number <= WIDEST);
    (number, end)
}

fn decode(bytes: &[u8]) -> (char, usize) {
    match bytes.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()) {
        Some(c) => (c, c.len_utf8()),
        None => ('\u{fffd}', 1),
    }
}
