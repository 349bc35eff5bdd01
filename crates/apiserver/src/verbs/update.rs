//! PUT: an object replaced.

use crate::flow::guaranteed_update::{Preconditions, guaranteed_update};
use crate::flow::{decode, managed, prepare};
use crate::http::Answer;
use crate::object::text;
use crate::operation::Call;
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::status::Status;

pub(crate) async fn update(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let options = WriteOptions::read(&call.query, Write::Update, &call.user_agent)?;
    let media = content_type::object(&call.content_type, call.resource.custom)?;
    let operation = call.operation(options);
    let decoded = decode::body(resource, &call.body, media)?;
    let mut object = decode::judge(&operation, decoded, &call.warnings)?;
    prepare::namespace(&operation, &mut object)?;
    prepare::name(&operation, &object)?;
    prepare::owners(&operation, &mut object, false);
    let preconditions = Preconditions {
        may_create: resource.rules.is_some_and(|rules| rules.create_on_update)
            && operation.subresource.is_empty(),
        uid: text(&object, &["metadata", "uid"]).to_owned(),
    };
    let make = |live: Option<&serde_json::Value>| {
        let mut object = object.clone();
        managed::update(&operation, live, &mut object);
        Ok(object)
    };
    let (outcome, created) = guaranteed_update(&operation, &preconditions, make).await?;
    super::answer(&outcome, call, if created { 201 } else { 200 }).await
}
