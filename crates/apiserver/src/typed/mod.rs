//! What Go's decoder and encoder do to an object of a built-in kind, driven by facts: wrong types are refused with Go's
//! words, unknown fields reported, and empty values dropped or spelled out as each field's tags say.
//!
//! In comes JSON as a client sent it, out comes JSON as Kubernetes would send it back.

mod convert;
mod name_hash;
mod patch_types;
mod protobuf_types;
mod time;
pub(crate) mod unstructured;

pub(crate) use convert::{convert, settled};
pub(crate) use name_hash::Quick;
pub(crate) use patch_types::Place;
pub(crate) use windlass_schema::json::kind as shape;

use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use windlass_schema::proto;

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
    Quantity,
    IntOrString,
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

/// What a field is in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Proto {
    pub(crate) number: u32,
    /// A list that has a message of its own.
    #[serde(default)]
    pub(crate) wrapped: bool,
}

/// A field of a struct.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Field {
    #[serde(rename = "type", deserialize_with = "read_type")]
    pub(crate) kind: Type,
    #[serde(default)]
    pub(crate) omit: Omit,
    /// A struct whose fields JSON shows among ours; protobuf has it as one field.
    #[serde(default)]
    pub(crate) inline: bool,
    /// None for what protobuf does not carry: the type, which is in its envelope.
    #[serde(default)]
    pub(crate) proto: Option<Proto>,
    /// How strategic merge patches treat it: `merge`, `replace`, `retainKeys` or `merge,retainKeys`; empty for no way of
    /// its own.
    #[serde(default)]
    pub(crate) patch: String,
    /// What tells the items of a merged list apart.
    #[serde(default, rename = "mergeKey")]
    pub(crate) merge_key: String,
}

fn read_type<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Type, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(source)?;
    Ok(Type::parse(&text))
}

/// A Go struct.
#[derive(Debug, Default)]
pub(crate) struct Struct {
    /// What it is called with its package and version, `core.v1.Container`.
    pub(crate) name: &'static str,
    /// What protobuf has of it, by number.
    pub(crate) numbered: Vec<proto::Field<Type>>,
    /// As JSON shows it: what is inlined is spread out.
    pub(crate) fields: BTreeMap<String, Field>,
    /// The structs that are inlined.
    pub(crate) inlined: Vec<String>,
    /// Which of the fields are written though they were not given, in their order.
    written: Vec<String>,
}

/// All structs, by the names of their OpenAPI definitions. Each is read when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Structs(HashMap<&'static str, (&'static str, OnceLock<Struct>), Quick>);

impl Structs {
    /// Over the facts file, which has one struct per line.
    pub(crate) fn over(text: &'static str) -> Self {
        Self(lines(text).map(|(name, text)| (name, (text, OnceLock::new()))).collect())
    }

    pub(crate) fn get(&self, definition: &str) -> Option<&Struct> {
        let (definition, (text, read)) = self.0.get_key_value(definition)?;
        Some(read.get_or_init(|| self.read(last_three(definition), text)))
    }

    fn read(&self, called: &'static str, text: &str) -> Struct {
        // As declared: what is inlined is one field, under its Go name.
        let declared: BTreeMap<String, Field> = first_value(text).expect("the facts are part of the crate");
        let (mut fields, mut numbered, mut inlined) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (name, field) in declared {
            if let Some(Proto { number, wrapped }) = field.proto {
                let (name, shape) = (name.clone(), field.kind.clone());
                numbered.push(proto::Field { number, name, inline: field.inline, wrapped, shape });
            }
            match &field.kind {
                Type::Struct(inner) if field.inline => {
                    fields.extend(self.get(inner).into_iter().flat_map(|inner| inner.fields.clone()));
                    inlined.push(inner.clone());
                }
                _ => _ = fields.insert(name, field),
            }
        }
        numbered.sort_by_key(|field| field.number);
        let written = fields.iter().filter(|(_, field)| !convert::omitted_if_missing(field));
        let written = written.map(|(name, _)| name.clone()).collect();
        Struct { name: called, numbered, fields, inlined, written }
    }
}

/// `core.v1.Container` for `io.k8s.api.core.v1.Container`.
fn last_three(definition: &str) -> &str {
    let mut dots = definition.rmatch_indices('.').map(|(at, _)| at);
    dots.nth(2).map_or(definition, |at| &definition[at + 1..])
}

/// The lines of a facts file that are `"name":value`, with whatever follows the value.
pub(crate) fn lines(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter_map(|line| {
        let line = line.strip_prefix('{').unwrap_or(line);
        line.strip_prefix('"')?.split_once("\":")
    })
}

/// The JSON value that a text begins with.
pub(crate) fn first_value<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
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
            "int8" => Self::Int { bits: 8, signed: true, name },
            "uint8" => Self::Int { bits: 8, signed: false, name },
            "uint16" => Self::Int { bits: 16, signed: false, name },
            "uint64" => Self::Int { bits: 64, signed: false, name },
            "uint32" => Self::Int { bits: 32, signed: false, name },
            "float64" | "float32" => Self::Float(name),
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intorstring" => Self::IntOrString,
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
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::IntOrString => "intstr.IntOrString".to_owned(),
            Self::Any => "runtime.RawExtension".to_owned(),
            Self::SchemaOrArray => "v1.JSONSchemaPropsOrArray".to_owned(),
            Self::SchemaOrBool => "v1.JSONSchemaPropsOrBool".to_owned(),
            Self::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".to_owned(),
            // Decoding goes through pointers: errors name what they lead to.
            Self::Pointer(inner) => inner.go_name(),
            Self::List(inner) => format!("[]{}", inner.pointed()),
            Self::Map(inner) if matches!(**inner, Self::Quantity) => "v1.ResourceList".to_owned(),
            Self::Map(inner) => format!("map[string]{}", inner.pointed()),
            Self::Struct(definition) => short(definition),
        }
    }

    /// The word for its kind that Go has.
    fn go_kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Bool(_) => "bool",
            Self::Int { bits: 64, signed: true, .. } => "int64",
            Self::Int { bits: 32, signed: true, .. } => "int32",
            Self::Int { bits: 16, signed: true, .. } => "int16",
            Self::Int { signed: true, .. } => "int8",
            Self::Int { bits: 64, .. } => "uint64",
            Self::Int { bits: 32, .. } => "uint32",
            Self::Int { bits: 16, .. } => "uint16",
            Self::Int { .. } => "uint8",
            Self::Float(_) => "float64",
            Self::Bytes | Self::List(_) => "slice",
            Self::Pointer(_) => "ptr",
            Self::Map(_) => "map",
            _ => "struct",
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
