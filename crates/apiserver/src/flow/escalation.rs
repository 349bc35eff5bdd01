//! Roles and bindings: nobody grants what they do not have themselves, unless they may `escalate` the role or `bind` to it.

use crate::authorization::{
    self, Attributes, Grant, On, PolicyRule, ResourceAttributes, RoleRef, is_privileged,
};
use crate::object::{at, child, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::Value;

/// Refuses a role or a binding, as it is to be written, that would give more than its writer has.
pub(super) async fn check(
    operation: &Operation<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let resource = &operation.resource;
    if resource.group != authorization::GROUP || is_privileged(operation.identity) {
        return Ok(());
    }
    let only_collected = || old.is_some_and(|old| is_only_garbage_collection(object, old));
    match resource.plural.as_str() {
        "roles" | "clusterroles" => {
            if may(operation, "escalate", &resource.plural, &operation.name).await || only_collected() {
                return Ok(());
            }
            role(operation, object, old)
        }
        "rolebindings" | "clusterrolebindings" => {
            if only_collected() {
                return Ok(());
            }
            binding(operation, object).await
        }
        _ => Ok(()),
    }
}

fn role(operation: &Operation<'_>, role: &Value, old: Option<&Value>) -> Result<(), Status> {
    let rules = role.get("rules").cloned().unwrap_or_default();
    let rules: Option<Vec<PolicyRule>> =
        serde_json::from_value(rules).map_err(|error| Status::bad_request(error.to_string()))?;
    let refused =
        |why: String| Status::forbidden(operation.resource.named(), text(role, &["metadata", "name"]), &why);
    grant(operation, &rules.unwrap_or_default()).map_err(refused)?;
    // What it gathers can be anything.
    if gathers(role) || old.is_some_and(gathers) {
        grant(operation, &PolicyRule::full_authority()).map_err(|_| {
            refused("must have cluster-admin privileges to use the aggregationRule".to_owned())
        })?;
    }
    Ok(())
}

async fn binding(operation: &Operation<'_>, binding: &Value) -> Result<(), Status> {
    let role = binding.get("roleRef").cloned().unwrap_or_default();
    let role: RoleRef =
        serde_json::from_value(role).map_err(|error| Status::bad_request(error.to_string()))?;
    let resource = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        _ => "",
    };
    let group = text(binding, &["roleRef", "apiGroup"]);
    if !resource.is_empty()
        && group == authorization::GROUP
        && may(operation, "bind", resource, &role.name).await
    {
        return Ok(());
    }
    let rules =
        operation.api.authorizer.rbac.rules_of(&role, &operation.namespace).map_err(|why| match why {
            // The reference names the resource that is written here.
            authorization::Unresolved::Missing { name, .. } => {
                Status::not_found(operation.resource.named(), &name)
            }
            why => Status::plain(why.to_string()),
        })?;
    grant(operation, &rules).map_err(|why| {
        Status::forbidden(operation.resource.named(), text(binding, &["metadata", "name"]), &why)
    })
}

fn grant(operation: &Operation<'_>, rules: &[PolicyRule]) -> Result<(), String> {
    let grant = Grant { identity: operation.identity, namespace: &operation.namespace };
    grant.check(&operation.api.authorizer.rbac, rules)
}

async fn may(operation: &Operation<'_>, verb: &str, resource: &str, name: &str) -> bool {
    let on = ResourceAttributes {
        group: authorization::GROUP,
        version: "*",
        resource,
        namespace: &operation.namespace,
        name,
        ..ResourceAttributes::default()
    };
    let asked = Attributes { identity: operation.identity, verb, on: On::Resource(on) };
    operation.api.authorizer.allows(&asked).await
}

fn gathers(role: &Value) -> bool {
    let selectors = at(role, &["aggregationRule", "clusterRoleSelectors"]).and_then(Value::as_array);
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

/// Whether only that changes which has to, so that the object can be collected.
fn is_only_garbage_collection(new: &Value, old: &Value) -> bool {
    let but = |object: &Value| {
        let mut object = object.clone();
        let metadata = child(&mut object, "metadata");
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            metadata.remove(field);
        }
        object
    };
    but(new) == but(old)
}
