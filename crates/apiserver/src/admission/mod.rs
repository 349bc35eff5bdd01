//! Admission plug-ins that a stock server has on, a file each: what they add to objects, and what they refuse.
//!
//! [`flow`](crate::flow) asks them, in the order in which the reference runs them: those that mutate before an object is
//! prepared and validated, those that validate after it. Webhooks and policies come after all of these.
//!
//! Which plug-ins look at a resource is a row of `plugins`, so that a write of any other kind does not ask them.

mod certificates;
mod default_class;
mod default_tolerations;
mod limit_ranger;
pub(crate) mod namespace_lifecycle;
mod node_restriction;
mod pod_security;
mod priority;
mod quota_usage;
pub(crate) mod resource_quota;
mod runtime_class;
mod service_account;
mod volume_claim_resize;

pub use quota_usage::QuotaUsage;

use crate::admission_plugins::AdmissionPlugin;
use crate::object::text;
use crate::operation::Operation;
use crate::status::Status;
use serde_json::Value;
use windlass_store::ListQuery;

/// The plug-ins that look at a resource, in the order of the reference.
fn plugins(group: &str, plural: &str) -> &'static [AdmissionPlugin] {
    use AdmissionPlugin::*;
    match (group, plural) {
        ("", "pods") => {
            const ALL: &[AdmissionPlugin] = &[
                LimitRanger,
                ServiceAccount,
                NodeRestriction,
                PodSecurity,
                Priority,
                DefaultTolerationSeconds,
                RuntimeClass,
            ];
            ALL
        }
        ("", "persistentvolumeclaims") => {
            &[LimitRanger, NodeRestriction, DefaultStorageClass, PersistentVolumeClaimResize]
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            &[NodeRestriction, CertificateApproval, CertificateSigning, CertificateSubjectRestriction]
        }
        ("networking.k8s.io", "ingresses") => &[NodeRestriction, DefaultIngressClass],
        ("", "podtemplates" | "replicationcontrollers")
        | ("apps", "deployments" | "statefulsets" | "replicasets" | "daemonsets")
        | ("batch", "jobs" | "cronjobs") => &[NodeRestriction, PodSecurity],
        _ => &[NodeRestriction],
    }
}

/// Those of them that the server has not disabled.
fn enabled(operation: &Operation<'_>) -> impl Iterator<Item = AdmissionPlugin> + use<> {
    let disabled = operation.api.disabled_admission_plugins;
    let plugins = plugins(&operation.resource.group, &operation.resource.plural);
    plugins.iter().copied().filter(move |plugin| !disabled.contains(*plugin))
}

/// Changes an object that is to be stored, or says why it is refused; `old` is what it was, if it was.
pub(crate) async fn mutate(
    operation: &Operation<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    // What is asked of a subresource is no object of the resource.
    let creates = old.is_none() && operation.subresource.is_empty();
    for plugin in enabled(operation) {
        match plugin {
            AdmissionPlugin::LimitRanger if creates => limit_ranger::mutate(operation, object),
            AdmissionPlugin::ServiceAccount if creates => service_account::mutate(operation, object).await?,
            AdmissionPlugin::NodeRestriction => node_restriction::write(operation, object, old).await?,
            AdmissionPlugin::Priority if creates => priority::mutate(operation, object)?,
            AdmissionPlugin::Priority if operation.subresource.is_empty() => priority::keep(object, old),
            AdmissionPlugin::DefaultTolerationSeconds if operation.subresource.is_empty() => {
                default_tolerations::mutate(object);
            }
            AdmissionPlugin::DefaultStorageClass if creates => default_class::mutate_claim(operation, object),
            AdmissionPlugin::DefaultIngressClass if creates => {
                default_class::mutate_ingress(operation, object)
            }
            AdmissionPlugin::RuntimeClass if creates => runtime_class::mutate(operation, object)?,
            _ => {}
        }
    }
    Ok(())
}

/// Says why an object is refused that is to be stored, if it is; `old` is what it was, if it was.
pub(crate) async fn validate(
    operation: &Operation<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    for plugin in enabled(operation) {
        match plugin {
            AdmissionPlugin::LimitRanger => limit_ranger::validate(operation, object, old)?,
            AdmissionPlugin::PodSecurity => pod_security::validate(operation, object, old)?,
            AdmissionPlugin::PersistentVolumeClaimResize => {
                volume_claim_resize::validate(operation, object, old)?
            }
            AdmissionPlugin::RuntimeClass if old.is_none() => runtime_class::validate(operation, object)?,
            AdmissionPlugin::CertificateApproval => certificates::approval(operation, object, old).await?,
            AdmissionPlugin::CertificateSigning => certificates::signing(operation, object, old).await?,
            AdmissionPlugin::CertificateSubjectRestriction => {
                certificates::subject_restriction(operation, object, old)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Says why an object is not to be deleted, if it is not.
pub(crate) async fn delete(operation: &Operation<'_>, old: &Value) -> Result<(), Status> {
    match enabled(operation).any(|plugin| plugin == AdmissionPlugin::NodeRestriction) {
        true => node_restriction::delete(operation, old).await,
        false => Ok(()),
    }
}

/// A refusal in the words of admission. What is created has the name that it says, if any.
pub(crate) fn forbidden(operation: &Operation<'_>, object: &Value, why: &str) -> Status {
    let names = [
        operation.name.as_str(),
        text(object, &["metadata", "name"]),
        text(object, &["metadata", "generateName"]),
    ];
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
    Status::forbidden(operation.resource.named(), name, why)
}

/// All objects of a resource, of one namespace or of the cluster.
fn all(operation: &Operation<'_>, resource: &str, namespace: Option<&str>) -> Vec<Value> {
    let query = ListQuery { namespace, ..ListQuery::all(resource) };
    let page = operation.api.store.list(&query);
    page.map(|page| page.items.iter().map(|entry| entry.value()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FACTS;

    #[test]
    fn plugins_are_in_the_order_of_the_reference() {
        let place = |plugin: &AdmissionPlugin| AdmissionPlugin::ALL.iter().position(|known| known == plugin);
        for row in &FACTS.resources {
            assert!(plugins(&row.group, &row.plural).is_sorted_by_key(place), "{}", row.plural);
        }
        assert_eq!(plugins("", "pods").len(), 7);
        assert_eq!(plugins("example.com", "pods"), [AdmissionPlugin::NodeRestriction]);
    }
}
