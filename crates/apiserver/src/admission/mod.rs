//! Admission plug-ins that a stock server has on, a file each: what they add to new objects, and what they refuse.
//!
//! A kind's row names what runs for it, in the order in which the reference runs them. Webhooks and policies come after
//! all of these.

mod claim_resize;
mod default_class;
pub(crate) mod default_tolerations;
mod limit_ranger;
mod pod_security;
mod priority;
pub(crate) mod resource_quota;
mod runtime_class;
pub(crate) mod service_account;
mod tally;

pub use tally::Tally;

use crate::flow::Operation;
use crate::kinds::text;
use crate::status::Status;
use crate::store::ListQuery;
use serde_json::{Map, Value, json};

/// What is added to a new pod.
pub(crate) fn pod(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    limit_ranger::fill(operation, pod);
    service_account::fill(operation, pod)?;
    priority::fill(operation, pod)?;
    default_tolerations::fill(pod);
    runtime_class::fill(operation, pod)
}

/// What is added to a new claim of storage.
pub(crate) fn claim(operation: &Operation<'_>, claim: &mut Value) -> Result<(), Status> {
    default_class::of_claim(operation, claim);
    Ok(())
}

/// What is added to a new ingress.
pub(crate) fn ingress(operation: &Operation<'_>, ingress: &mut Value) -> Result<(), Status> {
    default_class::of_ingress(operation, ingress);
    Ok(())
}

/// Whether a pod may be as it is to be.
pub(crate) fn check_pod(operation: &Operation<'_>, pod: &Value, old: Option<&Value>) -> Result<(), Status> {
    if old.is_some() {
        return Ok(());
    }
    limit_ranger::check_pod(operation, pod)?;
    pod_security::check(operation, pod)?;
    runtime_class::check(operation, pod)
}

/// Whether what makes pods may be as it is to be: it may, but its pods could be refused.
pub(crate) fn check_template(
    operation: &Operation<'_>,
    new: &Value,
    _: Option<&Value>,
) -> Result<(), Status> {
    if operation.subresource.is_empty() {
        const PLACES: [&str; 3] =
            ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/template/spec"];
        PLACES
            .iter()
            .filter_map(|place| new.pointer(place))
            .for_each(|spec| pod_security::warn(operation, spec));
    }
    Ok(())
}

/// Whether a claim of storage may be as it is to be.
pub(crate) fn check_claim(
    operation: &Operation<'_>,
    claim: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    limit_ranger::check_claim(operation, claim, old)?;
    claim_resize::check(operation, claim, old)
}

/// A refusal in the words of admission.
fn forbidden(operation: &Operation<'_>, object: &Value, why: &str) -> Status {
    let name = match text(object, &["metadata", "name"]) {
        "" => text(object, &["metadata", "generateName"]),
        name => name,
    };
    Status::forbidden(operation.resource.named(), name, why)
}

/// The list at a field, made if it is not there.
pub(crate) fn list<'a>(object: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Vec<Value>> {
    let slot = object.entry(field).or_insert_with(|| json!([]));
    if slot.is_null() {
        *slot = json!([]);
    }
    slot.as_array_mut()
}

/// All objects of a resource, of one namespace or of the cluster.
fn all(operation: &Operation<'_>, resource: &str, namespace: Option<&str>) -> Vec<Value> {
    let query = ListQuery { namespace, ..ListQuery::all(resource) };
    let page = operation.api.store.list(&query);
    page.map(|page| page.items.iter().map(|entry| entry.value()).collect()).unwrap_or_default()
}
