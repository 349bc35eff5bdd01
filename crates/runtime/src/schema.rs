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

/// Of `ResourceRequirements`: what a container asks for, and the most that it gets.
pub fn resources(_: &mut SchemaGenerator) -> Schema {
    let quantities = || {
        json_schema!({
            "type": "object",
            "additionalProperties": {
                "x-kubernetes-int-or-string": true,
                "anyOf": [{ "type": "integer" }, { "type": "string" }],
                "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
            }
        })
    };
    json_schema!({
        "type": "object",
        "properties": { "limits": quantities(), "requests": quantities() }
    })
}
