//! An operator's description of itself, as its binary prints it for `describe`.

use serde::Deserialize;
use serde_json::Value;

/// The answer to `describe`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorDescription {
    /// The program's name.
    pub name: String,
    /// The namespaces that it is restricted to; none for all.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Its CustomResourceDefinitions.
    #[serde(default)]
    pub definitions: Vec<Value>,
    /// The RBAC rules that it needs.
    #[serde(default)]
    pub rules: Vec<Value>,
    /// The RBAC rules that it needs in its own namespace, for leader election.
    #[serde(default)]
    pub election_rules: Vec<Value>,
    /// Its webhooks, if it has any.
    #[serde(default)]
    pub webhooks: Option<DescribedWebhooks>,
}

/// What the API server asks an operator.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DescribedWebhooks {
    /// Its validating webhooks, as in a configuration, but with the path alone where they are.
    pub validating: Vec<Value>,
    /// Its mutating webhooks, likewise.
    pub mutating: Vec<Value>,
    /// The names of the CRDs that it converts.
    pub conversions: Vec<String>,
}

/// The answer could not be parsed.
#[derive(Debug, thiserror::Error)]
#[error("the operator's answer to `describe` is not understood: {0}")]
pub struct DescriptionError(#[from] serde_json::Error);

impl OperatorDescription {
    /// Reads an answer.
    ///
    /// # Errors
    /// When it is not JSON, or lacks what every answer has.
    pub fn read(answer: &str) -> Result<Self, DescriptionError> {
        Ok(serde_json::from_str(answer)?)
    }

    /// The kinds of its CRDs.
    pub fn kinds(&self) -> Vec<DescribedKind<'_>> {
        self.definitions.iter().filter_map(DescribedKind::of).collect()
    }
}

/// The kind of a CRD.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DescribedKind<'a> {
    /// Its group.
    pub group: &'a str,
    /// Its plural resource name.
    pub plural: &'a str,
    /// Its CamelCase name.
    pub kind: &'a str,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// The version that is stored.
    pub version: &'a str,
    /// That version's schema.
    pub schema: &'a Value,
    /// The whole definition.
    pub definition: &'a Value,
}

impl<'a> DescribedKind<'a> {
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
