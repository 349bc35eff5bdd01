//! The types of built-in kinds as protobuf has them.

use super::{Structs, Type};
use windlass_schema::proto::{Field, Kind, Messages, Shape};

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

impl Shape for Type {
    fn kind(&self) -> Kind<'_, Self> {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Bool(_) => Kind::Bool,
            Self::Int { bits, signed, .. } => Kind::Int { bits: *bits, signed: *signed },
            Self::Float(_) => Kind::Float,
            Self::Bytes => Kind::Bytes,
            Self::Time => Kind::Time,
            Self::MicroTime => Kind::MicroTime,
            Self::Quantity => Kind::Quantity,
            Self::IntOrString => Kind::IntOrString,
            Self::Any => Kind::Json,
            Self::SchemaOrArray => Kind::SchemaOrArray,
            Self::SchemaOrBool => Kind::SchemaOrBool,
            Self::SchemaOrStrings => Kind::SchemaOrStrings,
            Self::Pointer(inner) => inner.kind(),
            Self::List(inner) => Kind::List(inner),
            Self::Map(inner) => Kind::Map(inner),
            Self::Struct(definition) => Kind::Message(definition),
        }
    }

    fn is_optional(&self) -> bool {
        matches!(self, Self::Pointer(_))
    }
}

impl Messages for Structs {
    type Shape = Type;

    fn fields(&self, message: &str) -> Option<&[Field<Type>]> {
        self.get(message).map(|known| known.numbered.as_slice())
    }

    fn schema(&self) -> &str {
        SCHEMA
    }
}
