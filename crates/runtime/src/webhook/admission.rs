//! What an admission webhook says of an object.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What an admission webhook says of an object: allowed, or refused and why; with warnings for the user and annotations for the
/// audit log.
///
/// ```
/// use windlass::webhook::Admission;
///
/// let admission = Admission::allow().require(3 % 2 == 0, "spec.size", "must be even").warn("spec.old is deprecated");
/// assert!(!admission.is_allowed());
/// assert_eq!(admission.message(), Some("spec.size: must be even".to_owned()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it says whether the object is allowed"]
pub struct Admission {
    denied: Option<String>,
    invalid: Vec<InvalidField>,
    warnings: Vec<String>,
    audit: BTreeMap<String, String>,
}

/// A field that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    /// Its path, such as `spec.size`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Admission {
    /// Allowed, unless something else is said.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Refused as forbidden, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { denied: Some(reason.into()), ..Self::default() }
    }

    /// Refused as invalid, for this field.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::allow().require(false, field, message)
    }

    /// Refused as invalid unless this holds. All fields that are invalid are told at once.
    pub fn require(mut self, holds: bool, field: impl Into<String>, message: impl Into<String>) -> Self {
        if !holds {
            self.invalid.push(InvalidField { field: field.into(), message: message.into() });
        }
        self
    }

    /// What both say: refused if one of them refuses.
    pub fn and(mut self, other: Self) -> Self {
        self.denied = self.denied.or(other.denied);
        self.invalid.extend(other.invalid);
        self.warnings.extend(other.warnings);
        self.audit.extend(other.audit);
        self
    }

    /// A warning, which `kubectl` shows to the user.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// An annotation in the audit log.
    pub fn audit(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit.insert(key.into(), value.into());
        self
    }

    /// Whether the object is allowed.
    pub fn is_allowed(&self) -> bool {
        self.denied.is_none() && self.invalid.is_empty()
    }

    /// Why it is refused.
    pub fn message(&self) -> Option<String> {
        let invalid = self.invalid.iter().map(|one| format!("{}: {}", one.field, one.message));
        let parts: Vec<String> = self.denied.iter().cloned().chain(invalid).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The fields that are refused.
    pub fn invalid_fields(&self) -> &[InvalidField] {
        &self.invalid
    }

    /// The warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The `response` of an AdmissionReview, without a patch.
    pub(super) fn into_response(self, uid: &str) -> Value {
        let mut response = json!({ "uid": uid, "allowed": self.is_allowed() });
        if let Some(message) = self.message() {
            response["status"] = match self.denied {
                Some(_) => json!({ "code": 403, "reason": "Forbidden", "message": message }),
                None => json!({ "code": 422, "reason": "Invalid", "message": message }),
            };
            let cause = |one: &InvalidField| json!({ "reason": "FieldValueInvalid", "field": one.field, "message": one.message });
            if !self.invalid.is_empty() {
                let causes: Vec<Value> = self.invalid.iter().map(cause).collect();
                response["status"]["details"] = json!({ "causes": causes });
            }
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        if !self.audit.is_empty() {
            response["auditAnnotations"] = json!(self.audit);
        }
        response
    }
}

impl From<()> for Admission {
    fn from((): ()) -> Self {
        Self::allow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invalid_field_is_told() {
        let said = Admission::invalid("spec.a", "no")
            .require(true, "spec.b", "no")
            .require(false, "spec.c", "nor this");
        let response = said.warn("old").audit("by", "test").into_response("u");
        assert_eq!(
            response,
            json!({
                "uid": "u", "allowed": false, "warnings": ["old"], "auditAnnotations": {"by": "test"},
                "status": { "code": 422, "reason": "Invalid", "message": "spec.a: no; spec.c: nor this", "details": {"causes": [
                    {"reason": "FieldValueInvalid", "field": "spec.a", "message": "no"},
                    {"reason": "FieldValueInvalid", "field": "spec.c", "message": "nor this"}]}},
            })
        );
    }

    #[test]
    fn one_refusal_of_several_is_a_refusal() {
        let both = Admission::allow().and(Admission::deny("not today"));
        assert_eq!((both.is_allowed(), both.message()), (false, Some("not today".to_owned())));
        assert_eq!(Admission::from(()).into_response("u"), json!({"uid": "u", "allowed": true}));
    }
}
