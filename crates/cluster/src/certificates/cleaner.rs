//! Deletes requests some time after they were decided, and those that nobody decides.

use super::decide::delete_at;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use std::sync::Arc;
use std::time::Duration;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reconcile, ReconcileError, Requeue};

pub(super) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile).named("certificatesigningrequest-cleaner-controller");
    manager.controller(controller)
}

async fn reconcile(
    request: Arc<CertificateSigningRequest>,
    ctx: Reconcile<CertificateSigningRequest>,
) -> Result<Requeue, ReconcileError> {
    let Some(at) = delete_at(&request, expires(&request)) else { return Ok(Requeue::on_change()) };
    match Duration::try_from(at.duration_since(ctx.clock().now())) {
        Ok(wait) if !wait.is_zero() => Ok(Requeue::after(wait)),
        _ => {
            // If it changed meanwhile, it may have been decided.
            ctx.delete(&*request, &Deletion::new(Basis::Observed).if_unchanged()).await?;
            Ok(Requeue::on_change())
        }
    }
}

/// When the certificate expires.
fn expires(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let certificate = request.status.as_ref()?.certificate.as_ref()?;
    windlass_apiserver::certificate_expires(&certificate.0)
}
