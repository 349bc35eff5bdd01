//! Sends a request to its verb, and gives what a write answers the form that was asked for.

use super::verb::Virtual;
use crate::http::{Answer, ApiBody};
use crate::operation::Call;
use crate::request::media::accept;
use crate::status::Status;
use crate::verbs;
use bytes::Bytes;
use serde_json::Value;

pub(super) async fn dispatch(verb: &str, call: &Call<'_>) -> Result<Answer, Status> {
    if call.target.subresource.as_deref() == Some("scale") {
        return match verb {
            "get" => verbs::scale::get(call).await,
            "update" => verbs::scale::update(call).await,
            _ => verbs::scale::patch(call).await,
        };
    }
    match verb {
        "get" => verbs::read::get(call).await,
        "list" | "watch" => verbs::read::list_or_watch(call).await,
        "create" => match Virtual::of(&call.resource, call.target.subresource.as_deref()) {
            Some(Virtual::Eviction) => verbs::eviction::create(call).await,
            Some(Virtual::Binding) => verbs::binding::create(call).await,
            Some(Virtual::TokenRequest) => verbs::token_request::create(call).await,
            Some(Virtual::TokenReview) => verbs::token_review::create(call).await,
            Some(Virtual::SelfSubjectReview) => verbs::self_subject_review::create(call).await,
            Some(Virtual::AccessReview) => verbs::access_review::answer(call).await,
            None => verbs::create::create(call).await,
        },
        "update" => verbs::update::update(call).await,
        "patch" => verbs::patch::patch(call).await,
        "delete" => verbs::delete::delete(call).await,
        _ => verbs::delete::delete_collection(call).await,
    }
}

/// What a write answers, in the form that was asked for. A Status stays what it is.
pub(super) fn reshaped(call: &Call<'_>, answer: Answer) -> Result<Answer, Status> {
    if call.negotiated.form == accept::Form::Plain {
        return Ok(answer);
    }
    let Some(bytes) = answer.body.bytes() else { return Ok(answer) };
    let Ok(mut value) = windlass_schema::json::read_own(&bytes) else { return Ok(answer) };
    if value.get("kind").and_then(Value::as_str) == Some("Status") {
        return Ok(answer);
    }
    let items = value.get_mut("items").filter(|_| call.target.name.is_none() && answer.code == 200);
    let items = items.and_then(Value::as_array_mut).map(std::mem::take);
    let Some(shape) = verbs::read::shape(call, items.is_some())? else { return Ok(answer) };
    let body = match items {
        Some(items) => {
            let items: Vec<Bytes> = items.into_iter().map(|item| shape.item(item)).collect();
            let metadata = value.get("metadata").map_or_else(|| "{}".to_owned(), Value::to_string);
            shape.list(&metadata, &items)
        }
        None => shape.object(value, true),
    };
    Ok(Answer { body: ApiBody::full(body), ..answer })
}
