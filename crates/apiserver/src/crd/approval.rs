//! The `api-approved.kubernetes.io` annotation, which CRDs in Kubernetes' own groups need.

use crate::object::text;
use serde_json::Value;

/// The annotation that says so.
pub(super) const ANNOTATION: &str = "api-approved.kubernetes.io";

const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approval {
    Approved,
    /// Openly without one.
    Bypassed,
    Missing,
    Invalid,
}

impl Approval {
    /// The reason in the condition that tells of it.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Approved => "ApprovedAnnotation",
            Self::Bypassed => "UnapprovedAnnotation",
            Self::Missing => "MissingAnnotation",
            Self::Invalid => "InvalidAnnotation",
        }
    }
}

/// What a definition's annotation says.
pub(super) fn value(crd: &Value) -> &str {
    text(crd, &["metadata", "annotations", ANNOTATION])
}

/// How a definition of a protected group is approved, in words too; none for other groups.
pub(super) fn of(crd: &Value) -> Option<(Approval, String)> {
    let group = text(crd, &["spec", "group"]);
    let within = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !within("k8s.io") && !within("kubernetes.io") {
        return None;
    }
    let told = value(crd);
    let host = told.split_once("://").filter(|(scheme, _)| !scheme.is_empty()).map_or("", |(_, rest)| rest);
    Some(match told {
        "" => (
            Approval::Missing,
            format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}"),
        ),
        told if told.starts_with("unapproved") => (Approval::Bypassed, format!("not approved: {told:?}")),
        told if !host.is_empty() && !host.starts_with('/') => {
            (Approval::Approved, format!("approved in {told}"))
        }
        _ => {
            let wanted = "with either a URL or a reason starting with \"unapproved\"";
            (
                Approval::Invalid,
                format!("protected groups must have approval annotation {ANNOTATION:?} {wanted}, {SEE}"),
            )
        }
    })
}
