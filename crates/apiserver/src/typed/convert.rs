//! The conversion itself: one walk over the value and its type.

use super::{Field, Omit, Struct, Structs, Type, shape, time};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;
use windlass_schema::Quantity;

/// Why a value does not fit its type, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// `value` as Go would write it after reading it as the struct `definition`. Unknown fields are dropped, and their
/// paths, beginning with `prefix`, put into `unknown`.
pub(crate) fn convert<'a>(
    structs: &'a Structs,
    definition: &'a str,
    value: Value,
    prefix: &str,
    unknown: &'a mut Vec<String>,
) -> Result<Value, Failure> {
    let mut walk =
        Walk { structs, unknown, path: prefix.to_owned(), fields: Vec::new(), within: None, failure: None };
    let converted = walk.structure(definition, Some(value).filter(|value| !value.is_null()));
    match walk.failure {
        Some(failure) => Err(failure),
        None => Ok(converted),
    }
}

/// `value` as it is read back after it was stored: lists with nothing in them are not told from none.
pub(crate) fn settled(structs: &Structs, definition: &str, mut value: Value) -> Value {
    settle(structs, &Type::Struct(definition.to_owned()), &mut value);
    value
}

fn settle(structs: &Structs, kind: &Type, value: &mut Value) {
    match (kind, value) {
        (Type::Pointer(inner), value) => settle(structs, inner, value),
        (Type::List(_), value) if value.as_array().is_some_and(Vec::is_empty) => *value = Value::Null,
        (Type::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| settle(structs, inner, item));
        }
        (Type::Map(inner), Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| settle(structs, inner, entry));
        }
        (Type::Struct(definition), Value::Object(object)) => {
            let Some(known) = structs.get(definition) else { return };
            for (name, value) in object.iter_mut() {
                if let Some(field) = known.fields.get(name) {
                    settle(structs, &field.kind, value);
                }
            }
        }
        _ => {}
    }
}

struct Walk<'a> {
    structs: &'a Structs,
    unknown: &'a mut Vec<String>,
    /// With indices and keys, for unknown fields.
    path: String,
    /// Without them, for wrong types.
    fields: Vec<&'a str>,
    /// The innermost struct.
    within: Option<&'a str>,
    /// The first wrong type: as in Go, the walk goes on and the first is told.
    failure: Option<Failure>,
}

impl<'a> Walk<'a> {
    fn fail(&mut self, text: String) -> Value {
        self.failure.get_or_insert(Failure(text));
        Value::Null
    }

    fn wrong(&mut self, found: &str, wanted: &Type) -> Value {
        let wanted = wanted.go_name();
        let text = match (&self.within, self.fields.is_empty()) {
            (Some(within), false) => {
                let within = within.rsplit('.').next().unwrap_or_default();
                let path = self.fields.join(".");
                format!(
                    "json: cannot unmarshal {found} into Go struct field {within}.{path} of type {wanted}"
                )
            }
            _ => format!("json: cannot unmarshal {found} into Go value of type {wanted}"),
        };
        self.fail(text)
    }

    /// A missing value and `null` both leave Go's zero value, and out comes what Go writes for it.
    fn convert(&mut self, kind: &'a Type, value: Option<Value>) -> Value {
        let value = value.filter(|value| !value.is_null());
        match kind {
            Type::Text(_) => match value {
                None => Value::String(String::new()),
                Some(Value::String(text)) => Value::String(text),
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Bool(_) => match value {
                None => Value::Bool(false),
                Some(Value::Bool(value)) => Value::Bool(value),
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Int { bits, signed, .. } => match value {
                None => Value::from(0),
                Some(Value::Number(number)) => match fits(&number, *bits, *signed) {
                    Some(number) => Value::Number(number),
                    None => self.wrong(&format!("number {number}"), kind),
                },
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Float(_) => match value {
                None => Value::from(0),
                Some(Value::Number(number)) => Value::Number(number),
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Bytes => match value {
                None => Value::Null,
                Some(Value::String(text)) => self.bytes(&text),
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Time | Type::MicroTime => match value {
                None => Value::Null,
                Some(Value::String(text)) => {
                    let micro = matches!(kind, Type::MicroTime);
                    match time::rewrite(&text, micro) {
                        Ok(text) => Value::String(text),
                        Err(text) => self.fail(text),
                    }
                }
                Some(other) => self
                    .fail(format!("json: cannot unmarshal {} into Go value of type string", shape(&other))),
            },
            Type::Quantity => {
                let text = match value {
                    None => return Value::String("0".to_owned()),
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                };
                let rewritten = match Quantity::normalize(&text) {
                    Ok(Cow::Borrowed(kept)) if kept.len() == text.len() => None,
                    Ok(normal) => Some(normal.into_owned()),
                    Err(why) => return self.fail(why.to_string()),
                };
                Value::String(rewritten.unwrap_or(text))
            }
            Type::IntOrString => match value {
                None => Value::from(0),
                Some(Value::String(text)) => Value::String(text),
                some => self.int_or_string(some),
            },
            Type::Any => value.unwrap_or(Value::Null),
            Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => self.schema_or(kind, value),
            Type::Pointer(inner) => match value {
                None => Value::Null,
                some => self.convert(inner, some),
            },
            Type::List(inner) => match value {
                None => Value::Null,
                Some(Value::Array(items)) => Value::Array(self.items(inner, items)),
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Map(inner) => match value {
                None => Value::Null,
                Some(Value::Object(entries)) => Value::Object(self.entries(inner, entries)),
                Some(other) => self.wrong(shape(&other), kind),
            },
            Type::Struct(definition) => self.structure(definition, value),
        }
    }

    fn structure(&mut self, definition: &'a str, value: Option<Value>) -> Value {
        match value {
            None => self.object(definition, Map::new()),
            Some(Value::Object(object)) => self.object(definition, object),
            Some(other) => self.wrong(shape(&other), &Type::Struct(definition.to_owned())),
        }
    }

    /// Reads itself, and so its errors know nothing of where it is.
    fn int_or_string(&mut self, value: Option<Value>) -> Value {
        let found = match value {
            Some(Value::Number(number)) => match fits(&number, 32, true) {
                Some(number) => return Value::Number(number),
                None => format!("number {number}"),
            },
            other => shape(&other.unwrap_or_default()).to_owned(),
        };
        self.wrong(&found, &Type::Int { bits: 32, signed: true, name: None })
    }

    fn schema_or(&mut self, kind: &Type, value: Option<Value>) -> Value {
        static SCHEMAS: LazyLock<Type> = LazyLock::new(|| Type::Struct(SCHEMA.to_owned()));
        match (kind, value) {
            (_, Some(Value::Object(object))) => self.object(SCHEMA, object),
            (Type::SchemaOrBool, Some(Value::Bool(allowed))) => Value::Bool(allowed),
            (Type::SchemaOrArray, Some(Value::Array(items))) => Value::Array(self.items(&SCHEMAS, items)),
            (Type::SchemaOrStrings, Some(Value::Array(items))) => {
                Value::Array(self.items(&const { Type::Text(None) }, items))
            }
            (_, None) => Value::Null,
            (Type::SchemaOrBool, Some(_)) => self.fail("boolean or JSON schema expected".to_owned()),
            (_, Some(other)) => self.wrong(shape(&other), kind),
        }
    }

    fn items(&mut self, inner: &'a Type, items: Vec<Value>) -> Vec<Value> {
        let length = self.path.len();
        let mut converted = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            _ = write!(self.path, "[{index}]");
            converted.push(self.convert(inner, Some(item)));
            self.path.truncate(length);
        }
        converted
    }

    fn entries(&mut self, inner: &'a Type, entries: Map<String, Value>) -> Map<String, Value> {
        let length = self.path.len();
        let mut converted = Map::new();
        for (key, value) in entries {
            self.step(&key);
            let value = match (inner, self.convert(inner, Some(value))) {
                // Stored as no bytes at all, and read back as that.
                (Type::Bytes, Value::Null) => Value::String(String::new()),
                (_, value) => value,
            };
            self.path.truncate(length);
            converted.insert(key, value);
        }
        converted
    }

    /// Members and fields come in the same order, so that one walk over what was given and what is written anyhow meets all.
    fn object(&mut self, definition: &'a str, object: Map<String, Value>) -> Value {
        let Some(known) = self.structs.get(definition) else { return Value::Object(object) };
        let outer = self.within.replace(definition);
        let mut converted = Vec::with_capacity(object.len().max(known.written.len()));
        let mut unknown = Vec::new();
        let mut written = known.written.iter().peekable();
        for (name, value) in object {
            while let Some(missing) = written.next_if(|missing| **missing < name) {
                self.missing(known, missing, &mut converted);
            }
            let is_written = written.next_if_eq(&&name).is_some();
            let Some((known_as, field)) = known.fields.get_key_value(&name) else {
                unknown.push(name);
                continue;
            };
            if value.is_null() && !is_written {
                continue;
            }
            self.field(known_as, field, name, Some(value), &mut converted);
        }
        for missing in written {
            self.missing(known, missing, &mut converted);
        }
        let length = self.path.len();
        for name in unknown {
            self.step(&name);
            self.unknown.push(self.path.clone());
            self.path.truncate(length);
        }
        self.within = outer;
        Value::Object(converted.into_iter().collect())
    }

    fn missing(&mut self, known: &'a Struct, name: &'a str, converted: &mut Vec<(String, Value)>) {
        if let Some(field) = known.fields.get(name) {
            self.field(name, field, name.to_owned(), None, converted);
        }
    }

    fn field(
        &mut self,
        known_as: &'a str,
        field: &'a Field,
        name: String,
        given: Option<Value>,
        converted: &mut Vec<(String, Value)>,
    ) {
        let length = self.path.len();
        self.step(known_as);
        self.fields.push(known_as);
        let value = self.convert(&field.kind, given);
        if !omitted(field, &value) {
            converted.push((name, value));
        }
        self.fields.pop();
        self.path.truncate(length);
    }

    fn step(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// Go's decoder skips line breaks in base64, and its encoder writes none.
    fn bytes(&mut self, text: &str) -> Value {
        const CODEC: GeneralPurpose = GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new());
        let plain: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
        match CODEC.decode(&plain) {
            Ok(bytes) => Value::String(CODEC.encode(bytes)),
            Err(error) => {
                let at = match error {
                    base64::DecodeError::InvalidByte(at, _)
                    | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                    // Told of the group of four in which it is.
                    base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                        plain.len() / 4 * 4
                    }
                };
                self.fail(format!("illegal base64 data at input byte {at}"))
            }
        }
    }
}

fn omitted(field: &Field, value: &Value) -> bool {
    match (field.omit, &field.kind) {
        (Omit::Never, _) => false,
        (Omit::Zero, _) => value.is_null(),
        // An empty struct is not empty to Go, and neither is what writes itself.
        (
            Omit::Empty,
            Type::Struct(_) | Type::Time | Type::MicroTime | Type::Quantity | Type::IntOrString,
        ) => false,
        (Omit::Empty, Type::Pointer(_)) => value.is_null(),
        (Omit::Empty, _) => match value {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
        },
    }
}

/// Whether Go writes nothing for a field that was not given.
pub(super) fn omitted_if_missing(field: &Field) -> bool {
    let written = match field.omit {
        Omit::Never => true,
        Omit::Zero => matches!(
            field.kind,
            Type::Text(_)
                | Type::Bool(_)
                | Type::Int { .. }
                | Type::Float(_)
                | Type::Quantity
                | Type::IntOrString
                | Type::Struct(_)
        ),
        Omit::Empty => matches!(
            field.kind,
            Type::Struct(_) | Type::Time | Type::MicroTime | Type::Quantity | Type::IntOrString
        ),
    };
    !written
}

fn fits(number: &Number, bits: u8, signed: bool) -> Option<Number> {
    if signed {
        let value = number.as_i64()?;
        let most = i64::MAX >> (64 - bits);
        (value <= most && value >= -most - 1).then(|| value.into())
    } else {
        let value = number.as_u64()?;
        (value <= u64::MAX >> (64 - bits)).then(|| value.into())
    }
}
