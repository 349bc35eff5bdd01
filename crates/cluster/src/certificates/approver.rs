//! Approves what kubelets ask for their own certificates, if they may ask for it.

use super::decide::{APPROVED, AutoApproval, DENIED, auto_approvals, condition, is_issued};
use super::with_condition;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use std::sync::Arc;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Requeue};
use windlass_apiserver::CertificateRequest;

pub(super) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("certificatesigningrequest-approving-controller")
        .filter(|request: &CertificateSigningRequest| {
            !is_issued(request) && condition(request, APPROVED).or(condition(request, DENIED)).is_none()
        });
    manager.controller(controller)
}

async fn reconcile(
    request: Arc<CertificateSigningRequest>,
    ctx: Reconcile<CertificateSigningRequest>,
) -> Result<Requeue, ReconcileError> {
    let wanted = CertificateRequest::from_pem(&request.spec.request.0).map_err(ReconcileError::terminal)?;
    for approval in auto_approvals(&request, &wanted) {
        if may(&request, approval, &ctx).await? {
            let approved = with_condition(&request, APPROVED, "AutoApproved", approval.message.to_owned());
            ctx.replace_subresource(&approved, "approval").await?;
            break;
        }
    }
    Ok(Requeue::on_change())
}

/// Whether who asks has the right that it takes.
async fn may(
    request: &CertificateSigningRequest,
    approval: AutoApproval,
    ctx: &Reconcile<CertificateSigningRequest>,
) -> Result<bool, ReconcileError> {
    let spec = &request.spec;
    let attributes = ResourceAttributes {
        group: Some("certificates.k8s.io".to_owned()),
        resource: Some("certificatesigningrequests".to_owned()),
        subresource: Some(approval.subresource.to_owned()),
        verb: Some("create".to_owned()),
        version: Some("*".to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: spec.username.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(ctx.writer().client().clone());
    let answer = reviews.create(&Default::default(), &review).await.map_err(ReconcileError::custom)?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
