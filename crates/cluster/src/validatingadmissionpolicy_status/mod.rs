//! Type checking of ValidatingAdmissionPolicies: what does not fit the types that a policy is about is told in its status.

use crate::Settings;
use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, TypeChecking, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus,
};
use std::sync::Arc;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Requeue};
use windlass_apiserver::Api;

/// The API server knows the types; without it nothing is checked.
pub(crate) fn add(manager: Manager, settings: &Settings) -> Manager {
    let Some(api) = settings.issuer.clone() else { return manager };
    let controller = Controller::reconciling(move |policy, ctx| reconcile(policy, ctx, api.clone()))
        .named("validatingadmissionpolicy-status-controller");
    manager.controller(controller)
}

async fn reconcile(
    policy: Arc<ValidatingAdmissionPolicy>,
    ctx: Reconcile<ValidatingAdmissionPolicy>,
    api: Api,
) -> Result<Requeue, ReconcileError> {
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation).unwrap_or(0);
    let Some(generation) = policy.metadata.generation.filter(|generation| *generation > observed) else {
        return Ok(Requeue::on_change());
    };
    let written = serde_json::to_value(&*policy).map_err(ReconcileError::terminal)?;
    let warnings = api
        .check_policy_types(&written)
        .into_iter()
        .map(|warning| ExpressionWarning { field_ref: warning.field_ref, warning: warning.warning });
    let warnings: Vec<ExpressionWarning> = warnings.collect();
    let mut told = (*policy).clone();
    let conditions = told.status.take().and_then(|status| status.conditions);
    let expression_warnings = (!warnings.is_empty()).then_some(warnings);
    told.status = Some(ValidatingAdmissionPolicyStatus {
        conditions,
        observed_generation: Some(generation),
        type_checking: Some(TypeChecking { expression_warnings }),
    });
    ctx.replace_status(&told).await?;
    Ok(Requeue::on_change())
}
