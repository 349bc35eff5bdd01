//! Errors about a field, as Kubernetes words them: where, what kind, which value, and why.

use crate::{go, json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// What the value refers to does not exist.
    NotFound,
    /// The value is missing.
    Required,
    /// The value must be unique and is not.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is not one of an enumeration.
    NotSupported,
    /// The value would be fine elsewhere, or at another time.
    Forbidden,
    /// The value is too long; it is not repeated in the message.
    TooLong,
    /// A list has too many items.
    TooMany,
    /// A list has too few items.
    TooFew,
    /// The value is too short.
    TooShort,
    /// The checker itself failed.
    Internal,
    /// The value has another JSON type than the schema asks for.
    TypeInvalid,
}

impl ErrorKind {
    /// The reason of a Status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TooShort => "FieldValueTooShort",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::TooShort => "Too short",
            Self::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal)
    }
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Which field, such as `spec.ports[0].name`.
    pub path: String,
    /// The offending value; `None` where Kubernetes omits it.
    pub value: Option<Value>,
    /// Why, in words; may be empty.
    pub detail: String,
    /// The value as Go shows it, where that is not how JSON does: structs with their own names for their fields.
    pub shown: Option<String>,
}

impl FieldError {
    /// An error of any kind.
    pub fn new(kind: ErrorKind, path: &Path, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self { kind, path: path.to_string(), value, detail: detail.into(), shown: None }
    }

    /// A malformed value.
    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, path, Some(value.into()), detail)
    }

    /// A missing value.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, Some("".into()), detail)
    }

    /// A value that may not be set here.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, Some("".into()), detail)
    }

    /// A value that must be unique.
    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// A reference that leads nowhere.
    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// A value outside an enumeration; `supported` is shown in the order given.
    pub fn not_supported<S: AsRef<str>>(path: &Path, value: impl Into<Value>, supported: &[S]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| go::quote(value.as_ref())).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// A value of more than `max` bytes.
    pub fn too_long(path: &Path, max: usize) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(ErrorKind::TooLong, path, None, format!("may not be more than {max} {unit}"))
    }

    /// A list of `actual` items where `max` are allowed.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(ErrorKind::TooMany, path, Some(actual.into()), format!("must have at most {max} {unit}"))
    }

    /// A failure of the checker itself.
    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, path, None, detail)
    }

    /// The `reason` of a Status cause.
    pub fn reason(&self) -> &'static str {
        self.kind.reason()
    }

    /// The same, with the value shown in these words.
    #[must_use]
    pub fn showing(mut self, shown: impl Into<String>) -> Self {
        self.shown = Some(shown.into());
        self
    }

    fn shown(&self, value: &Value) -> String {
        if let Some(shown) = &self.shown {
            return shown.clone();
        }
        // Owner references are structs there, whose fields come in their own order.
        if self.path.ends_with("ownerReferences") {
            return in_order(
                value,
                &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"],
            );
        }
        bad_value(value)
    }

    /// The `message` of a Status cause: everything but the path.
    pub fn message(&self) -> String {
        let mut text = self.kind.title().to_owned();
        if let Some(value) = self.value.as_ref().filter(|_| self.kind.shows_value()) {
            text.push_str(": ");
            text.push_str(&self.shown(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.message())
    }
}

impl std::error::Error for FieldError {}

/// All errors as one text, as in a Status message: one as it is, several in brackets, repeated ones once.
pub fn aggregate<T: ToString>(errors: &[T]) -> String {
    let mut seen = BTreeSet::new();
    let texts: Vec<String> =
        errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The way to a field. Cheap to clone and to extend; rendered only when an error needs it.
#[derive(Debug, Clone, Default)]
pub struct Path(Option<Arc<Step>>);

#[derive(Debug)]
struct Step {
    parent: Path,
    segment: Segment,
}

#[derive(Debug)]
enum Segment {
    Name(Box<str>),
    Index(usize),
    Key(Box<str>),
}

impl Path {
    /// No path at all, shown as `<nil>`: the object itself.
    pub fn root() -> Self {
        Self(None)
    }

    /// A path that begins with a field.
    pub fn new(name: &str) -> Self {
        Self::root().child(name)
    }

    /// A field of what this path leads to.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        self.then(Segment::Name(name.into()))
    }

    /// An item of the list that this path leads to.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Segment::Index(index))
    }

    /// An entry of the map that this path leads to.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(Segment::Key(key.into()))
    }

    /// Is this the object itself?
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    fn then(&self, segment: Segment) -> Self {
        Self(Some(Arc::new(Step { parent: self.clone(), segment })))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_none() {
            return out.write_str("<nil>");
        }
        let mut steps = Vec::new();
        let mut here = self;
        while let Some(step) = &here.0 {
            steps.push(&step.segment);
            here = &step.parent;
        }
        for (position, segment) in steps.into_iter().rev().enumerate() {
            match segment {
                Segment::Name(name) if name.is_empty() => out.write_str("[]")?,
                Segment::Name(name) if position == 0 => out.write_str(name)?,
                Segment::Name(name) => write!(out, ".{name}")?,
                Segment::Index(index) => write!(out, "[{index}]")?,
                Segment::Key(key) => write!(out, "[{key}]")?,
            }
        }
        Ok(())
    }
}

/// A value as a field error shows it: strings quoted, numbers plain, the rest as JSON.
fn bad_value(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Number(value) => go::number(value),
        other => json::to_string(other),
    }
}

/// JSON with the fields of objects in the given order.
fn in_order(value: &Value, order: &[&str]) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| in_order(item, order)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let ordered = order.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
            let fields: Vec<String> =
                ordered.map(|(name, value)| format!("\"{name}\":{}", json::to_string(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        scalar => bad_value(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_read_as_kubernetes_words_them() {
        let path = Path::new("spec").child("list").index(2).key("a").child("b");
        for (error, text) in [
            (FieldError::invalid(&path, "x", "why"), r#"spec.list[2][a].b: Invalid value: "x": why"#),
            (FieldError::invalid(&path, 1.0, "why"), r#"spec.list[2][a].b: Invalid value: 1: why"#),
            (FieldError::invalid(&path, 1e6, "why"), r#"spec.list[2][a].b: Invalid value: 1e+06: why"#),
            (FieldError::invalid(&path, json!({"a": 1}), ""), r#"spec.list[2][a].b: Invalid value: {"a":1}"#),
            (FieldError::invalid(&path, Value::Null, "no"), r#"spec.list[2][a].b: Invalid value: null: no"#),
            (FieldError::required(&path, ""), "spec.list[2][a].b: Required value"),
            (FieldError::forbidden(&path, "no"), "spec.list[2][a].b: Forbidden: no"),
            (FieldError::duplicate(&path, "x"), r#"spec.list[2][a].b: Duplicate value: "x""#),
            (
                FieldError::not_supported(&path, "x", &["a", "b"]),
                r#"spec.list[2][a].b: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (FieldError::too_long(&path, 5), "spec.list[2][a].b: Too long: may not be more than 5 bytes"),
            (FieldError::too_many(&path, 5, 1), "spec.list[2][a].b: Too many: 5: must have at most 1 item"),
            (FieldError::internal(&Path::root(), "oops"), "<nil>: Internal error: oops"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn an_aggregate_says_everything_once() {
        let a = FieldError::required(&Path::new("a"), "");
        let b = FieldError::required(&Path::new("b"), "");
        assert_eq!(aggregate(std::slice::from_ref(&a)), "a: Required value");
        assert_eq!(aggregate(&[a.clone(), b, a]), "[a: Required value, b: Required value]");
    }
}
