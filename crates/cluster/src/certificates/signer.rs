//! Signs what was approved, with the CA of the cluster.

use super::decide::{APPROVED, DENIED, FAILED, check, condition, is_issued, is_known, validity};
use super::with_condition;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use std::sync::Arc;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Requeue};
use windlass_apiserver::{Api, CertificateRequest};
use windlass_clock::Clock;

pub(super) fn add(manager: Manager, api: Api) -> Manager {
    let controller = Controller::reconciling(move |request, ctx| reconcile(request, ctx, api.clone()))
        .named("certificatesigningrequest-signing-controller")
        .filter(|request: &CertificateSigningRequest| {
            is_known(&request.spec.signer_name)
                && !is_issued(request)
                && condition(request, APPROVED).is_some()
                && condition(request, DENIED).or(condition(request, FAILED)).is_none()
        });
    manager.controller(controller)
}

async fn reconcile(
    request: Arc<CertificateSigningRequest>,
    ctx: Reconcile<CertificateSigningRequest>,
    api: Api,
) -> Result<Requeue, ReconcileError> {
    let wanted = CertificateRequest::from_pem(&request.spec.request.0).map_err(ReconcileError::terminal)?;
    if let Err(why) = check(&request, &wanted) {
        ctx.replace_status(&with_condition(&request, FAILED, "SignerValidationFailure", why)).await?;
        return Ok(Requeue::on_change());
    }
    let usages = request.spec.usages.iter().flatten().map(String::as_str);
    // Whoever is shown it judges it by the time of the world, whatever time the cluster lives by.
    let (from, until) = validity(&request, Clock::real().now());
    let credentials = api.credentials().map_err(ReconcileError::custom)?;
    let certificate = credentials.sign(&wanted, usages, from, until).map_err(ReconcileError::custom)?;
    let mut signed = (*request).clone();
    signed.status.get_or_insert_default().certificate = Some(ByteString(certificate.into_bytes()));
    ctx.replace_status(&signed).await?;
    Ok(Requeue::on_change())
}
