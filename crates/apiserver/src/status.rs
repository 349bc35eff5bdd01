//! Why a request failed, as Kubernetes says it: the `Status` object, with a constructor per kind of error.
//!
//! Clients match on `reason` and `details`, and people on the texts, so both follow the reference word for word.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use windlass_schema::{FieldError, quote};

/// A failure, as sent in a body or in a watch's ERROR event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`; empty if there is none.
    pub reason: Cow<'static, str>,
    /// What a person reads.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: where a list that can no longer be consistent may go on; empty if nowhere.
    pub continue_token: String,
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields carry Kubernetes' own names and meanings")]
pub struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind, or the resource's plural name: each error has its own habit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One cause among several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields carry Kubernetes' own names and meanings")]
pub struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A resource's group and plural name, as errors name it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name, or the kind.
    pub kind: &'a str,
}

impl Named<'_> {
    fn qualified(self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(self, name: &str) -> Option<Details> {
        Some(Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            ..Details::default()
        })
    }
}

/// What a resource version conflict says.
pub const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Value,
    status: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    code: u16,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>, details: Option<Details>) -> Self {
        let details = details.map(Box::new);
        Self { code, reason: reason.into(), message: message.into(), details, continue_token: String::new() }
    }

    /// 404 for an object that is not there.
    pub fn not_found(resource: Named<'_>, name: &str) -> Self {
        let message = format!("{} {} not found", resource.qualified(), quote(name));
        Self::new(404, "NotFound", message, resource.details(name))
    }

    /// 404 for a resource that is not served.
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message, Some(Details::default()))
    }

    /// 409 for a name that is taken.
    pub fn already_exists(resource: Named<'_>, name: &str) -> Self {
        let message = format!("{} {} already exists", resource.qualified(), quote(name));
        Self::new(409, "AlreadyExists", message, resource.details(name))
    }

    /// 409 for a generated name that was taken.
    pub fn generated_name_taken(resource: Named<'_>, name: &str) -> Self {
        let mut status = Self::already_exists(resource, name);
        status.message.push_str(", the server was not able to generate a unique name for the object");
        status.details.get_or_insert_default().retry_after_seconds = 1;
        status
    }

    /// 409 for a compare-and-swap that lost: `why` is [`MODIFIED`] or a failed precondition.
    pub fn conflict(resource: Named<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(409, "Conflict", message, resource.details(name))
    }

    /// 409 for an apply that would take fields from other managers, with a cause per field.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Cause>) -> Self {
        Self::new(409, "Conflict", message, Some(Details { causes, ..Details::default() }))
    }

    /// 422 with a cause per field; here the kind is named, not the resource.
    pub fn invalid(kind: Named<'_>, name: &str, causes: Vec<Cause>) -> Self {
        let mut texts: Vec<String> = Vec::with_capacity(causes.len());
        for cause in &causes {
            let text = match cause.field.as_str() {
                "" => cause.message.clone(),
                field => format!("{field}: {}", cause.message),
            };
            // As the reference's aggregate, which says the same thing once.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let why = match texts.as_slice() {
            [] => String::new(),
            [only] => format!(": {only}"),
            many => format!(": [{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid{why}", kind.qualified());
        let details = kind.details(name).map(|details| Details { causes, ..details });
        Self::new(422, "Invalid", message, details)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, None)
    }

    /// 403, with the resource it was about.
    pub fn forbidden(resource: Named<'_>, name: &str, why: &str) -> Self {
        let message = match name {
            "" => format!("{} is forbidden: {why}", resource.qualified()),
            _ => format!("{} {name:?} is forbidden: {why}", resource.qualified()),
        };
        Self::new(403, "Forbidden", message, resource.details(name))
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", None)
    }

    /// 403 for a path that is no resource's.
    pub fn path_forbidden(why: &str) -> Self {
        Self::new(403, "Forbidden", format!("forbidden: {why}"), Some(Details::default()))
    }

    /// 405 for a verb that the resource does not have, found while routing.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message, Some(Details::default()))
    }

    /// 405 for an action that the resource refuses.
    pub fn method_not_supported(resource: Named<'_>, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {:?}", resource.qualified());
        Self::new(405, "MethodNotAllowed", message, resource.details(""))
    }

    /// 406.
    pub fn not_acceptable(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::new(406, "NotAcceptable", message, Some(Details::default()))
    }

    /// 406 for a header in which nothing is served.
    pub fn not_negotiable(available: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", available.join(", "));
        Self::new(406, "NotAcceptable", message, None)
    }

    /// 406 for one kind of thing asked for as another.
    pub fn not_transformable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message, None)
    }

    /// 415.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message, None)
    }

    /// 410 for a version that was compacted away, of a list or a continue token.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message, None)
    }

    /// 410 for a watch that starts before what is remembered.
    pub fn too_old(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// 410 with the older reason.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Gone", message, None)
    }

    /// 504 for a version that is not there yet.
    pub fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::new(504, "Timeout", message, Some(details))
    }

    /// 504.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self::new(504, "Timeout", format!("Timeout: {}", message.into()), Some(details))
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self::new(429, "TooManyRequests", message, Some(details))
    }

    /// 500.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        let cause = Cause { message: text.clone(), ..Cause::default() };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::new(500, "InternalError", format!("Internal error occurred: {text}"), Some(details))
    }

    /// 500 with nothing but a text: what the reference answers where it forgot to say more.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message, None)
    }

    /// 415 for a patch of a type that is not one.
    pub fn no_such_patch_type() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type", Some(Details::default()))
    }

    /// 422 for a patch that does not fit the object.
    pub fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message, Some(Details::default()))
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message, None)
    }

    /// 413 for a body over the limit.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message, None)
    }

    /// 413 for a JSON patch of too many steps.
    pub fn too_many_operations(most: usize, got: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {got}"
        );
        Self::new(413, "RequestEntityTooLarge", message, None)
    }

    /// The same failure, about one object's UID.
    #[must_use]
    pub fn about_uid(mut self, uid: &str) -> Self {
        self.details.get_or_insert_default().uid = uid.to_owned();
        self
    }

    /// What a client waits before it asks again, if it was told.
    pub fn retry_after(&self) -> Option<u32> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }

    /// The object as JSON text.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.wire()).expect("a status holds only strings and numbers")
    }

    /// The object as a value, such as a watch's ERROR event carries.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self.wire()).expect("a status holds only strings and numbers")
    }

    fn wire(&self) -> Wire<'_> {
        Wire {
            kind: "Status",
            api_version: "v1",
            metadata: match self.continue_token.as_str() {
                "" => Value::Object(serde_json::Map::new()),
                token => serde_json::json!({ "continue": token }),
            },
            status: "Failure",
            message: &self.message,
            reason: &self.reason,
            details: self.details.as_deref(),
            code: self.code,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// Errors of fields as the causes of a status.
pub(crate) fn causes(errors: &[FieldError]) -> Vec<Cause> {
    let cause = |error: &FieldError| Cause {
        reason: error.reason().to_owned(),
        message: error.message(),
        field: error.path.clone(),
    };
    errors.iter().map(cause).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_core_group_is_not_named() {
        let status = Status::not_found(Named { group: "", kind: "configmaps" }, "x");
        assert_eq!(
            status.to_value(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "configmaps \"x\" not found", "reason": "NotFound",
                "details": {"name": "x", "kind": "configmaps"}, "code": 404})
        );
    }

    #[test]
    fn several_causes_are_listed_and_repeated_ones_said_once() {
        let cause = |field: &str| Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value".into(),
            field: field.into(),
        };
        let status = Status::invalid(
            Named { group: "g.io", kind: "Widget" },
            "w",
            vec![cause("spec.a"), cause("spec.a"), cause("spec.b")],
        );
        assert_eq!(
            status.message,
            r#"Widget.g.io "w" is invalid: [spec.a: Required value, spec.b: Required value]"#
        );
        assert_eq!(status.details.map(|details| details.causes.len()), Some(3));
    }
}
