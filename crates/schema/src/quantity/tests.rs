//! Quantities as Kubernetes 1.36 reads and writes them: each row was taken from its `resource.Quantity`.

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn the_api_rewrites_what_is_not_canonical() {
    for (given, stored) in [
        ("1000m", "1"),
        ("100m", "100m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1Gi", "1Gi"),
        ("1.Ki", "1.Ki"),
        ("1.Ei", "1Ei"),
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("1000", "1k"),
        ("1234", "1234"),
        ("12e6", "12e6"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1e4", "10e3"),
        ("1e-12", "1e-9"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.500", "1.500"),
        ("+5", "+5"),
        ("-1000m", "-1"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("8Ki", "8Ki"),
        ("16Gi", "16Gi"),
        ("8Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("9999999999999999999", "9999999999999999999"),
        ("10000000000000000000", "10E"),
        (" 1 ", "1"),
        // A number may be missing, as long as little is asked of it.
        ("+", "0"),
        (".", "0"),
        ("m", "0"),
        ("Ki", "0"),
    ] {
        assert_eq!(Quantity::normalize(given).as_deref(), Ok(stored), "{given}");
    }
}

#[test]
fn nothing_is_lost_beyond_the_largest_suffix() {
    assert_eq!(quantity("1000E").to_string(), "1e21");
    assert_eq!(quantity("123456789012345678901234567890123456789012345").to_string(), {
        "123456789012345678901234567890123456789012345"
    });
    assert_eq!((quantity("7Ei") * 1024 * 1024).to_string(), "7340032Ei");
    let long = quantity("123456789012345678901234567890123456789012345.5Ki").with_format(Format::BinarySI);
    assert_eq!(long.value(), i64::MAX, "a binary quantity is capped");
    let long = (quantity("1Ei") * i64::MAX) * i64::MAX;
    assert_eq!(long.to_string(), format!("{}Ei", i128::from(i64::MAX).pow(2)));
}

#[test]
fn what_is_no_quantity_is_an_error_in_kubernetes_words() {
    use ParseQuantityError::{Format, Number, Suffix};
    for (text, why) in [
        ("", Format),
        ("a", Format),
        ("1z", Format),
        (" 1", Format),
        ("1 Gi", Format),
        ("1,5", Format),
        ("--1", Suffix),
        ("1é", Format),
        ("1KiKi", Suffix),
        ("1e", Suffix),
        ("1+5", Suffix),
        ("1K", Suffix),
        ("1e999999999999", Suffix),
        ("e-20", Number),
        ("Ei", Number),
        (".Ei", Number),
    ] {
        assert_eq!(text.parse::<Quantity>(), Err(why), "{text:?}");
    }
    assert_eq!(Quantity::normalize("x").unwrap_err().to_string(), {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    });
}

#[test]
fn sums_are_written_in_the_notation_of_their_first_part() {
    for (left, right, sum, difference) in [
        ("1", "500m", "1500m", "500m"),
        ("1Gi", "1Mi", "1025Mi", "1023Mi"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("500m", "500m", "1", "0"),
        ("1k", "24", "1024", "976"),
        ("1Ki", "0.5", "1024500m", "1023500m"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        (
            "1e30",
            "1n",
            "1000000000000000000000000000000000000001e-9",
            "999999999999999999999999999999999999999e-9",
        ),
    ] {
        assert_eq!((quantity(left) + quantity(right)).to_string(), sum, "{left} + {right}");
        assert_eq!((quantity(left) - quantity(right)).to_string(), difference, "{left} - {right}");
    }
    let all = ["1", "2", "500m"].map(quantity);
    assert_eq!(all.iter().sum::<Quantity>().to_string(), "3500m");
}

#[test]
fn values_are_rounded_up_and_saturate() {
    for (text, value, milli) in [
        ("1", 1, 1000),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1500m", 2, 1500),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        ("2k", 2000, 2_000_000),
        ("1E", 1_000_000_000_000_000_000, i64::MAX),
        ("1e2000000000", i64::MAX, i64::MAX),
        ("-1e2000000000", i64::MIN, i64::MIN),
        ("99999999999999999999999999999999999999999999", i64::MAX, i64::MAX),
    ] {
        assert_eq!((quantity(text).value(), quantity(text).milli_value()), (value, milli), "{text}");
    }
    assert_eq!((quantity("1000m").as_i64(), quantity("1m").as_i64()), (Some(1), None));
    assert!(quantity("1.5Ki").is_integer() && !quantity("1.5").is_integer());
    for (given, rounded) in [("1u", "1m"), ("1m", "1m"), ("1500u", "2m"), ("3", "3")] {
        assert_eq!(quantity(given).round_up(-3).to_string(), rounded);
    }
}

#[test]
fn an_exponent_of_ten_digits_takes_neither_time_nor_memory() {
    let (large, small) = (quantity("12345678901234567890e2147483646"), quantity("1n"));
    assert!(large > small && -large.clone() < small);
    assert_eq!(large.clone() + small, large, "the smaller part is left out");
    assert_eq!(quantity("1234567890123456789e-2000000000").to_string(), "1e-9");
    assert_eq!(large.clone().with_format(Format::BinarySI).to_string(), large.to_string());
    assert_eq!(quantity(&quantity("1000e2147483647").to_string()), quantity("1000e2147483647"));
}

#[test]
fn json_has_strings_and_takes_numbers() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|quantity| quantity.to_string());
    for (json, text) in [("\"1.5Gi\"", "1536Mi"), ("2", "2"), ("-1", "-1"), ("0.5", "500m"), ("\" 1 \"", "1")]
    {
        assert_eq!(read(json).unwrap(), text);
    }
    assert!(read("true").is_err() && read("\"x\"").is_err() && read("null").is_err());
    assert_eq!(serde_json::to_string(&quantity("1000m")).unwrap(), "\"1\"");
}
