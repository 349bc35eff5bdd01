//! What to do about a CertificateSigningRequest, without doing it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_apiserver::CertificateRequest;

pub(super) const APPROVED: &str = "Approved";
pub(super) const DENIED: &str = "Denied";
pub(super) const FAILED: &str = "Failed";

const API_SERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const LEGACY_UNKNOWN: &str = "kubernetes.io/legacy-unknown";

const NODE_GROUP: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";

/// How long a request is kept after it was decided, and one that waits for something.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// How long a certificate holds if nothing else was asked for, and at the least.
const LONGEST: Duration = Duration::from_hours(365 * 24);
const SHORTEST: Duration = Duration::from_mins(10);
/// For clients whose clocks are behind.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
/// What holds shorter than this is not shortened by that.
const SHORT: Duration = Duration::from_hours(8);

pub(super) fn condition<'a>(
    request: &'a CertificateSigningRequest,
    kind: &str,
) -> Option<&'a CertificateSigningRequestCondition> {
    request.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

pub(super) fn is_issued(request: &CertificateSigningRequest) -> bool {
    let certificate = request.status.as_ref().and_then(|status| status.certificate.as_ref());
    certificate.is_some_and(|certificate| !certificate.0.is_empty())
}

/// A right that a kubelet needs for its request to be approved without a person, and what is then said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AutoApproval {
    pub(super) subresource: &'static str,
    pub(super) message: &'static str,
}

const OWN: AutoApproval = AutoApproval {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const ANY: AutoApproval = AutoApproval {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// The rights one of which lets the request be approved; none if a person is to decide.
pub(super) fn auto_approvals(
    request: &CertificateSigningRequest,
    wanted: &CertificateRequest,
) -> Vec<AutoApproval> {
    let spec = &request.spec;
    if spec.signer_name != KUBELET_CLIENT || kubelet_client(wanted, &usages(request)).is_err() {
        return Vec::new();
    }
    match spec.username.as_deref() == Some(wanted.common_name()) {
        true => vec![OWN, ANY],
        false => vec![ANY],
    }
}

fn usages(request: &CertificateSigningRequest) -> BTreeSet<&str> {
    request.spec.usages.iter().flatten().map(String::as_str).collect()
}

/// Whether the signers of a cluster sign for this one.
pub(super) fn is_known(signer: &str) -> bool {
    [API_SERVER_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY_UNKNOWN].contains(&signer)
}

/// Why the signer of a request does not sign it, if it does not.
pub(super) fn check(request: &CertificateSigningRequest, wanted: &CertificateRequest) -> Result<(), String> {
    let usages = usages(request);
    match request.spec.signer_name.as_str() {
        API_SERVER_CLIENT => api_server_client(request),
        KUBELET_CLIENT => kubelet_client(wanted, &usages),
        KUBELET_SERVING => kubelet_serving(wanted, &usages),
        _ => Ok(()),
    }
}

fn api_server_client(request: &CertificateSigningRequest) -> Result<(), String> {
    const NEEDED: &str = "client auth";
    let usages = || request.spec.usages.iter().flatten();
    let known = |usage: &&String| [NEEDED, "digital signature", "key encipherment"].contains(&usage.as_str());
    if let Some(other) = usages().find(|usage| !known(usage)) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    match usages().any(|usage| usage == NEEDED) {
        true => Ok(()),
        false => Err(format!("missing required usage for client certificate: {NEEDED}")),
    }
}

fn kubelet_client(wanted: &CertificateRequest, usages: &BTreeSet<&str>) -> Result<(), String> {
    in_node_group(wanted)?;
    none(wanted.dns_names(), "DNS")?;
    none(wanted.email_addresses(), "Email")?;
    none(&wanted.ip_addresses(), "IP")?;
    none(wanted.uris(), "URI")?;
    named_as_node(wanted)?;
    exactly(usages, "client auth")
}

fn kubelet_serving(wanted: &CertificateRequest, usages: &BTreeSet<&str>) -> Result<(), String> {
    in_node_group(wanted)?;
    if wanted.dns_names().is_empty() && wanted.ip_addresses().is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    none(wanted.email_addresses(), "Email")?;
    none(wanted.uris(), "URI")?;
    exactly(usages, "server auth")?;
    named_as_node(wanted)
}

fn in_node_group(wanted: &CertificateRequest) -> Result<(), String> {
    match wanted.organizations().as_slice() {
        [NODE_GROUP] => Ok(()),
        _ => Err(format!("subject organization is not {NODE_GROUP}")),
    }
}

fn named_as_node(wanted: &CertificateRequest) -> Result<(), String> {
    match wanted.common_name().starts_with(NODE_PREFIX) {
        true => Ok(()),
        false => Err(format!("subject common name does not begin with {NODE_PREFIX}")),
    }
}

fn none<T>(names: &[T], kind: &str) -> Result<(), String> {
    match names.is_empty() {
        true => Ok(()),
        false => Err(format!("{kind} subjectAltNames are not allowed")),
    }
}

/// Signatures and this use; enciphering keys is for RSA, and may be left out.
fn exactly(usages: &BTreeSet<&str>, main: &str) -> Result<(), String> {
    let needed = BTreeSet::from(["digital signature", main]);
    let whole = BTreeSet::from(["digital signature", "key encipherment", main]);
    if *usages == needed || *usages == whole {
        return Ok(());
    }
    let whole: Vec<&str> = whole.into_iter().collect();
    Err(format!("usages did not match [{}]", whole.join(" ")))
}

/// From when on and until when a certificate holds that is signed now.
pub(super) fn validity(request: &CertificateSigningRequest, now: Timestamp) -> (Timestamp, Timestamp) {
    let asked = request.spec.expiration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let holds = asked.map_or(LONGEST, |seconds| Duration::from_secs(seconds).clamp(SHORTEST, LONGEST));
    let from = now.saturating_sub(BACKDATED).unwrap_or(now);
    let start = if holds < SHORT { now } else { from };
    let until = start.checked_add(holds).unwrap_or(Timestamp::MAX);
    (from, until)
}

/// When a request is deleted, given when its certificate expires; none if only a decision lets that be known.
pub(super) fn delete_at(
    request: &CertificateSigningRequest,
    expires: Option<Timestamp>,
) -> Option<Timestamp> {
    let issued = is_issued(request);
    let conditions = || request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let after =
        |time: Option<&Time>, kept: SignedDuration| time.and_then(|time| time.0.checked_add(kept).ok());
    let by_conditions = conditions().filter_map(|condition| {
        let updated = condition.last_update_time.as_ref();
        match condition.type_.as_str() {
            APPROVED if issued => [after(updated, DECIDED), expires].into_iter().flatten().min(),
            APPROVED => after(updated, PENDING),
            DENIED | FAILED => after(updated, DECIDED),
            _ => None,
        }
    });
    match conditions().next() {
        Some(_) => by_conditions.min(),
        None => after(request.metadata.creation_timestamp.as_ref(), PENDING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(signer: &str, usages: &[&str], status: Value) -> CertificateSigningRequest {
        serde_json::from_value(json!({
            "metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"request": "", "signerName": signer, "usages": usages}, "status": status,
        }))
        .unwrap()
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn certificates_of_clients_are_for_clients() {
        let refused =
            |usages: &[&str]| api_server_client(&request(API_SERVER_CLIENT, usages, json!({}))).err();
        assert_eq!(refused(&["client auth"]), None);
        assert_eq!(refused(&["digital signature", "key encipherment", "client auth"]), None);
        let why = "missing required usage for client certificate: client auth";
        assert_eq!(refused(&["digital signature"]).as_deref(), Some(why));
        let why = "invalid usage for client certificate: server auth";
        assert_eq!(refused(&["server auth"]).as_deref(), Some(why));
    }

    #[test]
    fn a_certificate_holds_as_long_as_was_asked_within_bounds() {
        let now = time("2026-01-01T00:00:00Z");
        let mut asked = request(API_SERVER_CLIENT, &[], json!({}));
        assert_eq!(validity(&asked, now), (time("2025-12-31T23:55:00Z"), time("2026-12-31T23:55:00Z")));
        for (seconds, until) in [(1, "2026-01-01T00:10:00Z"), (3600, "2026-01-01T01:00:00Z")] {
            asked.spec.expiration_seconds = Some(seconds);
            assert_eq!(validity(&asked, now).1, time(until), "short ones are not shortened");
        }
        asked.spec.expiration_seconds = Some(i32::MAX);
        assert_eq!(validity(&asked, now).1, time("2026-12-31T23:55:00Z"));
    }

    #[test]
    fn requests_are_deleted_when_they_are_done_or_forgotten() {
        let at = |status: Value, expires: Option<&str>| {
            delete_at(&request(API_SERVER_CLIENT, &[], status), expires.map(time)).map(|at| at.to_string())
        };
        let condition =
            |kind: &str| json!([{"type": kind, "status": "True", "lastUpdateTime": "2026-01-02T00:00:00Z"}]);
        assert_eq!(at(json!({}), None).as_deref(), Some("2026-01-02T00:00:00Z"));
        for kind in [DENIED, FAILED] {
            let status = json!({"conditions": condition(kind)});
            assert_eq!(at(status, None).as_deref(), Some("2026-01-02T01:00:00Z"), "{kind}");
        }
        let approved = json!({"conditions": condition(APPROVED)});
        assert_eq!(at(approved, None).as_deref(), Some("2026-01-03T00:00:00Z"));
        let issued = json!({"conditions": condition(APPROVED), "certificate": "eA=="});
        assert_eq!(at(issued.clone(), None).as_deref(), Some("2026-01-02T01:00:00Z"));
        let expired = at(issued, Some("2026-01-02T00:10:00Z"));
        assert_eq!(expired.as_deref(), Some("2026-01-02T00:10:00Z"));
        assert_eq!(at(json!({"conditions": condition("Other")}), None), None);
    }
}
