//! Decodes protobuf messages to JSON.

use super::wire::{BYTES, FIXED64, Reader, VARINT, Wire, wrong};
use super::{Field, Kind, Messages, ProtoError, Shape, leaf};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

/// How deep messages may be in each other. Only schemas nest without end.
const DEEPEST: usize = 200;

/// How many values a message may hold: two bytes are enough for one, and each costs far more memory than that.
const MOST: usize = 1_000_000;

/// Decodes a message of the type `message` to JSON. Unknown fields are skipped.
pub fn decode<M: Messages>(messages: &M, message: &str, bytes: &[u8]) -> Result<Value, ProtoError> {
    let mut object = Map::new();
    Decoder { messages, depth: 0, left: MOST }.message(message, bytes, &mut object)?;
    let value = Value::Object(object);
    // What is read here is written as JSON and must be readable again.
    if deeper_than(crate::json::MAX_DEPTH, &value) { Err(too_deep()) } else { Ok(value) }
}

fn deeper_than(levels: usize, value: &Value) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper_than(levels - 1, item)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| deeper_than(levels - 1, field)),
        _ => false,
    }
}

fn too_deep() -> ProtoError {
    ProtoError("exceeded max depth".to_owned())
}

/// As Go shows a string that is not UTF-8.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Decoder<'m, M> {
    messages: &'m M,
    depth: usize,
    left: usize,
}

impl<'m, M: Messages> Decoder<'m, M> {
    /// Reads into `object`: what is there already is merged with, as a field may come more than once.
    fn message(
        &mut self,
        message: &str,
        bytes: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtoError> {
        let messages = self.messages;
        let Some(fields) = messages.fields(message) else {
            return Err(ProtoError(format!("the protobuf form of {message} is not known")));
        };
        self.deeper(|decoder| {
            let mut reader = Reader::new(message, bytes);
            let find = |number| fields.binary_search_by_key(&number, |field| field.number).ok();
            while let Some((number, wire)) = reader.next(|number| find(number).is_some())? {
                if let Some(place) = find(number) {
                    decoder.field(&fields[place], wire, object)?;
                }
            }
            Ok(())
        })
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ProtoError>) -> Result<T, ProtoError> {
        if self.depth == DEEPEST {
            return Err(too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn count(&mut self) -> Result<(), ProtoError> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ProtoError(format!("more than {MOST} values"))),
        }
    }

    fn field(
        &mut self,
        field: &Field<M::Shape>,
        wire: Wire<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtoError> {
        self.count()?;
        let name = field.name.as_str();
        match (field.shape.kind(), wire) {
            (Kind::Message(message), Wire::Bytes(bytes)) if field.inline => {
                self.message(message, bytes, object)
            }
            (Kind::Message(message), Wire::Bytes(bytes)) => {
                let inner = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(inner) = inner else { return Ok(()) };
                self.message(message, bytes, inner)
            }
            (Kind::List(item), Wire::Bytes(bytes)) if field.wrapped => {
                let list = self.list(item, bytes, name)?;
                object.insert(name.to_owned(), list);
                Ok(())
            }
            (Kind::List(item), wire) => {
                let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else { return Ok(()) };
                self.append(item.kind(), wire, name, list)
            }
            (Kind::Map(value), Wire::Bytes(entry)) => {
                let (key, value) = self.entry(value.kind(), entry, name)?;
                let map = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(map) = map else { return Ok(()) };
                map.insert(key, value);
                Ok(())
            }
            (kind, wire) => {
                let value = self.value(kind, wire, name)?;
                object.insert(name.to_owned(), value);
                Ok(())
            }
        }
    }

    /// One item of a list, or several that are packed.
    fn append(
        &mut self,
        kind: Kind<'_, M::Shape>,
        wire: Wire<'_>,
        name: &str,
        list: &mut Vec<Value>,
    ) -> Result<(), ProtoError> {
        let packed = match kind {
            Kind::Bool | Kind::Int { .. } => Some(VARINT),
            Kind::Float => Some(FIXED64),
            _ => None,
        };
        if let (Some(packed), Wire::Bytes(bytes)) = (packed, wire) {
            let mut reader = Reader::new(name, bytes);
            while let Some(wire) = reader.packed(packed)? {
                self.count()?;
                let value = self.value(kind, wire, name)?;
                list.push(value);
            }
            return Ok(());
        }
        let value = self.value(kind, wire, name)?;
        list.push(value);
        Ok(())
    }

    fn entry(
        &mut self,
        kind: Kind<'_, M::Shape>,
        bytes: &[u8],
        name: &str,
    ) -> Result<(String, Value), ProtoError> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(name, bytes);
        while let Some(field) = reader.next(|number| number <= 2)? {
            match field {
                (1, Wire::Bytes(bytes)) => key = text(bytes),
                (1, wire) => return Err(wrong(wire, BYTES, &go_name(name))),
                (2, wire) => value = Some(self.value(kind, wire, name)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.nothing(kind)?,
        };
        Ok((key, value))
    }

    /// The value of a map's entry that has none.
    fn nothing(&mut self, kind: Kind<'_, M::Shape>) -> Result<Value, ProtoError> {
        Ok(match kind {
            Kind::Bool => Value::Bool(false),
            Kind::Int { .. } | Kind::Float => Value::from(0),
            kind => self.value(kind, Wire::Bytes(&[]), "")?,
        })
    }

    /// Small, as all that recurses through it stays on the stack.
    fn value(&mut self, kind: Kind<'_, M::Shape>, wire: Wire<'_>, name: &str) -> Result<Value, ProtoError> {
        match (kind, wire) {
            (Kind::Message(message), Wire::Bytes(bytes)) => {
                let mut object = Map::new();
                self.message(message, bytes, &mut object)?;
                Ok(Value::Object(object))
            }
            (Kind::List(item), Wire::Bytes(bytes)) => self.list(item, bytes, name),
            (Kind::SchemaOrArray, Wire::Bytes(bytes)) => self.schema_or(bytes, Other::Schemas),
            (Kind::SchemaOrStrings, Wire::Bytes(bytes)) => self.schema_or(bytes, Other::Names),
            (Kind::SchemaOrBool, Wire::Bytes(bytes)) => self.schema_or(bytes, Other::Allowed),
            (kind, wire) => scalar(kind, wire, name),
        }
    }

    /// A list where a field of its own is none: a message whose first field is its items.
    fn list(&mut self, item: &M::Shape, bytes: &[u8], name: &str) -> Result<Value, ProtoError> {
        self.deeper(|decoder| {
            let mut list = Vec::new();
            let mut reader = Reader::new(name, bytes);
            while let Some((number, wire)) = reader.next(|number| number == 1)? {
                if number == 1 {
                    decoder.count()?;
                    decoder.append(item.kind(), wire, name, &mut list)?;
                }
            }
            Ok(Value::Array(list))
        })
    }

    /// A schema, or what else may be in its place.
    fn schema_or(&mut self, bytes: &[u8], other: Other) -> Result<Value, ProtoError> {
        self.deeper(|decoder| {
            let (mut schema, mut list, mut allows) = (Value::Null, Vec::new(), false);
            let messages = decoder.messages;
            let one = Kind::Message(messages.schema());
            let mut reader = Reader::new("JSONSchemaProps", bytes);
            while let Some((number, wire)) = reader.next(|number| number <= 2)? {
                decoder.count()?;
                match (number, other) {
                    (1, Other::Allowed) => allows = scalar(Kind::Bool::<M::Shape>, wire, "allows")? == true,
                    (2, Other::Schemas) => list.push(decoder.value(one, wire, "jSONSchemas")?),
                    (2, Other::Names) => list.push(scalar(Kind::Text::<M::Shape>, wire, "property")?),
                    (1 | 2, _) => schema = decoder.value(one, wire, "schema")?,
                    _ => {}
                }
            }
            Ok(match other {
                _ if !list.is_empty() => Value::Array(list),
                Other::Allowed if schema.is_null() => Value::Bool(allows),
                _ => schema,
            })
        })
    }
}

/// What may be in the place of a schema.
#[derive(Clone, Copy)]
enum Other {
    Schemas,
    Names,
    Allowed,
}

fn scalar<S>(kind: Kind<'_, S>, wire: Wire<'_>, name: &str) -> Result<Value, ProtoError> {
    Ok(match (kind, wire) {
        (Kind::Text, Wire::Bytes(bytes)) => Value::String(text(bytes)),
        (Kind::Bool, Wire::Varint(value)) => Value::Bool(value != 0),
        (Kind::Int { bits, signed }, Wire::Varint(value)) => integer(value, bits, signed),
        (Kind::Float, Wire::Fixed64(bits)) => float(f64::from_bits(bits))?,
        (Kind::Float, Wire::Fixed32(bits)) => float(f64::from(f32::from_bits(bits)))?,
        (Kind::Bytes, Wire::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (Kind::Time, Wire::Bytes(bytes)) => leaf::time(bytes, false)?,
        (Kind::MicroTime, Wire::Bytes(bytes)) => leaf::time(bytes, true)?,
        (Kind::Quantity, Wire::Bytes(bytes)) => leaf::quantity(bytes)?,
        (Kind::IntOrString, Wire::Bytes(bytes)) => leaf::int_or_string(bytes)?,
        (Kind::Json, Wire::Bytes(bytes)) => leaf::json(bytes)?,
        (Kind::Bool | Kind::Int { .. }, wire) => return Err(wrong(wire, VARINT, &go_name(name))),
        (Kind::Float, wire) => return Err(wrong(wire, FIXED64, &go_name(name))),
        (_, wire) => return Err(wrong(wire, BYTES, &go_name(name))),
    })
}

/// What does not fit loses its upper bits.
fn integer(value: u64, bits: u8, signed: bool) -> Value {
    let spare = 64 - u32::from(bits.clamp(1, 64));
    match signed {
        true => Value::from((value << spare) as i64 >> spare),
        false => Value::from(value << spare >> spare),
    }
}

/// A whole number is written without a fraction, and read back as an integer.
fn float(value: f64) -> Result<Value, ProtoError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.trunc() == value && value.abs() <= EXACT {
        return Ok(Value::from(value as i64));
    }
    let number = Number::from_f64(value);
    number.map(Value::Number).ok_or_else(|| ProtoError(format!("json: unsupported value: {value}")))
}

/// Go's names of fields begin with a capital letter; one goes by the name of its type.
fn go_name(name: &str) -> String {
    if name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut characters = name.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}
