//! What an operator's binary says of itself, as far as manifests follow from it.

use serde::Deserialize;
use serde_json::Value;

/// The answer to `describe`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// The program's name.
    pub name: String,
    /// The namespaces that it is restricted to; none for all.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// The kinds that it brings, as CustomResourceDefinitions.
    #[serde(default)]
    pub definitions: Vec<Value>,
    /// What it must be allowed to do.
    #[serde(default)]
    pub rules: Vec<Value>,
    /// What it must be allowed to do in its own namespace, to be elected.
    #[serde(default)]
    pub election_rules: Vec<Value>,
}

/// An answer that is none.
#[derive(Debug, thiserror::Error)]
#[error("the operator's answer to `describe` is not understood: {0}")]
pub struct NotUnderstood(#[from] serde_json::Error);

impl Described {
    /// Reads an answer.
    ///
    /// # Errors
    /// When it is not JSON, or lacks what every answer has.
    pub fn read(answer: &str) -> Result<Self, NotUnderstood> {
        Ok(serde_json::from_str(answer)?)
    }

    /// The kinds that it brings.
    pub fn kinds(&self) -> Vec<Defined<'_>> {
        self.definitions.iter().filter_map(Defined::of).collect()
    }
}

/// A kind that an operator brings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defined<'a> {
    /// Its group.
    pub group: &'a str,
    /// Its name in paths.
    pub plural: &'a str,
    /// Its CamelCase name.
    pub kind: &'a str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// The version that is stored.
    pub version: &'a str,
    /// That version's schema.
    pub schema: &'a Value,
    /// The whole definition.
    pub definition: &'a Value,
}

impl<'a> Defined<'a> {
    /// The kind that a definition makes; nothing where it is none.
    pub fn of(definition: &'a Value) -> Option<Self> {
        let text = |pointer: &str| definition.pointer(pointer)?.as_str();
        let versions = definition.pointer("/spec/versions")?.as_array()?;
        let stored = versions.iter().find(|version| version["storage"] == true)?;
        Some(Self {
            group: text("/spec/group")?,
            plural: text("/spec/names/plural")?,
            kind: text("/spec/names/kind")?,
            namespaced: text("/spec/scope")? == "Namespaced",
            version: stored["name"].as_str()?,
            schema: stored.pointer("/schema/openAPIV3Schema")?,
            definition,
        })
    }
}
