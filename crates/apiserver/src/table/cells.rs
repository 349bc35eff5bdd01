//! Columns and what stands in them, as values.

use super::human;
use jiff::Timestamp;
use serde_json::Value;

/// A column of a built-in kind's table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) format: &'static str,
    /// 0 is always shown, more only where there is room.
    pub(super) priority: u8,
    pub(super) cell: Cell,
}

/// Where a cell's content comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// The text at a path; what stands there if there is none.
    Text(&'static str, &'static str),
    /// The number at a path, or 0.
    Number(&'static str),
    /// True or false at a path; what stands there if there is none.
    Bool(&'static str, bool),
    /// How many there are at these paths together.
    Count(&'static [&'static str]),
    /// How long ago the time at a path was.
    Ago(&'static str),
    /// The time at a path as it is.
    Time(&'static str),
    /// Anything else.
    Of(fn(&Value, Timestamp) -> Value),
}

impl Column {
    pub(super) const fn text(name: &'static str, cell: Cell) -> Self {
        Self { name, kind: "string", format: "", priority: 0, cell }
    }

    pub(super) const fn integer(name: &'static str, cell: Cell) -> Self {
        Self { kind: "integer", ..Self::text(name, cell) }
    }

    pub(super) const fn boolean(name: &'static str, cell: Cell) -> Self {
        Self { kind: "boolean", ..Self::text(name, cell) }
    }

    pub(super) const fn date(name: &'static str, cell: Cell) -> Self {
        Self { kind: "date", ..Self::text(name, cell) }
    }

    /// Shown only where there is room.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    pub(super) const fn named(self) -> Self {
        Self { format: "name", ..self }
    }
}

pub(super) const NAME: Column = Column::text("Name", Cell::Text("/metadata/name", "")).named();
pub(super) const AGE: Column = Column::text("Age", Cell::Ago("/metadata/creationTimestamp"));

impl Cell {
    pub(super) fn of(self, object: &Value, now: Timestamp) -> Value {
        match self {
            Self::Text(path, otherwise) => match object.pointer(path) {
                Some(Value::String(text)) if !text.is_empty() => text.as_str().into(),
                Some(Value::Number(number)) => number.to_string().into(),
                _ => otherwise.into(),
            },
            Self::Number(path) => number(object, path).into(),
            Self::Bool(path, otherwise) => {
                object.pointer(path).and_then(Value::as_bool).unwrap_or(otherwise).into()
            }
            Self::Count(paths) => paths.iter().map(|path| count(object, path)).sum::<usize>().into(),
            Self::Ago(path) => human::since(object.pointer(path), now).into(),
            Self::Time(path) => object.pointer(path).cloned().unwrap_or(Value::Null),
            Self::Of(make) => make(object, now),
        }
    }
}

/// The text at a path, or nothing.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The first text that is not empty.
pub(super) fn first<'a>(texts: &[&'a str]) -> &'a str {
    texts.iter().find(|text| !text.is_empty()).copied().unwrap_or_default()
}

/// The number at a path, or 0.
pub(super) fn number(object: &Value, path: &str) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(0)
}

/// The list at a path, or an empty one.
pub(super) fn items<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts at a path.
pub(super) fn texts<'a>(object: &'a Value, path: &str) -> Vec<&'a str> {
    items(object, path).iter().filter_map(Value::as_str).collect()
}

fn count(object: &Value, path: &str) -> usize {
    match object.pointer(path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    }
}

/// Is there something at a path?
pub(super) fn has(object: &Value, path: &str) -> bool {
    object.pointer(path).is_some_and(|value| !value.is_null())
}

/// The status of a condition, or nothing.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = items(object, "/status/conditions");
    conditions.iter().find(|known| text(known, "/type") == kind).map_or("", |found| text(found, "/status"))
}

/// `a=b,c=d`, or that there is none.
pub(super) fn labels(object: &Value, path: &str) -> String {
    let pairs = object.pointer(path).and_then(Value::as_object).into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector as kubectl's flags would write it; `none` if it selects everything.
pub(super) fn selector(object: &Value, path: &str, none: &str) -> String {
    let Some(selector) = object.pointer(path) else { return none.to_owned() };
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(&str, String)> = equal
        .map(|(name, value)| (name.as_str(), format!("{name}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in items(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values = texts(expression, "/values");
        values.sort_unstable();
        let values = values.join(",");
        parts.push((
            key,
            match text(expression, "/operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            },
        ));
    }
    parts.sort_by_key(|(key, _)| *key);
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    if parts.is_empty() { none.to_owned() } else { parts.join(",") }
}

/// At most `most` of them, and how many more there are.
pub(super) fn some_of(list: &[String], most: usize, none: &str) -> String {
    match list.len() {
        0 => none.to_owned(),
        length if length > most => format!("{} + {} more...", list[..most].join(","), length - most),
        _ => list.join(","),
    }
}
