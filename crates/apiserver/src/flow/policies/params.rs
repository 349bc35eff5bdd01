//! The parameters of a policy: objects of a kind that the policy names, which its binding chooses.

use crate::admission_policies::{ParamKind, ParamRef, Policy};
use crate::flow::convert;
use crate::operation::Operation;
use crate::resource::Resource;
use serde_json::Value;
use std::sync::Arc;
use windlass_store::{Key, ListQuery};

/// The resource of a policy's parameters, if it has any.
///
/// # Errors
/// When there is no such kind.
pub(super) fn resource(operation: &Operation<'_>, policy: &Policy) -> Result<Option<Arc<Resource>>, String> {
    let Some(wanted) = &policy.param_kind else { return Ok(None) };
    let ParamKind { group, version, kind } = wanted;
    let served = operation.api.registry.served();
    let found = served
        .all()
        .find(|resource| (&resource.group, &resource.version, &resource.kind) == (group, version, kind));
    match found {
        Some(resource) => Ok(Some(resource.clone())),
        None => Err(format!("failed to find resource referenced by paramKind: '{wanted}'")),
    }
}

/// The parameters that a binding chooses: a policy is carried out once with each. Null stands for none where none are asked for.
///
/// # Errors
/// When they cannot be told, or there must be some.
pub(super) async fn collect(
    operation: &Operation<'_>,
    resource: Option<&Arc<Resource>>,
    chosen: Option<&ParamRef>,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let (Some(resource), Some(chosen)) = (resource, chosen) else { return Ok(vec![Value::Null]) };
    let namespace = match (resource.namespaced, chosen.namespace.as_str()) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, "") => namespace,
        (true, named) => named,
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let store = &operation.api.store;
    let mut found = Vec::new();
    if !chosen.name.is_empty() {
        let key = Key::new(resource.storage_key(), namespace, chosen.name.as_str());
        found.extend(store.get(&key));
    } else if let Some(selector) = &chosen.selector {
        let key = resource.storage_key();
        let within = resource.namespaced.then_some(namespace);
        let query = ListQuery { namespace: within, ..ListQuery::all(key.as_str()) };
        let page = store.list(&query).map_err(|error| error.to_string())?;
        found.extend(page.items.into_iter().filter(|entry| {
            let value = entry.value();
            let labels = value.pointer("/metadata/labels");
            selector.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
        }));
    } else {
        return Err("one of name or selector must be provided".to_owned());
    }
    if found.is_empty() && chosen.denies_without {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let mut params = Vec::with_capacity(found.len());
    for stored in &found {
        let param = convert::of_resource(operation, resource, stored).await;
        params.push(param.map_err(|status| status.message)?);
    }
    Ok(params)
}
