//! Admission policies during a write: which of them it concerns, with which parameters, and what becomes of what they decide.
//!
//! - `params`: the objects that are parameters
//! - `seen`: what expressions see of a request
//! - `validating`, `mutating`: the order, and the decisions
//!
//! Deciding is pure, in `admission_policies`: where an expression asks an authorizer it is evaluated again with the answer.

mod mutating;
mod params;
mod seen;
mod validating;

pub(super) use mutating::{Rounds, mutate, mutates};
pub(super) use validating::{validate, validates};

use super::webhooks::Admitted;

/// Whether no policy is asked: about policies themselves, and about reviews that the cluster cannot do without.
fn is_exempt(admitted: &Admitted<'_>) -> bool {
    let resource = &admitted.operation.resource;
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("admissionregistration.k8s.io", plural) => matches!(
            plural,
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        ),
        ("authentication.k8s.io", plural) => matches!(plural, "selfsubjectreviews" | "tokenreviews"),
        ("authorization.k8s.io", plural) => matches!(
            plural,
            "localsubjectaccessreviews"
                | "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
        ),
        _ => false,
    }
}
