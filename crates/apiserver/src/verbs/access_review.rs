//! SubjectAccessReview and its like: posted, answered, and stored nowhere. Everyone who is let in may do everything, so the
//! answers are short.

use crate::flow::{decode, managed, prepare};
use crate::http::Answer;
use crate::operation::Call;
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::status::Status;
use serde_json::{Value, json};

pub(crate) fn answer(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = content_type::body(&call.content_type)?;
    let operation = call.operation(options);
    let mut review = decode::judge(&operation, decode::body(resource, &call.body, media)?, &call.warnings)?;
    if resource.namespaced {
        prepare::namespace(&operation, &mut review)?;
    }
    managed::update(&operation, None, &mut review);
    let status = status(&call.resource.kind);
    if let Some(review) = review.as_object_mut() {
        review.insert("status".to_owned(), status);
    }
    Ok(Answer::json(201, &review))
}

fn status(kind: &str) -> Value {
    match kind {
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"allowed": true}),
    }
}
