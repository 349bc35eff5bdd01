//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction: whoever approves or signs a request may do so
//! for its signer, and nobody asks to be in `system:masters`.

use super::forbidden;
use crate::authorization::{Attributes, On, ResourceAttributes};
use crate::object::{at, text};
use crate::operation::Operation;
use crate::request::identity;
use crate::status::Status;
use crate::x509::CertificateRequest;
use serde_json::Value;

const API_SERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

pub(super) async fn approval(
    operation: &Operation<'_>,
    request: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    match old.filter(|_| operation.subresource == "approval") {
        Some(old) => permitted(operation, request, old, "approve").await,
        None => Ok(()),
    }
}

pub(super) async fn signing(
    operation: &Operation<'_>,
    request: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let changes = |old: &&Value| {
        ["certificate", "conditions"]
            .iter()
            .any(|field| at(request, &["status", field]) != at(old, &["status", field]))
    };
    match old.filter(|_| operation.subresource == "status").filter(changes) {
        Some(old) => permitted(operation, request, old, "sign").await,
        None => Ok(()),
    }
}

pub(super) fn subject_restriction(
    operation: &Operation<'_>,
    request: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if old.is_some() || text(request, &["spec", "signerName"]) != API_SERVER_CLIENT {
        return Ok(());
    }
    let wanted = CertificateRequest::from_base64(text(request, &["spec", "request"]))
        .map_err(|why| forbidden(operation, request, &format!("failed to parse CSR: {why}")))?;
    match wanted.organizations().contains(&identity::MASTERS) {
        true => {
            let why = format!("use of {API_SERVER_CLIENT} signer with system:masters group is not allowed");
            Err(forbidden(operation, request, &why))
        }
        false => Ok(()),
    }
}

/// Whether the writer may do that for the signer of the request as it was, or for all signers of its domain.
async fn permitted(
    operation: &Operation<'_>,
    request: &Value,
    old: &Value,
    verb: &str,
) -> Result<(), Status> {
    let signer = text(old, &["spec", "signerName"]);
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let on = ResourceAttributes {
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..ResourceAttributes::default()
        };
        let asked = Attributes { identity: operation.identity, verb, on: On::Resource(on) };
        if operation.api.authorizer.allows(&asked).await {
            return Ok(());
        }
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(forbidden(operation, request, &why))
}
