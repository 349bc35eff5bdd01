//! What Go's decoder and encoder do to an object of a built-in kind, driven by facts: wrong types are refused with Go's
//! words, unknown fields reported, and empty values dropped or spelled out as each field's tags say.
//!
//! In comes JSON as a client sent it, out comes JSON as Kubernetes would send it back.

mod convert;
mod time;

pub(crate) use convert::{convert, shape};

use serde::Deserialize;
use std::collections::BTreeMap;

/// A Go type, as far as its JSON goes. Names are those that Go's errors show, where they differ from the built-in type's.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Text(Option<String>),
    Bool(Option<String>),
    Int {
        bits: u8,
        signed: bool,
        name: Option<String>,
    },
    Float(Option<String>),
    Bytes,
    Time,
    MicroTime,
    /// Reads and writes itself; passed on untouched.
    Any,
    /// A schema, or a list of them.
    SchemaOrArray,
    /// A schema, or true or false.
    SchemaOrBool,
    /// A schema, or a list of names.
    SchemaOrStrings,
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Struct(String),
}

/// When a field is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Omit {
    #[default]
    Never,
    Empty,
    Zero,
}

/// A field of a struct.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) kind: Type,
    pub(crate) omit: Omit,
}

/// All structs, by the names of their OpenAPI definitions.
#[derive(Debug, Default)]
pub(crate) struct Structs(BTreeMap<String, BTreeMap<String, Field>>);

#[derive(Deserialize)]
struct RawField {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    omit: Omit,
}

impl Structs {
    /// Reads the facts file.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: BTreeMap<String, BTreeMap<String, RawField>> = serde_json::from_str(text)?;
        let fields = |fields: BTreeMap<String, RawField>| {
            fields
                .into_iter()
                .map(|(name, field)| (name, Field { kind: Type::parse(&field.kind), omit: field.omit }))
                .collect()
        };
        Ok(Self(raw.into_iter().map(|(name, raw)| (name, fields(raw))).collect()))
    }

    pub(crate) fn get(&self, definition: &str) -> Option<&BTreeMap<String, Field>> {
        self.0.get(definition)
    }
}

impl Type {
    /// Reads the facts' notation: `*`, `[]` and `map ` before what they hold, then a word and maybe a name.
    fn parse(text: &str) -> Self {
        if let Some(rest) = text.strip_prefix('*') {
            return Self::Pointer(Box::new(Self::parse(rest)));
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Self::List(Box::new(Self::parse(rest)));
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let name = (!rest.is_empty()).then(|| rest.to_owned());
        match word {
            "map" => Self::Map(Box::new(Self::parse(rest))),
            "struct" => Self::Struct(rest.to_owned()),
            "string" => Self::Text(name),
            "bool" => Self::Bool(name),
            "int" | "int64" => Self::Int { bits: 64, signed: true, name },
            "int32" => Self::Int { bits: 32, signed: true, name },
            "int16" => Self::Int { bits: 16, signed: true, name },
            "uint64" => Self::Int { bits: 64, signed: false, name },
            "uint32" => Self::Int { bits: 32, signed: false, name },
            "float64" | "float32" => Self::Float(name),
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "schemaorarray" => Self::SchemaOrArray,
            "schemaorbool" => Self::SchemaOrBool,
            "schemaorstrings" => Self::SchemaOrStrings,
            _ => Self::Any,
        }
    }

    /// As Go writes the type.
    fn go_name(&self) -> String {
        let or = |name: &Option<String>, plain: &str| name.clone().unwrap_or_else(|| plain.to_owned());
        match self {
            Self::Text(name) => or(name, "string"),
            Self::Bool(name) => or(name, "bool"),
            Self::Int { bits, signed, name } => {
                or(name, &format!("{}int{bits}", if *signed { "" } else { "u" }))
            }
            Self::Float(name) => or(name, "float64"),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::MicroTime => "v1.MicroTime".to_owned(),
            Self::Any => "interface {}".to_owned(),
            Self::SchemaOrArray => "v1.JSONSchemaPropsOrArray".to_owned(),
            Self::SchemaOrBool => "v1.JSONSchemaPropsOrBool".to_owned(),
            Self::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".to_owned(),
            // Decoding goes through pointers: errors name what they lead to.
            Self::Pointer(inner) => inner.go_name(),
            Self::List(inner) => format!("[]{}", inner.pointed()),
            Self::Map(inner) => format!("map[string]{}", inner.pointed()),
            Self::Struct(definition) => short(definition),
        }
    }

    fn pointed(&self) -> String {
        match self {
            Self::Pointer(inner) => format!("*{}", inner.pointed()),
            other => other.go_name(),
        }
    }
}

/// `v1.ConfigMap` for `io.k8s.api.core.v1.ConfigMap`.
fn short(definition: &str) -> String {
    let mut parts = definition.rsplitn(3, '.');
    let name = parts.next().unwrap_or_default();
    match parts.next() {
        Some(package) => format!("{package}.{name}"),
        None => name.to_owned(),
    }
}
