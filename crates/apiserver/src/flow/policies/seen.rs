//! What the expressions of a policy see of a request.

use crate::flow::convert;
use crate::flow::webhooks::{Admitted, kind_of, shown_request};
use crate::kinds::policy_expressions::PolicyVariables;
use crate::resource::Resource;
use crate::status::{Named, Status};
use serde_json::{Map, Value};
use std::borrow::Cow;
use windlass_store::Key;

/// The request, as one about `resource`, which is the version that the policy names.
///
/// # Errors
/// When the object has no such version.
pub(super) async fn variables(
    admitted: &Admitted<'_>,
    resource: &Resource,
    object: Option<&Value>,
    namespace: &Value,
) -> Result<PolicyVariables, Status> {
    let operation = admitted.operation;
    let object = convert::for_webhook(operation, resource, object).await?;
    let old = convert::for_webhook(operation, resource, admitted.old).await?;
    Ok(PolicyVariables {
        object: object.map(Cow::into_owned).unwrap_or_default(),
        old: old.map(Cow::into_owned).unwrap_or_default(),
        request: shown_request(resource, admitted),
        namespace: namespace.clone(),
        params: Value::Null,
    })
}

/// The namespace of the request as expressions see it; null for what is in none, and for namespaces.
///
/// # Errors
/// 404 if it is not there.
pub(super) fn namespace(admitted: &Admitted<'_>) -> Result<Value, Status> {
    const SHOWN: [&str; 12] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let operation = admitted.operation;
    let name = admitted.namespace.as_str();
    let kind = kind_of(&operation.resource, &operation.subresource);
    if name.is_empty() || kind == ("", "v1", "Namespace") {
        return Ok(Value::Null);
    }
    let stored = operation.api.store.get(&Key::new("namespaces", "", name));
    let namespaces = Named { group: "", kind: "namespaces" };
    let mut stored = stored.ok_or_else(|| Status::not_found(namespaces, name))?.value();
    let mut shown = Map::new();
    if let Some(Value::Object(mut metadata)) = stored.get_mut("metadata").map(Value::take) {
        metadata.retain(|name, _| SHOWN.contains(&name.as_str()));
        shown.insert("metadata".to_owned(), Value::Object(metadata));
    }
    for field in ["spec", "status"] {
        shown.insert(field.to_owned(), stored.get_mut(field).map(Value::take).unwrap_or_default());
    }
    Ok(Value::Object(shown))
}
