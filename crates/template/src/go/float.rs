//! Floats as `strconv.FormatFloat` writes them.

/// In the form `e`, `f` or `g`, with so many digits, or as few as tell the value.
pub(crate) fn format(value: f64, form: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    match form {
        'e' | 'E' => upper(exponential(value, precision), form),
        'f' | 'F' => match precision {
            Some(precision) => format!("{value:.precision$}"),
            None => format!("{value}"),
        },
        _ => upper(general(value, precision), form),
    }
}

fn upper(text: String, form: char) -> String {
    if form.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
}

/// `1e+21`: Go writes a sign and at least two digits.
fn exponential(value: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    };
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn general(value: f64, precision: Option<usize>) -> String {
    let digits = precision.map(|precision| precision.max(1));
    let scientific = match digits {
        Some(digits) => format!("{value:.*e}", digits - 1),
        None => format!("{value:e}"),
    };
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let plain: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let plain = match plain.trim_end_matches('0') {
        "" => "0",
        plain => plain,
    };
    let count = i64::try_from(plain.len()).unwrap_or(i64::MAX);
    let limit = match digits {
        None => 6,
        Some(digits) => {
            let digits = i64::try_from(digits).unwrap_or(i64::MAX);
            if digits > count && count > exponent { count } else { digits }
        }
    };
    if exponent < -4 || exponent >= limit {
        let (first, rest) = plain.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let (mark, exponent) = if exponent < 0 { ('-', -exponent) } else { ('+', exponent) };
        return format!("{sign}{first}{dot}{rest}e{mark}{exponent:0>2}");
    }
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{plain}");
    }
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    if plain.len() <= whole {
        return format!("{sign}{plain}{}", "0".repeat(whole - plain.len()));
    }
    format!("{sign}{}.{}", &plain[..whole], &plain[whole..])
}

/// As `encoding/json` writes it.
pub(crate) fn json(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return format!("{value}");
    }
    let text = exponential(value, None);
    // A negative exponent of two digits loses its leading zero there.
    match text.split_once("e-0") {
        Some((head, digit)) => format!("{head}e-{digit}"),
        None => text,
    }
}
