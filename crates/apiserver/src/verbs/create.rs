//! POST: a new object.

use crate::flow::create::store_new;
use crate::flow::{decode, managed, prepare};
use crate::http::Answer;
use crate::operation::Call;
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::status::Status;

pub(crate) async fn create(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = content_type::object(&call.content_type, call.resource.custom)?;
    let operation = call.operation(options);
    let decoded = decode::body(resource, &call.body, media)?;
    let mut object = decode::judge(&operation, decoded, &call.warnings)?;
    prepare::wipe(&mut object);
    prepare::namespace(&operation, &mut object)?;
    prepare::owners(&operation, &mut object, false);
    managed::create(&operation, &mut object).await;
    let outcome = store_new(&operation, object).await?;
    let name = outcome.name().to_owned();
    Ok(Answer { name, ..super::answer(&outcome, call, 201).await? })
}
