//! An object as the store keeps it: JSON bytes, written once, with a gap where its version goes.

use bytes::Bytes;
use serde_json::{Map, Value};
use std::hash::Hasher;
use std::sync::Arc;
use windlass_schema::json;

/// Pairs of strings, sorted by the first.
pub(super) type Pairs = Box<[(Box<str>, Box<str>)]>;

/// An object encoded outside every lock: canonical JSON without `metadata.resourceVersion`, and what selectors ask for.
#[derive(Debug, Clone)]
pub struct Body {
    pub(super) text: Text,
    pub(super) traits: Arc<Traits>,
}

/// What can be asked of an object without parsing it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Traits {
    pub(super) uid: Box<str>,
    pub(super) labels: Pairs,
    pub(super) fields: Pairs,
    /// A mark of what was written beside the object, though nobody is shown it; 0 for nothing.
    pub(super) unseen: u64,
}

/// JSON with a place for the version, which may hold one already. `apiVersion` and `kind` come first, the other members
/// in their order: what follows the first two is the same in every version of an API that differs in nothing else.
#[derive(Debug, Clone)]
pub(super) struct Text {
    bytes: Bytes,
    /// Where what follows `apiVersion` and `kind` starts.
    rest: usize,
    /// Where the version's member starts, and how long it is with its comma; 0 if there is none.
    at: usize,
    len: usize,
    comma: Comma,
}

/// On which side of the version's member its comma stands.
#[derive(Debug, Clone, Copy)]
enum Comma {
    Before,
    After,
    None,
}

const VERSION: &str = "resourceVersion";

const TYPE: [&str; 2] = ["apiVersion", "kind"];

impl Body {
    /// Encodes `value`, a JSON object, without its resourceVersion. `fields` are the selectable fields besides
    /// `metadata.name` and `metadata.namespace`.
    pub fn encode(value: &Value, fields: Vec<(Box<str>, Box<str>)>) -> Self {
        let none = Map::new();
        let object = value.as_object().unwrap_or(&none);
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let mut labels: Vec<(Box<str>, Box<str>)> = metadata
            .get("labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str().into(), value.as_str()?.into())))
            .collect();
        labels.sort();
        let mut fields = fields;
        fields.sort();
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default().into();
        Self {
            text: Text::encode(object, metadata),
            traits: Arc::new(Traits { uid, labels: labels.into(), fields: fields.into(), unseen: 0 }),
        }
    }

    /// The same object, written as `raw`, of which readers are not shown everything: a write of what they are shown is
    /// not without effect then.
    #[must_use]
    pub fn written_as(mut self, raw: &Value) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(&json::write(raw));
        if let Some(traits) = Arc::get_mut(&mut self.traits) {
            traits.unseen = hasher.finish().max(1);
        }
        self
    }

    /// How many bytes the object takes.
    pub fn size(&self) -> usize {
        self.text.bytes.len()
    }
}

impl PartialEq for Body {
    /// The same object, whatever its version.
    fn eq(&self, other: &Self) -> bool {
        self.text.same(&other.text)
            && self.text.layout() == other.text.layout()
            && self.traits == other.traits
    }
}

impl Text {
    fn encode(object: &Map<String, Value>, metadata: &Map<String, Value>) -> Self {
        let mut bytes = vec![b'{'];
        for name in TYPE {
            if let Some(value) = object.get(name) {
                json::append_text(name, &mut bytes);
                bytes.push(b':');
                json::append(value, &mut bytes);
                bytes.push(b',');
            }
        }
        let rest = bytes.len();
        let mut place = None;
        let others = object.iter().filter(|(name, _)| !TYPE.contains(&name.as_str()) && *name != "metadata");
        let mut separate = false;
        for (name, value) in others {
            if place.is_none() && name.as_str() > "metadata" {
                place = Some(write_metadata(&mut bytes, std::mem::replace(&mut separate, true), metadata));
            }
            write_name(&mut bytes, std::mem::replace(&mut separate, true), name);
            json::append(value, &mut bytes);
        }
        let (at, comma) = place.unwrap_or_else(|| write_metadata(&mut bytes, separate, metadata));
        bytes.push(b'}');
        bytes.shrink_to_fit();
        Self { bytes: bytes.into(), rest, at, len: 0, comma }
    }

    /// The members after `apiVersion` and `kind`, and the closing brace.
    pub(super) fn rest(&self) -> Bytes {
        self.bytes.slice(self.rest..)
    }

    /// Where its parts are, once its version is taken out: what [`Text::restored`] needs beside the bytes.
    pub(super) fn layout(&self) -> (usize, usize, u8) {
        (self.rest, self.at, self.comma as u8)
    }

    /// Encoded before, up to the version's place, which is after another member.
    pub(super) fn without_version(bytes: Vec<u8>, rest: usize, at: usize) -> Self {
        Self { bytes: bytes.into(), rest, at, len: 0, comma: Comma::Before }
    }

    /// What [`Text::parts`] and [`Text::layout`] told of; nothing if they cannot have.
    pub(super) fn restored(bytes: &[u8], rest: usize, at: usize, comma: u8) -> Option<Self> {
        let comma =
            [Comma::Before, Comma::After, Comma::None].into_iter().find(|known| *known as u8 == comma)?;
        let fits = rest <= at && at <= bytes.len();
        fits.then(|| Self { bytes: Bytes::copy_from_slice(bytes), rest, at, len: 0, comma })
    }

    /// The object without its version, in two parts.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.bytes[..self.at], &self.bytes[self.at + self.len..])
    }

    /// Is it the same object, whatever its version?
    pub(super) fn same(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }

    /// The whole object, once a version was put in.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Puts `version` in, in place of any that is there.
    pub(super) fn put(&mut self, version: u64) {
        let digits = version.to_string();
        let (before, after) = self.parts();
        let mut bytes = Vec::with_capacity(before.len() + after.len() + VERSION.len() + digits.len() + 6);
        bytes.extend_from_slice(before);
        if let Comma::Before = self.comma {
            bytes.push(b',');
        }
        bytes.push(b'"');
        bytes.extend_from_slice(VERSION.as_bytes());
        bytes.extend_from_slice(b"\":\"");
        bytes.extend_from_slice(digits.as_bytes());
        bytes.push(b'"');
        if let Comma::After = self.comma {
            bytes.push(b',');
        }
        let len = bytes.len() - self.at;
        bytes.extend_from_slice(after);
        self.bytes = bytes.into();
        self.len = len;
    }
}

fn write_name(bytes: &mut Vec<u8>, separate: bool, name: &str) {
    if separate {
        bytes.push(b',');
    }
    json::append_text(name, bytes);
    bytes.push(b':');
}

/// Says where the version goes, and on which side its comma.
fn write_metadata(bytes: &mut Vec<u8>, separate: bool, metadata: &Map<String, Value>) -> (usize, Comma) {
    write_name(bytes, separate, "metadata");
    bytes.push(b'{');
    let mut place = None;
    let mut separate = false;
    for (name, value) in metadata.iter().filter(|(name, _)| *name != VERSION) {
        if place.is_none() && name.as_str() > VERSION {
            place = Some((bytes.len(), if separate { Comma::Before } else { Comma::After }));
        }
        write_name(bytes, std::mem::replace(&mut separate, true), name);
        json::append(value, bytes);
    }
    let place = place.unwrap_or((bytes.len(), if separate { Comma::Before } else { Comma::None }));
    bytes.push(b'}');
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_version(value: &Value, version: u64) -> Value {
        let mut text = Body::encode(value, vec![]).text;
        text.put(7);
        text.put(version);
        serde_json::from_slice(text.bytes()).unwrap()
    }

    #[test]
    fn the_version_fits_wherever_it_falls_among_its_neighbours() {
        for metadata in [
            json!({}),
            json!({"name": "a"}),
            json!({"uid": "u"}),
            json!({"name": "a", "uid": "u"}),
            json!({"name": "a", "resourceVersion": "3", "uid": "u"}),
            json!({"resourceVersion": "3"}),
        ] {
            for rest in [json!({}), json!({"apiVersion": "v1"}), json!({"spec": 1}), json!({"a": 1, "z": 2})]
            {
                let mut value = rest;
                value["metadata"] = metadata.clone();
                let mut wanted = value.clone();
                wanted["metadata"]["resourceVersion"] = json!("12345");
                assert_eq!(with_version(&value, 12345), wanted);
            }
        }
    }

    #[test]
    fn what_is_not_an_object_still_encodes() {
        assert_eq!(with_version(&json!(3), 1), json!({"metadata": {"resourceVersion": "1"}}));
        assert_eq!(with_version(&json!({"metadata": 3}), 1), json!({"metadata": {"resourceVersion": "1"}}));
    }

    #[test]
    fn two_encodings_of_one_object_are_the_same_whatever_their_version() {
        let mut one = Body::encode(&json!({"metadata": {"name": "a"}, "x": 1}), vec![]);
        let two = Body::encode(&json!({"x": 1, "metadata": {"name": "a", "resourceVersion": "9"}}), vec![]);
        one.text.put(99);
        assert!(one.text.same(&two.text));
        let other = Body::encode(&json!({"x": 2, "metadata": {"name": "a"}}), vec![]);
        assert!(!one.text.same(&other.text));
    }
}
