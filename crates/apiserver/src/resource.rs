//! What a served resource is: its names, its scope, its subresources, and where its objects are kept.

use crate::conversion_webhook::ConversionWebhook;
use crate::crd::scale::ScalePaths;
use crate::facts::FACTS;
use crate::kinds::convert::Shape;
use crate::kinds::field_selectors::{Absent, Field};
use crate::kinds::{self, Rules};
use crate::status::{Named, Status};
use crate::table::CustomColumn;
use crate::typed;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;
use windlass_schema::Schema;

/// One resource in one version, built in or from a CRD. Shared behind an `Arc`; a changed CRD makes a new one.
#[derive(Debug, Clone, Default)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version it is served as.
    pub version: String,
    /// `ConfigMap`
    pub kind: String,
    /// `ConfigMapList`
    pub list_kind: String,
    /// `configmaps`
    pub plural: String,
    /// `configmap`
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// `cm`
    pub short_names: Vec<String>,
    /// `all`
    pub categories: Vec<String>,
    /// What discovery lists.
    pub verbs: Vec<String>,
    /// What discovery lists under the resource.
    pub subresources: Vec<Subresource>,
    /// The type of a custom resource; none preserves everything. See [`Self::schema`] for those of all.
    pub schema: Option<Arc<Schema>>,
    /// The rules of a custom resource's type.
    pub validations: Option<Arc<windlass_schema::rules::Rules>>,
    /// Where a custom resource keeps its replicas, if it has a scale.
    pub scale: Option<Arc<ScalePaths>>,
    /// Who converts a custom resource between its versions, if they differ in more than their names.
    pub(crate) conversion: Option<Arc<ConversionWebhook>>,
    /// All versions of its CRD, served or not, as `apiVersion`.
    pub(crate) api_versions: Arc<[String]>,
    /// Where a field selector may look, beside `metadata.name` and `metadata.namespace`: the selector's label and the
    /// path of the field. A missing field selects as the given text.
    pub selectable: Vec<Selectable>,
    /// The same of the version that objects of a custom resource are stored in.
    pub(crate) stored_selectable: Arc<[Selectable]>,
    /// Whether it is defined by a CRD.
    pub custom: bool,
    /// The `apiVersion` that objects are stored with; `served as` may differ for a CRD of several versions.
    pub stored_as: String,
    /// The types of all versions of its CRD, by `apiVersion`.
    pub schemas: Arc<BTreeMap<String, Arc<Schema>>>,
    /// The name of the CRD that defines it, or of a built-in kind's OpenAPI definition.
    pub definition: String,
    /// The JSON of what an object of a built-in kind has beside its type and metadata when there is nothing in it.
    pub(crate) blank: Arc<OnceLock<Arc<str>>>,
    /// What discovery tells of the version that objects are stored in.
    pub storage_hash: String,
    /// Told apart from what the same resource was before its CRD changed.
    pub stamp: u64,
    /// Whether everything stored went through this very schema, so that reading needs no second look.
    pub pristine: bool,
    /// Cancelled when the resource is no longer served as it was: its watches end.
    pub ended: CancellationToken,
    /// Whether its CRD is on its way out.
    pub terminating: bool,
    /// What clients are told with every answer, if the version is deprecated.
    pub deprecation: Option<String>,
    /// What a custom resource's tables show beside the name.
    pub(crate) columns: Arc<[CustomColumn]>,
    /// What is special about a built-in kind.
    pub(crate) rules: Option<&'static Rules>,
    /// Set if a built-in kind is stored in another shape than this.
    pub(crate) shape: Option<&'static Shape>,
}

impl PartialEq for Resource {
    /// The same resource, in the same version and made from the same definition.
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp
            && (&self.group, &self.version, &self.plural) == (&other.group, &other.version, &other.plural)
    }
}

/// A part of a resource with a path of its own.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// `status`
    pub name: String,
    /// Of what it is asked for and answers with, such as `autoscaling` for a scale.
    pub group: String,
    /// As above.
    pub version: String,
    /// As above.
    pub kind: String,
    /// What discovery lists.
    pub verbs: Vec<String>,
}

/// A field that a field selector may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selectable {
    /// As the selector writes it, such as `involvedObject.name`.
    pub label: String,
    /// Where it is in the object.
    pub path: Vec<String>,
    /// What it is where the object does not have it; empty, unless the kind says otherwise.
    pub(crate) absent: Absent,
}

impl Resource {
    /// `v1` or `group/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As errors name the resource: by its plural.
    pub fn named(&self) -> Named<'_> {
        Named { group: &self.group, kind: &self.plural }
    }

    /// As validation errors name it: by its kind.
    pub fn named_kind(&self) -> Named<'_> {
        Named { group: &self.group, kind: &self.kind }
    }

    /// The type, as apply walks it; none preserves everything.
    pub fn schema(&self) -> Option<Arc<Schema>> {
        if self.custom { self.schema.clone() } else { FACTS.schema(&self.definition) }
    }

    /// The JSON of what an object has beside its type and metadata when there is nothing in it, each field with a comma
    /// before it.
    pub(crate) fn blank(&self) -> Arc<str> {
        self.blank.get_or_init(|| blank_fields(self).into()).clone()
    }

    /// What an object of a built-in kind looks like with nothing in it.
    pub(crate) fn blank_object(&self) -> Option<Value> {
        self.rules?;
        let nothing = Value::Object(Map::new());
        let mut blank =
            typed::convert(&FACTS.structs, &self.definition, nothing, "", &mut Vec::new()).ok()?;
        if let Some(object) = blank.as_object_mut() {
            object.insert("kind".to_owned(), Value::String(self.kind.clone()));
            object.insert("apiVersion".to_owned(), Value::String(self.api_version()));
        }
        Some(blank)
    }

    /// Are there objects of it in the store? Some kinds are only questions, or what others send.
    pub(crate) fn is_stored(&self) -> bool {
        let has = |verb: &str| self.verbs.iter().any(|known| known == verb);
        has("create") && has("get")
    }

    /// `configmaps` or `widgets.example.com`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Where its objects are in the store: `configmaps` or `example.com/widgets`.
    pub fn storage_key(&self) -> String {
        match self.shape {
            Some(shape) => shape.key.to_owned(),
            None if self.group.is_empty() => self.plural.clone(),
            None => format!("{}/{}", self.group, self.plural),
        }
    }

    /// The selectable fields of an object, as the store keeps them.
    pub fn fields_of(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        fields(&self.selectable, object)
    }

    /// Those of a custom object in the version that it is stored in.
    pub(crate) fn stored_fields_of(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        fields(&self.stored_selectable, object)
    }

    /// Whether stored objects are brought into this version before they are selected and shown: their labels and selectable fields may
    /// be others here.
    pub(crate) fn selects_converted(&self) -> bool {
        self.custom && !self.pristine && (self.conversion.is_some() || !self.selectable.is_empty())
    }

    /// Whether it has this subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| subresource.name == name)
    }

    /// The name that the store keeps a field under which a field selector asks for.
    pub(crate) fn kept_as<'a>(&self, asked: &'a str) -> Result<&'a str, Status> {
        if let Some(selecting) =
            kinds::field_selectors::selecting(&self.group, &self.plural).filter(|_| !self.custom)
        {
            return selecting.kept_as(asked);
        }
        let known = match asked {
            "metadata.name" => true,
            "metadata.namespace" => self.namespaced || !self.custom,
            _ => self.selectable.iter().any(|field| field.label == asked),
        };
        let refuse = || match self.custom {
            true => format!("field label not supported: {asked}"),
            false => {
                format!(
                    "{asked:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }
        };
        if known { Ok(asked) } else { Err(Status::bad_request(refuse())) }
    }
}

fn fields(selectable: &[Selectable], object: &Value) -> Vec<(Box<str>, Box<str>)> {
    let field = |field: &Selectable| (field.label.as_str().into(), field.of(object).into());
    selectable.iter().map(field).collect()
}

fn blank_fields(resource: &Resource) -> String {
    let Some(Value::Object(fields)) = resource.blank_object() else { return String::new() };
    let rest = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    rest.map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str()))).collect()
}

impl Selectable {
    /// A field of a built-in kind.
    pub(crate) fn built_in(field: &Field) -> Self {
        let path = field.path.iter().map(|&name| name.to_owned()).collect();
        Self { label: field.label.to_owned(), path, absent: field.absent }
    }

    /// What a selector compares with.
    pub(crate) fn of(&self, object: &Value) -> String {
        fn text(found: Option<&Value>) -> Option<String> {
            match found? {
                Value::Null => None,
                Value::String(text) => (!text.is_empty()).then(|| text.clone()),
                other => Some(other.to_string()),
            }
        }
        let found = text(self.path.iter().try_fold(object, |value, name| value.get(name)));
        found.unwrap_or_else(|| match self.absent {
            Absent::Text(absent) => absent.to_owned(),
            Absent::As(path) => {
                text(path.iter().try_fold(object, |value, name| value.get(*name))).unwrap_or_default()
            }
        })
    }
}
