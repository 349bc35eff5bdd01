//! The flags of a `%` directive, and what they do to text.

/// `%+-# 0`, width and precision.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub plus: bool,
    pub minus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    pub width: Option<usize>,
    pub precision: Option<usize>,
    /// `%+v`
    pub plus_v: bool,
    /// `%#v`
    pub sharp_v: bool,
}

impl Flags {
    /// Appends text, filled up to the width, counted in characters.
    pub fn pad(&self, out: &mut Vec<u8>, text: &[u8]) {
        let length =
            text.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum();
        let missing = self.width.unwrap_or(0).saturating_sub(length);
        if self.minus {
            out.extend_from_slice(text);
            out.extend(std::iter::repeat_n(b' ', missing));
        } else {
            out.extend(std::iter::repeat_n(if self.zero { b'0' } else { b' ' }, missing));
            out.extend_from_slice(text);
        }
    }

    /// An integer: digits, the sign before them, and zeros between both.
    pub fn integer(&self, out: &mut Vec<u8>, magnitude: u64, negative: bool, verb: char) {
        let mut digits = match verb {
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        let mut least = 0;
        let mut zero = self.zero;
        if let Some(precision) = self.precision {
            least = precision;
            if precision == 0 && magnitude == 0 {
                let spaces = Flags { zero: false, ..*self };
                return spaces.pad(out, b"");
            }
            zero = false;
        } else if zero
            && !self.minus
            && let Some(width) = self.width
        {
            least = width.saturating_sub(usize::from(negative || self.plus || self.space));
        }
        if digits.len() < least {
            digits = format!("{}{digits}", "0".repeat(least - digits.len()));
        }
        let prefix = match verb {
            'b' if self.sharp => "0b",
            'o' if self.sharp && !digits.starts_with('0') => "0",
            'x' if self.sharp => "0x",
            'X' if self.sharp => "0X",
            'O' => "0o",
            _ => "",
        };
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let _ = zero;
        Flags { zero: false, ..*self }.pad(out, format!("{sign}{prefix}{digits}").as_bytes());
    }

    /// A float, whose sign stands before the zeros that fill it up.
    pub fn float(&self, out: &mut Vec<u8>, value: f64, verb: char, precision: Option<usize>) {
        let mut text = super::float::format(value, verb, self.precision.or(precision));
        let finite = value.is_finite();
        if !text.starts_with(['-', '+']) {
            text.insert(0, '+');
        }
        if self.space && text.starts_with('+') && !self.plus {
            text.replace_range(..1, " ");
        }
        let show = self.plus || !text.starts_with('+');
        if self.sharp && finite {
            text = sharp(&text, verb, self.precision.or(precision));
        }
        let zero = self.zero && finite;
        if show {
            if zero && !self.minus && self.width.is_some_and(|width| width > text.len()) {
                out.extend_from_slice(&text.as_bytes()[..1]);
                let rest = Flags { width: self.width.map(|width| width - 1), ..*self };
                return rest.pad(out, &text.as_bytes()[1..]);
            }
            return Flags { zero, ..*self }.pad(out, text.as_bytes());
        }
        Flags { zero, ..*self }.pad(out, &text.as_bytes()[1..]);
    }
}

/// `%#g` and `%#f`: with a point, and with trailing zeros.
fn sharp(text: &str, verb: char, precision: Option<usize>) -> String {
    let (mantissa, tail) = match text.find(['e', 'E']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mut mantissa = mantissa.to_owned();
    let digits = mantissa.chars().filter(char::is_ascii_digit).collect::<String>();
    let significant = digits.trim_start_matches('0').len().max(usize::from(!digits.is_empty()));
    if !mantissa.contains('.') {
        mantissa.push('.');
    }
    if matches!(verb, 'g' | 'G') {
        let wanted = precision.unwrap_or(6);
        mantissa.push_str(&"0".repeat(wanted.saturating_sub(significant)));
    }
    format!("{mantissa}{tail}")
}
