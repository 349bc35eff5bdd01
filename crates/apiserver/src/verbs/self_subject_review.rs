//! POST to `selfsubjectreviews`: who the server takes the client for.

use crate::flow::{decode, mutating_admission, validating_admission};
use crate::http::Answer;
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
    let mut sent = decode::judge(&operation, decoded, &call.warnings)?;
    mutating_admission::mutate_view(&operation, &mut sent, None).await?;
    validating_admission::validate_unstored(&operation, &sent).await?;
    let review: Value = json!({
        "kind": call.resource.kind, "apiVersion": call.resource.api_version(),
        "metadata": {"creationTimestamp": operation.now()}, "status": {"userInfo": call.identity.to_value()},
    });
    Ok(Answer::json(201, &review))
}
