//! What an audited request sends and is answered, as objects.

use super::decode;
use crate::audit::AuditedRequest;
use crate::http::Answer;
use crate::operation::Call;
use crate::request::media::content_type;
use crate::status::Status;
use serde_json::Value;

/// Tells the audit what a request sends, if that is wanted.
pub(crate) fn request(audited: &AuditedRequest, verb: &str, call: &Call<'_>) {
    if !audited.wants_request() || call.body.is_empty() {
        return;
    }
    let object = match verb {
        // A patch, and the options of a deletion, are no objects of the resource.
        "patch" | "delete" | "deletecollection" => serde_json::from_slice(&call.body).ok(),
        _ => content_type::body(&call.content_type)
            .and_then(|media| decode::body(&call.resource, &call.body, media))
            .ok()
            .map(|decoded| decoded.value),
    };
    if let Some(object) = object {
        audited.requests(object);
    }
}

/// Tells the audit what a request is answered, if that is wanted.
pub(crate) fn response(audited: &AuditedRequest, answered: &Result<Answer, Status>) {
    if !audited.wants_response() {
        return;
    }
    let object = match answered {
        Ok(answer) if answer.body.is_watch() => None,
        Ok(answer) => answer.body.bytes().and_then(|body| serde_json::from_slice::<Value>(&body).ok()),
        Err(status) => serde_json::from_slice(&status.to_bytes()).ok(),
    };
    if let Some(object) = object {
        audited.answers(object);
    }
}
