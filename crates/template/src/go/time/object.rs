//! `time.Time` and `time.Duration` as values.

use crate::value::{IntType, Member, Object, Value};
use jiff::{Timestamp, Zoned};
use std::any::Any;

/// `time.Time`. Go's zero is the year 1.
#[derive(Clone, Debug)]
pub(crate) struct Time(pub Zoned);

impl Time {
    /// The zero of its type.
    pub fn zero() -> Self {
        Self(jiff::civil::date(1, 1, 1).at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap_or_default())
    }

    pub fn at(timestamp: Timestamp) -> Self {
        Self(timestamp.to_zoned(jiff::tz::TimeZone::UTC))
    }

    pub fn value(self) -> Value {
        Value::Object(std::rc::Rc::new(self))
    }

    /// The time in a value.
    pub fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Object(object) => object.any().downcast_ref(),
            _ => None,
        }
    }

    fn text(&self) -> String {
        super::format(&self.0, "2006-01-02 15:04:05.999999999 -0700 MST")
    }
}

impl Object for Time {
    fn type_name(&self) -> String {
        "time.Time".into()
    }

    fn member(&self, name: &str) -> Member {
        match name {
            "Unix" | "UnixNano" | "UnixMilli" | "Year" | "Day" | "Hour" | "Minute" | "Second"
            | "Nanosecond" | "YearDay" | "IsZero" | "Month" | "Weekday" | "String" | "UTC" => {
                Member::Method(">x")
            }
            "Format" => Member::Method("s>s"),
            "Before" | "After" | "Equal" => Member::Method("t>b"),
            "AddDate" => Member::Method("iii>t"),
            _ => Member::Missing,
        }
    }

    fn call(&self, name: &str, given: &[Value]) -> Result<Value, String> {
        let time = &self.0;
        let int = |value: i64| Ok(Value::int(value));
        let other = given.first().and_then(Self::of);
        match name {
            "Unix" => Ok(Value::int64(time.timestamp().as_second())),
            "UnixMilli" => Ok(Value::int64(time.timestamp().as_millisecond())),
            "UnixNano" => {
                Ok(Value::int64(i64::try_from(time.timestamp().as_nanosecond()).unwrap_or(i64::MAX)))
            }
            "Year" => int(i64::from(time.year())),
            "Month" => Ok(Value::Int(IntType::Month, i64::from(time.month()))),
            "Day" => int(i64::from(time.day())),
            "Hour" => int(i64::from(time.hour())),
            "Minute" => int(i64::from(time.minute())),
            "Second" => int(i64::from(time.second())),
            "Nanosecond" => int(i64::from(time.subsec_nanosecond())),
            "YearDay" => int(i64::from(time.day_of_year())),
            "Weekday" => Ok(Value::Int(IntType::Weekday, i64::from(time.weekday().to_sunday_zero_offset()))),
            "IsZero" => Ok(Value::Bool(*time == Self::zero().0)),
            "String" => Ok(self.text().into()),
            "UTC" => Ok(Self::at(time.timestamp()).value()),
            "Format" => match given.first() {
                Some(Value::Str(layout)) => Ok(super::format(time, &layout.lossy()).into()),
                _ => Err("no layout".into()),
            },
            "Before" => Ok(Value::Bool(other.is_some_and(|other| *time < other.0))),
            "After" => Ok(Value::Bool(other.is_some_and(|other| *time > other.0))),
            "Equal" => Ok(Value::Bool(other.is_some_and(|other| *time == other.0))),
            "AddDate" => {
                let number = |at: usize| match given.get(at) {
                    Some(Value::Int(_, value)) => *value,
                    _ => 0,
                };
                let span = jiff::Span::new()
                    .try_years(number(0))
                    .and_then(|span| span.try_months(number(1)))
                    .and_then(|span| span.try_days(number(2)));
                let moved = span.and_then(|span| time.checked_add(span));
                moved.map(|time| Self(time).value()).map_err(|error| error.to_string())
            }
            other => Err(format!("no method {other}")),
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.text())
    }

    fn plain(&self) -> Value {
        super::format(&self.0, "2006-01-02T15:04:05.999999999Z07:00").into()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.any().downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

/// The methods of a duration.
pub(crate) fn duration_method(name: &str) -> Option<&'static str> {
    matches!(name, "String" | "Seconds" | "Minutes" | "Hours" | "Milliseconds" | "Nanoseconds")
        .then_some(">x")
}

#[allow(clippy::cast_precision_loss)]
pub(crate) fn call_duration(nanoseconds: i64, name: &str) -> Value {
    match name {
        "Seconds" => Value::Float(nanoseconds as f64 / 1e9),
        "Minutes" => Value::Float(nanoseconds as f64 / 6e10),
        "Hours" => Value::Float(nanoseconds as f64 / 3.6e12),
        "Milliseconds" => Value::int64(nanoseconds / 1_000_000),
        "Nanoseconds" => Value::int64(nanoseconds),
        _ => super::duration(nanoseconds).into(),
    }
}
