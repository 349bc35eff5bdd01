//! What an operator is: its controllers, and the permissions that follow from what they watch and write.

use crate::controller::{Description, permissions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// All of it, as JSON.
pub(crate) fn describe(
    program: &str,
    namespaces: &[String],
    definitions: &[CustomResourceDefinition],
    controllers: &[Description],
    webhooks: Option<Value>,
) -> Value {
    let mut described = json!({
        "name": program,
        "namespaces": namespaces,
        "definitions": definitions,
        "controllers": controllers,
        "rules": permissions::rules(controllers),
        "electionRules": permissions::election_rules(),
    });
    if let Some(webhooks) = webhooks {
        described["webhooks"] = webhooks;
    }
    described
}
