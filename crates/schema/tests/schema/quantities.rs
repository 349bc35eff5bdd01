//! Properties of quantities: against a naive calculation where 128 bits hold it, and among themselves at any length.

use proptest::prelude::*;
use windlass_schema::Quantity;
use windlass_schema::quantity::Format;

/// What a suffix multiplies by: a numerator and a denominator.
const SUFFIXES: [(&str, i128, i128); 16] = [
    ("n", 1, 1_000_000_000),
    ("u", 1, 1_000_000),
    ("m", 1, 1_000),
    ("", 1, 1),
    ("k", 1_000, 1),
    ("M", 1_000_000, 1),
    ("G", 1_000_000_000, 1),
    ("T", 1_000_000_000_000, 1),
    ("P", 1_000_000_000_000_000, 1),
    ("E", 1_000_000_000_000_000_000, 1),
    ("Ki", 1 << 10, 1),
    ("Mi", 1 << 20, 1),
    ("Gi", 1 << 30, 1),
    ("Ti", 1 << 40, 1),
    ("Pi", 1 << 50, 1),
    ("Ei", 1 << 60, 1),
];

/// A quantity, and its billionths calculated naively: rounded up, and capped if it is binary.
fn counted() -> impl Strategy<Value = (String, i128)> {
    let exponent = (-14_i32..19).prop_map(|exponent| {
        let power = 10_i128.pow(exponent.unsigned_abs());
        let (times, over) = if exponent < 0 { (1, power) } else { (power, 1) };
        (format!("e{exponent}"), times, over)
    });
    let named = prop::sample::select(SUFFIXES.to_vec())
        .prop_map(|(suffix, times, over)| (suffix.to_owned(), times, over));
    let number = (any::<bool>(), 0_i128..100_000, 0_usize..6, 0_i128..100_000);
    (number, prop_oneof![3 => named, 1 => exponent]).prop_map(
        |((negative, whole, places, fraction), (suffix, times, over))| {
            let scale = 10_i128.pow(u32::try_from(places).unwrap_or(0));
            let fraction = fraction % scale;
            let sign = if negative { "-" } else { "" };
            let point = if places == 0 { String::new() } else { format!(".{fraction:0places$}") };
            let (numerator, denominator) = ((whole * scale + fraction) * times * 1_000_000_000, scale * over);
            let mut nanos = (numerator + denominator - 1) / denominator;
            if suffix.ends_with('i') {
                nanos = nanos.min(i128::from(i64::MAX) * 1_000_000_000);
            }
            (format!("{sign}{whole}{point}{suffix}"), if negative { -nanos } else { nanos })
        },
    )
}

/// A quantity of any length, in any notation.
fn long() -> impl Strategy<Value = Quantity> {
    "[+-]?[0-9]{1,60}(\\.[0-9]{0,20})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})?"
        .prop_map(|text| text.parse().unwrap())
}

/// Divided and rounded away from zero.
fn rounded(nanos: i128, unit: i128) -> i128 {
    nanos / unit + nanos.signum() * i128::from(nanos % unit != 0)
}

fn saturated(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

proptest! {
    #[test]
    fn order_and_values_are_those_of_exact_numbers((one, left) in counted(), (other, right) in counted()) {
        let (a, b): (Quantity, Quantity) = (one.parse().unwrap(), other.parse().unwrap());
        prop_assert_eq!(a.cmp(&b), left.cmp(&right), "{} and {}", one, other);
        prop_assert_eq!(a.value(), saturated(rounded(left, 1_000_000_000)), "{}", one);
        prop_assert_eq!(a.milli_value(), saturated(rounded(left, 1_000_000)), "{}", one);
        prop_assert_eq!(a.is_integer(), left % 1_000_000_000 == 0, "{}", one);
        let nanos = |number: i128| format!("{number}n").parse::<Quantity>().unwrap();
        prop_assert_eq!(a.clone() + &b, nanos(left + right));
        prop_assert_eq!(a.clone() - &b, nanos(left - right));
        prop_assert_eq!(a * -3, nanos(left * -3));
    }

    #[test]
    fn what_is_written_is_read_as_the_same(quantity in long()) {
        let text = quantity.to_string();
        let again: Quantity = text.parse().unwrap();
        // A binary quantity beyond 2^63-1 can only come from a sum.
        prop_assert_eq!(&again, &quantity);
        prop_assert_eq!(again.to_string(), text.clone());
        prop_assert_eq!(Quantity::normalize(&text).unwrap(), text.as_str(), "the canonical form is kept");
        let json = serde_json::to_string(&quantity).unwrap();
        prop_assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), quantity);
    }

    #[test]
    fn sums_are_exact_at_any_length(a in long(), b in long(), factor in -9_i64..10) {
        let sum = a.clone() + &b;
        prop_assert_eq!(&(sum.clone() - &b), &a);
        prop_assert_eq!(&sum, &(b.clone() + &a));
        prop_assert_eq!(a.cmp(&b), (a.clone() - &b).sign());
        prop_assert_eq!(-(a.clone() - &b), b.clone() - &a);
        let times: Quantity = (0..factor.abs()).map(|_| a.clone()).sum();
        prop_assert_eq!(a * factor, if factor < 0 { -times } else { times });
    }

    #[test]
    fn any_notation_keeps_the_value(quantity in long()) {
        for format in [Format::DecimalSI, Format::DecimalExponent] {
            let text = quantity.clone().with_format(format).to_string();
            prop_assert_eq!(&text.parse::<Quantity>().unwrap(), &quantity);
        }
        prop_assert_eq!(quantity.clone().round_up(-9), quantity.clone());
        prop_assert!(quantity.is_negative() || quantity.clone().round_up(3) >= quantity);
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), odd in "[-+.0-9eEinumkKMGTP]{0,12}") {
        for text in [text, odd] {
            let stored = Quantity::normalize(&text);
            prop_assert_eq!(stored.is_ok(), text.trim().parse::<Quantity>().is_ok());
            if let Ok(stored) = stored {
                prop_assert_eq!(stored.parse::<Quantity>(), text.trim().parse());
            }
        }
    }
}
