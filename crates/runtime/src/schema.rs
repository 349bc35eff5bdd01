//! Schemas of Kubernetes' own types, for the custom resources that use them: `k8s-openapi`'s types have none of their own unless
//! all of them are built with one.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! use schemars::JsonSchema;
//!
//! #[derive(JsonSchema)]
//! struct Status {
//!     #[schemars(schema_with = "windlass::schema::conditions")]
//!     conditions: Vec<Condition>,
//! }
//! let schema = schemars::schema_for!(Status);
//! assert_eq!(schema.pointer("/properties/conditions/x-kubernetes-list-type").unwrap(), "map");
//! ```

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Of a list of `Condition`s: one of each type, merged by it, with the bounds that Kubernetes gives its own.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": { "type": "string", "maxLength": 316 },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
                },
                "message": { "type": "string", "maxLength": 32768 }
            }
        }
    })
}

/// What the API server takes for an amount, such as `100m` or `1.5Gi`; see [`Quantity`](crate::Quantity).
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Of an amount such as `100m`, `2` or `1.5Gi`, which [`Quantity`](crate::Quantity) reads and `k8s-openapi`'s type of that
/// name holds.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
///
/// #[derive(schemars::JsonSchema)]
/// struct Spec {
///     #[schemars(schema_with = "windlass::schema::quantity")]
///     storage: Quantity,
/// }
/// let schema = schemars::schema_for!(Spec);
/// assert_eq!(schema.pointer("/properties/storage/x-kubernetes-int-or-string").unwrap(), true);
/// ```
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY
    })
}

/// Of `ResourceRequirements`: what a container asks for, and the most that it gets.
pub fn resources(generator: &mut SchemaGenerator) -> Schema {
    let mut quantities = || json_schema!({ "type": "object", "additionalProperties": quantity(generator) });
    json_schema!({
        "type": "object",
        "properties": { "limits": quantities(), "requests": quantities() }
    })
}

/// Of a value that may be anything, and is kept as it is.
pub fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// Of an object with any fields, which are kept as they are.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Of a whole Kubernetes object of any kind: it must say its kind, and its metadata must be such.
pub fn embedded(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Of an `IntOrString`, such as a port or a part of a number of pods.
pub fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] })
}

/// A rule that a value never changes once it is set.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// struct Spec {
///     #[schemars(extend("x-kubernetes-validations" = [windlass::schema::immutable()]))]
///     engine: String,
/// }
/// let schema = schemars::schema_for!(Spec);
/// assert_eq!(schema.pointer("/properties/engine/x-kubernetes-validations/0/rule").unwrap(), "self == oldSelf");
/// ```
pub fn immutable() -> Value {
    json!({ "rule": "self == oldSelf", "message": "it cannot be changed" })
}

/// A rule for a struct: of these fields, by their names in JSON, at most one is set.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// #[schemars(extend("x-kubernetes-validations" = [windlass::schema::at_most_one_of(&["file", "text"])]))]
/// struct Source {
///     file: Option<String>,
///     text: Option<String>,
/// }
/// let schema = schemars::schema_for!(Source);
/// assert!(schema.pointer("/x-kubernetes-validations/0/rule").is_some());
/// ```
pub fn at_most_one_of(fields: &[&str]) -> Value {
    of_fields(fields, "<= 1", "at most one of")
}

/// As [`at_most_one_of`]: exactly one of them is set.
pub fn exactly_one_of(fields: &[&str]) -> Value {
    of_fields(fields, "== 1", "exactly one of")
}

/// As [`at_most_one_of`]: at least one of them is set.
pub fn at_least_one_of(fields: &[&str]) -> Value {
    of_fields(fields, ">= 1", "at least one of")
}

fn of_fields(fields: &[&str], count: &str, how_many: &str) -> Value {
    let set: Vec<String> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    let verb = if count == "<= 1" { "may" } else { "must" };
    json!({
        "rule": format!("[{}].filter(set, set).size() {count}", set.join(", ")),
        "message": format!("{how_many} {} {verb} be set", fields.join(", ")),
    })
}
