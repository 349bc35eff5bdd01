//! Type conversions.

use super::super::value::{Failure, Meter, Outcome, Text, Value};
use super::{Row, print, time};

pub(super) const ROWS: &[Row] = &[
    Row("type", "(A) type(A)", |meter, values| {
        meter.charge(1)?;
        values.first().map(|value| Value::Type(value.type_name())).ok_or_else(Failure::no_such_overload)
    }),
    Row("dyn", "(A) dyn", |meter, values| {
        meter.charge(1)?;
        values.first().cloned().ok_or_else(Failure::no_such_overload)
    }),
    Row("bool", "(bool) bool | (string) bool", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Bool(_)] => Ok(values[0].clone()),
            [Value::String(text)] => match &**text {
                "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
                "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
                _ => Err(conversion("string", "bool")),
            },
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("bytes", "(bytes) bytes | (string) bytes", |meter, values| match values {
        [Value::Bytes(_)] => Ok(values[0].clone()),
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("double", "(double) double | (int) double | (string) double | (uint) double", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Double(_)] => Ok(values[0].clone()),
            [Value::Int(number)] => Ok(Value::Double(*number as f64)),
            [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
            [Value::String(text)] => double(text).map(Value::Double),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row(
        "int",
        "(int) int | (double) int | (duration) int | (string) int | (timestamp) int | (uint) int",
        |meter, values| {
            meter.charge(1)?;
            let overflow = || Failure::new("integer overflow");
            match values {
                [Value::Int(_)] => Ok(values[0].clone()),
                [Value::Uint(number)] => i64::try_from(*number).map(Value::Int).map_err(|_| overflow()),
                [Value::Double(number)] => {
                    let fits =
                        *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_807.0;
                    if fits { Ok(Value::Int(*number as i64)) } else { Err(overflow()) }
                }
                [Value::String(text)] => {
                    text.parse().map(Value::Int).map_err(|_| conversion("string", "int"))
                }
                [Value::Timestamp(time)] => {
                    Ok(Value::Int(time.as_nanosecond().div_euclid(1_000_000_000) as i64))
                }
                [Value::Duration(nanoseconds)] => Ok(Value::Int(*nanoseconds)),
                _ => Err(Failure::no_such_overload()),
            }
        },
    ),
    Row("uint", "(uint) uint | (double) uint | (int) uint | (string) uint", |meter, values| {
        meter.charge(1)?;
        let overflow = || Failure::new("unsigned integer overflow");
        match values {
            [Value::Uint(_)] => Ok(values[0].clone()),
            [Value::Int(number)] => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
            [Value::Double(number)] => {
                let fits = *number > -1.0 && *number < 18_446_744_073_709_551_615.0;
                if fits { Ok(Value::Uint(*number as u64)) } else { Err(overflow()) }
            }
            [Value::String(text)] => text.parse().map(Value::Uint).map_err(|_| conversion("string", "uint")),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row(
        "string",
        "(string) string | (bool) string | (bytes) string | (double) string | (duration) string | (int) string | \
         (timestamp) string | (uint) string | (ip) string | (cidr) string",
        string,
    ),
    Row("duration", "(duration) duration | (int) duration | (string) duration", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Duration(_)] => Ok(values[0].clone()),
            [Value::Int(nanoseconds)] => Ok(Value::Duration(*nanoseconds)),
            [Value::String(text)] => time::duration(text)
                .map(Value::Duration)
                .map_err(|_| conversion("string", "google.protobuf.Duration")),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("timestamp", "(timestamp) timestamp | (int) timestamp | (string) timestamp", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Timestamp(_)] => Ok(values[0].clone()),
            [Value::Int(seconds)] => {
                let nanoseconds = i128::from(*seconds) * 1_000_000_000;
                time::at(nanoseconds).map(Value::Timestamp)
            }
            [Value::String(text)] => {
                let parsed = time::timestamp(text);
                parsed.map(Value::Timestamp).map_err(|_| conversion("string", "google.protobuf.Timestamp"))
            }
            _ => Err(Failure::no_such_overload()),
        }
    }),
];

fn conversion(from: &str, to: &str) -> Failure {
    Failure::new(format!("type conversion error from '{from}' to '{to}'"))
}

fn double(text: &str) -> Result<f64, Failure> {
    let plain = text.strip_prefix(['+', '-']).unwrap_or(text);
    let shaped = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || ["inf", "infinity", "nan"].contains(&plain.to_ascii_lowercase().as_str());
    text.parse().ok().filter(|_| shaped).ok_or_else(|| conversion("string", "double"))
}

fn string<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Outcome<'a> {
    match values {
        [Value::String(_)] => {
            meter.charge(1)?;
            Ok(values[0].clone())
        }
        [Value::Bytes(octets)] => {
            meter.traverse(octets.len())?;
            match std::str::from_utf8(octets) {
                Ok(text) => Ok(Value::String(Text::Owned(text.into()))),
                Err(_) => Err(Failure::new("invalid UTF-8 in bytes, cannot convert to string")),
            }
        }
        [value] => {
            meter.charge(1)?;
            print::plain(value).map(Value::text).ok_or_else(Failure::no_such_overload)
        }
        _ => Err(Failure::no_such_overload()),
    }
}
