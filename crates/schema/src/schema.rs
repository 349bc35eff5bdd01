//! What a type looks like: one node of an OpenAPI v3 schema as Kubernetes uses it, for CRDs and built-in kinds alike.
//!
//! In comes the JSON of a CRD's `openAPIV3Schema` or of a definition in the server's OpenAPI; out comes a tree that
//! [`crate::validate`], [`crate::prune`], [`crate::default`] and [`crate::apply`] walk.

mod parse;

use crate::pattern::Pattern;
pub(crate) use parse::MAX_SCHEMA_DEPTH;
pub use parse::{link, link_with};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

/// A JSON type that a schema can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
}

impl Type {
    /// The type's name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// `x-kubernetes-list-type`: how lists merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Scalars, each its own key.
    Set,
    /// Objects, identified by the fields in [`Schema::list_map_keys`].
    Map,
}

/// `x-kubernetes-map-type`: how objects merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    /// Field by field.
    Granular,
    /// Replaced as a whole.
    Atomic,
}

/// `additionalProperties`.
#[derive(Debug, Clone)]
pub enum Additional {
    /// A bare `true` or `false`.
    Allowed(bool),
    /// Every further property has this schema.
    Schema(Arc<Schema>),
}

/// One node of a schema.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields carry OpenAPI's and Kubernetes' own names and meanings")]
pub struct Schema {
    pub kind: Option<Type>,
    pub format: Option<String>,
    pub title: Option<String>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub enumeration: Option<Vec<Value>>,

    pub properties: BTreeMap<String, Arc<Schema>>,
    pub required: Vec<String>,
    pub additional: Option<Additional>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,

    pub items: Option<Arc<Schema>>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,

    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,

    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<String>,

    pub all_of: Vec<Arc<Schema>>,
    pub any_of: Vec<Arc<Schema>>,
    pub one_of: Vec<Arc<Schema>>,
    pub not: Option<Arc<Schema>>,

    pub int_or_string: bool,
    pub preserve_unknown: bool,
    pub embedded_resource: bool,
    pub list_type: Option<ListType>,
    pub list_map_keys: Vec<String>,
    pub map_type: Option<MapType>,
    /// `x-kubernetes-validations`, as written.
    pub validations: Vec<Value>,

    /// Where a `$ref` leads: set for the definitions of built-in kinds, which may be recursive; never for CRDs.
    pub reference: Option<Reference>,

    /// Do formats count that nobody knows? So it is where the real server checks defaults.
    pub(crate) any_format: bool,
    /// `pattern`, compiled at its first use.
    pub(crate) compiled: OnceLock<Pattern>,
}

/// A named definition elsewhere, linked after all of them were read. Weak, since definitions may be recursive: whoever
/// holds the [`Definitions`] keeps them alive.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The definition's name, such as `io.k8s.api.core.v1.ConfigMap`.
    pub name: String,
    pub(crate) target: Arc<OnceLock<Weak<Schema>>>,
}

/// The named definitions of an OpenAPI document, linked with each other.
pub type Definitions = BTreeMap<String, Arc<Schema>>;

impl Schema {
    /// The node itself, or what its `$ref` leads to. A lone `allOf` around a `$ref`, as OpenAPI writes a reference that
    /// has a default beside it, is followed too.
    pub fn resolved(self: &Arc<Self>) -> Arc<Schema> {
        let mut node = self.clone();
        // A chain of references is as long as the definitions are deep; the bound is against a cycle of bare references.
        for _ in 0..64 {
            let next = match (&node.reference, node.all_of.as_slice()) {
                (Some(reference), _) => reference.target.get().and_then(Weak::upgrade),
                (None, [only]) if node.kind.is_none() && only.reference.is_some() => Some(only.clone()),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}
