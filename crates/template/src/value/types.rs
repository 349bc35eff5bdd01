//! Types and kinds, by their names in Go.

use super::{Elem, MapType, Value};

/// Go's kinds, as far as templates meet them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No value.
    Invalid,
    /// `bool`
    Bool,
    /// `int` and its sizes.
    Int(IntType),
    /// `uint` and its sizes.
    Uint(UintType),
    /// `float64`
    Float,
    /// `complex128`
    Complex,
    /// `string`
    Str,
    /// slices
    Slice,
    /// maps
    Map,
    /// structs
    Struct,
    /// pointers
    Pointer,
}

impl Kind {
    /// As `kindOf` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int(IntType::Duration) => "int64",
            Self::Int(IntType::Month | IntType::Weekday) => "int",
            Self::Int(kind) => kind.name(),
            Self::Uint(kind) => kind.name(),
            Self::Float => "float64",
            Self::Complex => "complex128",
            Self::Str => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Pointer => "ptr",
        }
    }
}

/// A signed integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntType {
    /// `int`
    Int,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `time.Duration`
    Duration,
    /// `time.Month`
    Month,
    /// `time.Weekday`
    Weekday,
}

impl IntType {
    /// The type's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Duration => "time.Duration",
            Self::Month => "time.Month",
            Self::Weekday => "time.Weekday",
        }
    }
}

/// An unsigned integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UintType {
    /// `uint`
    Uint,
    /// `uint8`, which the elements of strings and `[]byte` are.
    Uint8,
    /// `uint64`
    Uint64,
}

impl UintType {
    /// The type's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint64 => "uint64",
        }
    }
}

impl Value {
    /// The kind, as Go's `reflect` knows it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(kind, _) => Kind::Int(*kind),
            Self::Uint(kind, _) => Kind::Uint(*kind),
            Self::Float(_) => Kind::Float,
            Self::Complex(..) => Kind::Complex,
            Self::Str(_) => Kind::Str,
            Self::Bytes(_) | Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => object.kind(),
        }
    }

    /// The type, as `%T` prints it.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Nil => "<nil>".into(),
            Self::Bool(_) => "bool".into(),
            Self::Int(kind, _) => kind.name().into(),
            Self::Uint(kind, _) => kind.name().into(),
            Self::Float(_) => "float64".into(),
            Self::Complex(..) => "complex128".into(),
            Self::Str(_) => "string".into(),
            Self::Bytes(_) => "[]uint8".into(),
            Self::List(list) => format!("[]{}", list.elem().name()),
            Self::Map(map) => map.map_type().name().into(),
            Self::Object(object) => object.type_name(),
        }
    }
}

impl Elem {
    /// The type of the elements.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Int => "int",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
            Self::Object => "*chart.Maintainer",
        }
    }
}

impl MapType {
    /// The type of the map.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::Str => "map[string]string",
            Self::Values => "chartutil.Values",
        }
    }
}
