//! Kinds that are questions: posted, answered, and stored nowhere. Everyone who is let in may do everything, so the answers
//! are short.

use super::{Answer, Call};
use crate::flow::{decode, managed, prepare};
use crate::kinds::{child, text};
use crate::negotiate;
use crate::query::{Write, WriteOptions};
use crate::resource::Resource;
use crate::status::Status;
use serde_json::{Value, json};

/// Is it a question that has an answer here?
pub(crate) fn is_answered(resource: &Resource) -> bool {
    matches!(
        (resource.group.as_str(), resource.kind.as_str()),
        (
            "authorization.k8s.io",
            "LocalSubjectAccessReview"
                | "SelfSubjectAccessReview"
                | "SelfSubjectRulesReview"
                | "SubjectAccessReview"
        ) | ("authentication.k8s.io", "SelfSubjectReview")
    )
}

pub(crate) fn answer(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = negotiate::body(&call.content_type)?;
    let operation = call.operation(options);
    let mut review = operation.judge(decode::body(resource, &call.body, media)?, &call.warnings)?;
    if resource.namespaced {
        prepare::namespace(&operation, &mut review)?;
    }
    managed::update(&operation, None, &mut review);
    if text(&review, &["kind"]).ends_with("SelfSubjectReview") {
        child(&mut review, "metadata").insert("creationTimestamp".to_owned(), json!(operation.now()));
    }
    let status = status(call);
    if let Some(review) = review.as_object_mut() {
        review.insert("status".to_owned(), status);
    }
    Ok(Answer::json(201, &review))
}

fn status(call: &Call<'_>) -> Value {
    match call.resource.kind.as_str() {
        "SelfSubjectReview" => {
            json!({"userInfo": {"username": call.identity.user, "groups": call.identity.groups}})
        }
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"allowed": true}),
    }
}
