//! The facts of the built-in kinds: definitions, discovery rows and struct tags, taken from the reference when the crate was
//! written, and read when first asked for.

use crate::typed::Structs;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use windlass_schema::Definitions;

/// Everything known about the built-in kinds.
pub(crate) struct Facts {
    /// As OpenAPI documents show them.
    pub(crate) raw: Map<String, Value>,
    /// The same, linked: what apply walks.
    pub(crate) definitions: Definitions,
    /// What discovery says.
    pub(crate) resources: Vec<Row>,
    /// What decoding and encoding do.
    pub(crate) structs: Structs,
}

/// A resource as discovery shows it.
#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) definition: String,
    pub(crate) subresources: Vec<SubresourceRow>,
}

/// A subresource as discovery shows it.
#[derive(Deserialize)]
pub(crate) struct SubresourceRow {
    pub(crate) name: String,
    pub(crate) verbs: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    definitions: Map<String, Value>,
    resources: Vec<Row>,
}

/// The facts.
pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let file: File =
        serde_json::from_str(include_str!("../facts/openapi.json")).expect("the facts are part of the crate");
    let definitions =
        windlass_schema::schema::link(&file.definitions).expect("the facts' definitions are well formed");
    let structs = Structs::parse(include_str!("../facts/go.json")).expect("the facts are part of the crate");
    Facts { raw: file.definitions, definitions, resources: file.resources, structs }
});
