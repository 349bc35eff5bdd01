//! From JSON to a message, byte for byte as Go writes it: fields by their numbers, those that are no pointers always, and
//! the entries of maps by their names.

use super::reverse_buffer::ReverseBuffer;
use super::tree::Node;
use super::wire::{BYTES, FIXED64, VARINT};
use super::{Field, Kind, Messages, PREFIX, ProtoError, Shape};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

/// Encodes the JSON of an object of the type `message`, in an envelope with its type. Unknown fields are omitted.
pub fn encode<M: Messages>(
    messages: &M,
    message: &str,
    api_version: &str,
    kind: &str,
    json: &[u8],
) -> Result<Vec<u8>, ProtoError> {
    let object = Node::read(json)?;
    let mut encoder = Encoder { messages, back: ReverseBuffer::with_capacity(json.len() + 64) };
    encoder.begin_envelope();
    let before = encoder.back.len();
    encoder.message(message, &object)?;
    encoder.back.close(2, before);
    encoder.end_envelope(api_version, kind);
    Ok(encoder.back.finish())
}

/// What comes before and after the items of a list in its envelope: its metadata is JSON, and its items are messages of
/// these sizes, each with [`item_head`] before it.
pub fn list_ends<M: Messages>(
    messages: &M,
    (api_version, kind): (&str, &str),
    (message, metadata): (&str, &str),
    items: impl Iterator<Item = usize>,
) -> Result<(Vec<u8>, Vec<u8>), ProtoError> {
    let metadata = Node::read(metadata.as_bytes())?;
    let mut tail = Encoder { messages, back: ReverseBuffer::with_capacity(8) };
    tail.begin_envelope();
    let mut head = Encoder { messages, back: ReverseBuffer::with_capacity(256) };
    head.message(message, &metadata)?;
    head.back.close(1, 0);
    let items: usize = items.map(|item| item_head(item).len() + item).sum();
    head.back.varint((head.back.len() + items) as u64);
    head.back.tag(2, BYTES);
    head.end_envelope(api_version, kind);
    Ok((head.back.finish(), tail.back.finish()))
}

/// The prefix of a list item of this number of bytes.
pub fn item_head(size: usize) -> Vec<u8> {
    let mut back = ReverseBuffer::with_capacity(8);
    back.varint(size as u64);
    back.tag(2, BYTES);
    back.finish()
}

/// The prefix of a watch event's object of this number of bytes, envelope included: the length of it all, the type of
/// the event, and that the object follows.
pub fn frame_head(event: &str, object: usize) -> Vec<u8> {
    let mut back = ReverseBuffer::with_capacity(event.len() + 32);
    back.varint(object as u64);
    back.tag(1, BYTES);
    back.varint((back.len() + object) as u64);
    back.tag(2, BYTES);
    back.bytes(1, event.as_bytes());
    let length = u32::try_from(back.len() + object).unwrap_or(u32::MAX);
    back.put(&length.to_be_bytes());
    back.finish()
}

struct Encoder<'m, M> {
    messages: &'m M,
    back: ReverseBuffer,
}

impl<M: Messages> Encoder<'_, M> {
    /// The end of an envelope: that its content is not encoded in any other way.
    fn begin_envelope(&mut self) {
        self.back.bytes(4, b"");
        self.back.bytes(3, b"");
    }

    /// The beginning of an envelope.
    fn end_envelope(&mut self, api_version: &str, kind: &str) {
        let before = self.back.len();
        self.back.bytes(2, kind.as_bytes());
        self.back.bytes(1, api_version.as_bytes());
        self.back.close(1, before);
        self.back.put(PREFIX);
    }

    fn message(&mut self, message: &str, object: &Node<'_>) -> Result<(), ProtoError> {
        let messages = self.messages;
        let Some(fields) = messages.fields(message) else {
            return Err(ProtoError(format!("the protobuf form of {message} is not known")));
        };
        for field in fields.iter().rev() {
            self.field(field, object)?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field<M::Shape>, object: &Node<'_>) -> Result<(), ProtoError> {
        let value = if field.inline { object } else { object.get(&field.name) };
        match field.shape.kind() {
            Kind::List(item) if field.wrapped => {
                // Nothing is told from an empty list.
                if matches!(value, Node::List(_)) { self.list(field.number, item, value) } else { Ok(()) }
            }
            Kind::List(item) => {
                if let Node::List(items) = value {
                    for item_value in items.iter().rev() {
                        self.value(field.number, item.kind(), item_value)?;
                    }
                }
                Ok(())
            }
            Kind::Map(inner) => {
                if let Node::Object(members) = value {
                    for (name, value) in members.iter().rev() {
                        let before = self.back.len();
                        self.entry(inner.kind(), value)?;
                        self.back.bytes(1, name.as_bytes());
                        self.back.close(field.number, before);
                    }
                }
                Ok(())
            }
            // Told from none by being there at all.
            _ if matches!(value, Node::Null) && field.shape.is_optional() => Ok(()),
            Kind::Bytes if matches!(value, Node::Null) => Ok(()),
            kind => self.value(field.number, kind, value),
        }
    }

    /// The value of a map's entry.
    fn entry(&mut self, kind: Kind<'_, M::Shape>, value: &Node<'_>) -> Result<(), ProtoError> {
        match kind {
            Kind::Bytes if matches!(value, Node::Null) => Ok(()),
            Kind::List(item) => self.list(2, item, value),
            kind => self.value(2, kind, value),
        }
    }

    /// A list in a message of its own.
    fn list(&mut self, number: u32, item: &M::Shape, value: &Node<'_>) -> Result<(), ProtoError> {
        let before = self.back.len();
        if let Node::List(items) = value {
            for value in items.iter().rev() {
                self.value(1, item.kind(), value)?;
            }
        }
        self.back.close(number, before);
        Ok(())
    }

    /// A value under its number; what is not there is Go's zero value.
    fn value(&mut self, number: u32, kind: Kind<'_, M::Shape>, value: &Node<'_>) -> Result<(), ProtoError> {
        let before = self.back.len();
        match kind {
            Kind::Text => {
                self.back.bytes(number, value.text().as_bytes());
                return Ok(());
            }
            Kind::Bool => {
                self.back.varint(u64::from(matches!(value, Node::Bool(true))));
                self.back.tag(number, VARINT);
                return Ok(());
            }
            Kind::Int { .. } => {
                self.back.varint(integer(value));
                self.back.tag(number, VARINT);
                return Ok(());
            }
            Kind::Float => {
                let float = if let Node::Number(value) = value { value.as_f64() } else { None };
                self.back.put(&float.unwrap_or_default().to_le_bytes());
                self.back.tag(number, FIXED64);
                return Ok(());
            }
            Kind::Bytes => {
                let bytes = STANDARD.decode(value.text()).map_err(|error| ProtoError(error.to_string()))?;
                self.back.bytes(number, &bytes);
                return Ok(());
            }
            Kind::Time => self.time(value, false)?,
            Kind::MicroTime => self.time(value, true)?,
            Kind::Quantity => {
                let amount = if let Node::Text(amount) = value { amount } else { "0" };
                self.back.bytes(1, amount.as_bytes());
            }
            Kind::IntOrString => {
                self.back.bytes(3, value.text().as_bytes());
                let number = if let Node::Number(_) = value { integer(value) } else { 0 };
                self.back.varint(number);
                self.back.tag(2, VARINT);
                self.back.varint(u64::from(matches!(value, Node::Text(_))));
                self.back.tag(1, VARINT);
            }
            Kind::Json => {
                if !matches!(value, Node::Null) {
                    let mut raw = Vec::new();
                    value.append(&mut raw);
                    self.back.bytes(1, &raw);
                }
            }
            Kind::SchemaOrArray | Kind::SchemaOrBool | Kind::SchemaOrStrings => {
                self.schema_or(kind, value)?
            }
            Kind::Message(message) => self.message(message, value)?,
            Kind::List(_) | Kind::Map(_) => {
                return Err(ProtoError("a list of lists has no protobuf form".to_owned()));
            }
        }
        self.back.close(number, before);
        Ok(())
    }

    /// An absent time is an empty message.
    fn time(&mut self, value: &Node<'_>, micro: bool) -> Result<(), ProtoError> {
        let Node::Text(text) = value else { return Ok(()) };
        let time: Timestamp = text.parse().map_err(|_| ProtoError(format!("{text:?} is no time")))?;
        // Before 1970, seconds are rounded down and what remains is counted up from there.
        let nanos = time.as_nanosecond().rem_euclid(1_000_000_000);
        let seconds = time.as_nanosecond().div_euclid(1_000_000_000);
        let nanos = if micro { nanos / 1_000 * 1_000 } else { 0 };
        self.back.varint(nanos as u64);
        self.back.tag(2, VARINT);
        self.back.varint(seconds as i64 as u64);
        self.back.tag(1, VARINT);
        Ok(())
    }

    /// A schema, or what else is in its place.
    fn schema_or(&mut self, kind: Kind<'_, M::Shape>, value: &Node<'_>) -> Result<(), ProtoError> {
        let messages = self.messages;
        let one = Kind::Message(messages.schema());
        match (kind, value) {
            (Kind::SchemaOrBool, value) => {
                if let Node::Object(_) = value {
                    self.value(2, one, value)?;
                }
                // A schema allows what it allows.
                let allows = matches!(value, Node::Object(_) | Node::Bool(true));
                self.back.varint(u64::from(allows));
                self.back.tag(1, VARINT);
            }
            (_, Node::Object(_)) => self.value(1, one, value)?,
            (Kind::SchemaOrArray, Node::List(items)) => {
                for item in items.iter().rev() {
                    self.value(2, one, item)?;
                }
            }
            (_, Node::List(items)) => {
                for item in items.iter().rev() {
                    self.value(2, Kind::Text, item)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Negative numbers are of 64 bits, whatever their type.
fn integer(value: &Node<'_>) -> u64 {
    let Node::Number(number) = value else { return 0 };
    let signed = || number.as_i64().map(|value| value as u64);
    // What is a whole number but was written with a fraction or an exponent.
    number.as_u64().or_else(signed).unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64 as u64)
}
