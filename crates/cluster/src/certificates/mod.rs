//! CertificateSigningRequests: approves those of kubelets for their own certificates, signs what was approved for one of
//! Kubernetes' signers, and deletes what is done or forgotten.

mod approver;
mod cleaner;
mod decide;
mod signer;

use crate::Settings;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestStatus,
};
use windlass::Manager;

pub(crate) fn add(manager: Manager, settings: &Settings) -> Manager {
    let manager = cleaner::add(approver::add(manager));
    match &settings.issuer {
        Some(api) => signer::add(manager, api.clone()),
        None => manager,
    }
}

/// The request with one more condition, which is true.
fn with_condition(
    request: &CertificateSigningRequest,
    kind: &str,
    reason: &str,
    message: String,
) -> CertificateSigningRequest {
    let mut request = request.clone();
    let status = request.status.get_or_insert_with(CertificateSigningRequestStatus::default);
    status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..CertificateSigningRequestCondition::default()
    });
    request
}
