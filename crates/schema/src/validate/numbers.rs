//! Numbers: `minimum`, `maximum`, `multipleOf`, and the ranges of formats.

use super::outcome::{Outcome, Trail};
use crate::go;
use crate::schema::{Schema, Type};
use serde_json::{Number, Value};

/// An integer or a float, each compared in its own arithmetic.
#[derive(Clone, Copy)]
enum Native {
    Integer(i64),
    Float(f64),
}

pub(super) fn check(
    schema: &Schema,
    format: Option<&str>,
    number: &Number,
    trail: &Trail<'_>,
    out: &mut Outcome,
) {
    let native = match number.as_i64() {
        Some(integer) if !number.is_f64() => Native::Integer(integer),
        _ => Native::Float(number.as_f64().unwrap_or_default()),
    };
    let kind = schema.kind.filter(|_| !schema.int_or_string);
    let format = format.filter(|format| match kind {
        Some(Type::Integer) => matches!(*format, "int32" | "int64"),
        Some(Type::Number) => matches!(*format, "float" | "double"),
        _ => false,
    });
    let range = Range { kind, format };
    range.check(native, "Checked", trail, out);
    let shown = || Value::Number(number.clone());
    if let Some(factor) = schema.multiple_of {
        let fits = range.check(Native::Float(factor), "MultipleOf", trail, out);
        match (native, fits) {
            (Native::Integer(value), true) => {
                let factor = factor as i64;
                if factor <= 0 {
                    not_positive(Native::Integer(factor), trail, out);
                } else if value % factor != 0 {
                    out.invalid(trail, shown(), &format!("should be a multiple of {factor}"));
                }
            }
            _ if factor <= 0.0 => not_positive(Native::Float(factor), trail, out),
            _ => {
                let value = native.float();
                let quotient = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
                if !is_json_integer(quotient) {
                    out.invalid(trail, shown(), &format!("should be a multiple of {}", go::float(factor)));
                }
            }
        }
    }
    if let Some(min) = schema.minimum {
        let fits = range.check(Native::Float(min), "Minimum boundary", trail, out);
        let (below, equal, bound) = native.compare(min, fits);
        if below || (equal && schema.exclusive_minimum) {
            let or_equal = if schema.exclusive_minimum { "" } else { "or equal to " };
            out.invalid(trail, shown(), &format!("should be greater than {or_equal}{bound}"));
        }
    }
    if let Some(max) = schema.maximum {
        let fits = range.check(Native::Float(max), "Maximum boundary", trail, out);
        let (below, equal, bound) = native.compare(max, fits);
        if !below && (!equal || schema.exclusive_maximum) {
            let or_equal = if schema.exclusive_maximum { "" } else { "or equal to " };
            out.invalid(trail, shown(), &format!("should be less than {or_equal}{bound}"));
        }
    }
}

fn not_positive(factor: Native, trail: &Trail<'_>, out: &mut Outcome) {
    let text = format!("factor MultipleOf declared for {trail} must be positive: {}", factor.text());
    out.plain(crate::field::ErrorKind::Invalid, trail, Some(factor.value()), &text, text.clone());
}

impl Native {
    fn float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => go::float(float),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Integer(integer) => integer.into(),
            Self::Float(float) => float.into(),
        }
    }

    /// Below the bound, equal to it, and the bound as messages show it. An integer is compared with the bound's whole
    /// part if the bound is of the integer's type.
    fn compare(self, bound: f64, same_type: bool) -> (bool, bool, String) {
        match self {
            Self::Integer(value) if same_type => {
                let bound = bound as i64;
                (value < bound, value == bound, bound.to_string())
            }
            _ => {
                let value = self.float();
                (value < bound, value == bound, go::float(bound))
            }
        }
    }
}

/// What a number's type and format can hold.
struct Range<'a> {
    kind: Option<Type>,
    format: Option<&'a str>,
}

impl Range<'_> {
    /// Reports a number that does not fit, under the name of its role.
    fn check(&self, number: Native, role: &str, trail: &Trail<'_>, out: &mut Outcome) -> bool {
        let fits = match (self.kind, self.format) {
            (Some(Type::Integer), Some("int32")) => whole(number).is_some_and(|n| i32::try_from(n).is_ok()),
            (Some(Type::Integer), _) => whole(number).is_some(),
            (Some(Type::Number), Some("float")) => (number.float() as f32).is_finite(),
            _ => true,
        };
        if !fits {
            let kind = self.kind.map_or("", Type::name);
            let format = match self.format {
                Some(format) => format!("with format {format}"),
                None => "(default format)".to_owned(),
            };
            out.overall(format!("{role} value must be of type {kind} {format} in {trail}"));
        }
        fits
    }
}

fn whole(number: Native) -> Option<i64> {
    match number {
        Native::Integer(integer) => Some(integer),
        // Below 2^63 the cast is exact for floats without a fraction.
        Native::Float(float) => (float.fract() == 0.0 && (i64::MIN as f64..i64::MAX as f64).contains(&float))
            .then_some(float as i64),
    }
}

/// Is a float an integer as far as JSON's readers can tell? A relative error of a billionth is forgiven.
pub(super) fn is_json_integer(float: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if !float.is_finite() || !(-MOST - 1.0..=MOST).contains(&float) {
        return false;
    }
    let (whole, magnitude) = (float.trunc(), float.abs());
    let off = (float - whole).abs();
    if off == 0.0 {
        true
    } else if whole == 0.0 {
        off < 1e-9 * f64::MIN_POSITIVE
    } else {
        off / (magnitude + whole.abs()).min(f64::MAX) < 1e-9
    }
}
