//! Amounts of resources, as objects write them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// In thousandths, rounded up: `100m` is 100, `1Gi` is 1,073,741,824,000. Nothing if it is no amount.
pub fn thousandths(quantity: &Quantity) -> Option<i128> {
    let text = quantity.0.trim();
    let digits = text.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let whole = whole.trim_start_matches(['+', '-']);
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > 18 || whole.len() > 20 {
        return None;
    }
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = u32::try_from(fraction.len()).ok()?;
    let (times, over) = factor(suffix)?;
    let numerator = mantissa.checked_mul(times)?;
    let denominator = over.checked_mul(10_i128.checked_pow(scale)?)?;
    let amount = numerator / denominator + i128::from(numerator % denominator != 0);
    Some(if negative { -amount } else { amount })
}

/// In whole units, rounded up.
pub fn units(quantity: &Quantity) -> Option<i128> {
    let thousandths = thousandths(quantity)?;
    Some(thousandths.div_euclid(1000) + i128::from(thousandths.rem_euclid(1000) != 0))
}

/// What a suffix multiplies by, in thousandths, and divides by.
fn factor(suffix: &str) -> Option<(i128, i128)> {
    const POWERS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let place =
        |all: &[&str]| all.iter().position(|known| *known == suffix).and_then(|at| u32::try_from(at).ok());
    if let Some(at) = place(&POWERS) {
        return Some((1000_i128.pow(at + 2), 1));
    }
    if let Some(at) = place(&BINARY) {
        return Some((1000 * 1024_i128.pow(at + 1), 1));
    }
    match suffix {
        "" => Some((1000, 1)),
        "m" => Some((1, 1)),
        "u" => Some((1, 1000)),
        "n" => Some((1, 1_000_000)),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1000, power) } else { (power.checked_mul(1000)?, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_writes_them() {
        let read = |text: &str| thousandths(&Quantity(text.to_owned()));
        assert_eq!(read("1"), Some(1000));
        assert_eq!(read("100m"), Some(100));
        assert_eq!(read("0.5"), Some(500));
        assert_eq!(read("1Ki"), Some(1_024_000));
        assert_eq!(read("1.5Gi"), Some(1_610_612_736_000));
        assert_eq!(read("2k"), Some(2_000_000));
        assert_eq!(read("1e3"), Some(1_000_000));
        assert_eq!(read("1E"), Some(1_000_000_000_000_000_000_000));
        assert_eq!(read("1n"), Some(1), "rounded up");
        assert_eq!(read("-1"), Some(-1000));
        for bad in ["", "x", "1x", "m", "99999999999999999999999999"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(units(&Quantity("1500m".into())), Some(2));
    }
}
