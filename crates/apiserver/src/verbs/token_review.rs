//! POST to `tokenreviews`: whom a token authenticates, for another server that was shown it.

use crate::flow::{authenticate, decode, managed, mutating_admission, validating_admission};
use crate::http::Answer;
use crate::object::text;
use crate::operation::Call;
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::status::Status;
use serde_json::{Value, json};

pub(crate) async fn create(call: &Call<'_>) -> Result<Answer, Status> {
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = content_type::body(&call.content_type)?;
    let operation = call.operation(options);
    let decoded = decode::body(&call.resource, &call.body, media)?;
    let mut review = decode::judge(&operation, decoded, &call.warnings)?;
    managed::update(&operation, None, &mut review);
    mutating_admission::mutate_view(&operation, &mut review, None).await?;
    let token = text(&review, &["spec", "token"]);
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    validating_admission::validate_unstored(&operation, &review).await?;
    let wanted = review.pointer("/spec/audiences").and_then(Value::as_array);
    let mut wanted: Vec<String> =
        wanted.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if wanted.is_empty() {
        wanted = call.api.accounts().map_err(Status::internal)?.audiences().to_vec();
    }
    let status = match authenticate::review(call.api, token, &wanted).await {
        Ok((identity, audiences)) => {
            json!({"authenticated": true, "user": identity.to_value(), "audiences": audiences})
        }
        Err(why) => json!({"user": {}, "error": why}),
    };
    review["status"] = status;
    Ok(Answer::json(201, &review))
}
