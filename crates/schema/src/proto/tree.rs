//! Borrowed JSON: a tree whose strings point into the text, to be encoded as protobuf.

use super::ProtoError;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use std::borrow::Cow;
use std::fmt;

/// A value of JSON.
#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// Sorted by name; the last of equal names is found.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// For what is not there.
pub(super) const NOTHING: &Node<'static> = &Node::Null;

/// How deep a value may be: as deep as what is sent, and as deep again for the ownership of its fields.
const DEEPEST: usize = 2 * crate::json::MAX_DEPTH;

impl<'a> Node<'a> {
    /// Reads JSON.
    pub(super) fn read(json: &'a [u8]) -> Result<Self, ProtoError> {
        let mut source = serde_json::Deserializer::from_slice(json);
        source.disable_recursion_limit();
        Reading(DEEPEST).deserialize(&mut source).map_err(|error| ProtoError(error.to_string()))
    }

    /// A member's value, or null.
    pub(super) fn get(&self, name: &str) -> &Self {
        let Self::Object(members) = self else { return NOTHING };
        match members.binary_search_by(|(known, _)| known.as_ref().cmp(name)) {
            Ok(at) => &members[at].1,
            Err(_) => NOTHING,
        }
    }

    /// A string, or nothing.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// As compact JSON, added to what is there.
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Self::Number(number) => crate::json::append_number(number, out),
            Self::Text(text) => crate::json::append_text(text, out),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.append(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    crate::json::append_text(name, out);
                    out.push(b':');
                    value.append(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Parses a value with at most this number of nested levels.
#[derive(Clone, Copy)]
struct Reading(usize);

impl Reading {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        self.0.checked_sub(1).map(Self).ok_or_else(|| E::custom("exceeded max depth"))
    }
}

impl<'de> DeserializeSeed<'de> for Reading {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Node<'de>, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Node<'de>, A::Error> {
        let deeper = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(deeper)? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Node<'de>, A::Error> {
        let deeper = self.deeper()?;
        let mut members: Vec<(Cow<'de, str>, Node<'de>)> = Vec::new();
        while let Some(Name(name)) = source.next_key()? {
            members.push((name, source.next_value_seed(deeper)?));
        }
        // What is stored is sorted already, but for the type at its head.
        if !members.is_sorted_by(|one, other| one.0 < other.0) {
            members.reverse();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            members.dedup_by(|one, other| one.0 == other.0);
        }
        Ok(Node::Object(members))
    }
}

/// A member's name: borrowed where it can be, which `Cow` alone does not do.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        source.deserialize_str(Reading)
    }
}
