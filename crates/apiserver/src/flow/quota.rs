//! Charges a write to the quotas of its namespace: a write within a write, of each quota's status.

use super::guaranteed_update::{Preconditions, guaranteed_update};
use super::managed;
use crate::admission::resource_quota::{charged, quotas};
use crate::admission_plugins::AdmissionPlugin;
use crate::object::text;
use crate::operation::Operation;
use crate::status::Status;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

/// Charges what is to be stored, or says why it is too much; none if nobody counts, so that nothing is boxed then.
pub(super) fn charge<'a>(
    operation: &'a Operation<'_>,
    new: &'a Value,
    old: Option<&'a Value>,
) -> Option<BoxFuture<'a, Result<(), Status>>> {
    if operation.api.disabled_admission_plugins.contains(AdmissionPlugin::ResourceQuota) {
        return None;
    }
    let quotas = quotas(operation, old);
    (!quotas.is_empty()).then(|| charge_all(operation, quotas, new, old).boxed())
}

async fn charge_all(
    operation: &Operation<'_>,
    quotas: Vec<Value>,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    for quota in quotas {
        if charged(&quota, operation, new, old)?.is_none() || operation.options.dry_run {
            continue;
        }
        let Some(resource) = operation.api.registry.get("", "v1", "resourcequotas") else { continue };
        let name = text(&quota, &["metadata", "name"]);
        let charging = Operation {
            subresource: "status".to_owned(),
            deadline: operation.deadline,
            // The reference writes it as a client of its own.
            asks_webhooks: true,
            ..Operation::of_server(operation.api, resource, &operation.namespace, name)
        };
        // Judged again on the quota as it is when it is written.
        let make = |live: Option<&Value>| {
            let live = live.cloned().unwrap_or_default();
            let mut quota = charged(&live, operation, new, old)?.unwrap_or_else(|| live.clone());
            managed::update(&charging, Some(&live), &mut quota);
            Ok(quota)
        };
        guaranteed_update(&charging, &Preconditions::default(), make).await?;
    }
    Ok(())
}
