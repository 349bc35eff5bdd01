//! The values that templates work on, with the Go type that each has: Go prints, compares and refuses by type.

mod collections;
mod object;
mod types;

pub(crate) use collections::Watched;
pub use collections::{Elem, List, Map, MapType};
pub use object::{Member, Object};
pub use types::{IntType, Kind, UintType};

use crate::text::GoStr;
use std::rc::Rc;

/// A value of a template. Maps are shared, as Go's are: `set` changes the map that all others see.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value: a nil without a type.
    Nil,
    /// `bool`.
    Bool(bool),
    /// A signed integer of the given type.
    Int(IntType, i64),
    /// An unsigned integer of the given type.
    Uint(UintType, u64),
    /// `float64`, which is what all numbers of YAML and JSON are.
    Float(f64),
    /// `complex128`, which only a literal such as `2i` makes.
    Complex(f64, f64),
    /// `string`.
    Str(GoStr),
    /// `[]byte`.
    Bytes(Rc<[u8]>),
    /// A slice.
    List(List),
    /// A map with strings as keys.
    Map(Map),
    /// A struct, or a type with methods, such as `.Chart` or a time.
    Object(Rc<dyn Object>),
}

impl Value {
    /// An `int`.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::Int(IntType::Int, value)
    }

    /// An `int64`.
    #[must_use]
    pub fn int64(value: i64) -> Self {
        Self::Int(IntType::Int64, value)
    }

    /// A `string`.
    pub fn str(text: impl Into<GoStr>) -> Self {
        Self::Str(text.into())
    }

    /// A `[]interface {}`.
    #[must_use]
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(List::new(Elem::Any, items))
    }

    /// A `[]string`.
    pub fn strings<T: Into<GoStr>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(List::new(Elem::Str, items.into_iter().map(|item| Self::Str(item.into())).collect()))
    }

    /// A `map[string]interface {}`.
    pub fn map<K: Into<GoStr>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(Map::new(
            MapType::Any,
            entries.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        ))
    }

    /// Is it the nil without a type?
    #[must_use]
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// What `if` makes of it.
    #[must_use]
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.len().is_none_or(|length| length > 0),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::str(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
