//! What each verb does with the steps of [`crate::flow`].

pub(crate) mod access_review;
pub(crate) mod binding;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod eviction;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod scale;
pub(crate) mod self_subject_review;
mod strategic;
pub(crate) mod token_request;
pub(crate) mod token_review;
pub(crate) mod update;

use crate::flow::convert;
use crate::http::Answer;
use crate::operation::{Call, Outcome};
use crate::resource::Resource;
use crate::status::{Details, Status};
use serde_json::{Value, json};

/// The object of a write, as the resource's clients see it.
pub(crate) async fn answer(outcome: &Outcome, call: &Call<'_>, code: u16) -> Result<Answer, Status> {
    Ok(match outcome {
        Outcome::Stored(entry) => {
            let (view, media) = read::encoded(call);
            let entry = convert::shown(call, entry).await?;
            Answer { media, ..Answer::new(code, view.object(&entry)) }
        }
        Outcome::Unstored(value) => Answer::json(code, value),
    })
}

/// The Status of a deletion that is done.
pub(crate) fn deleted(resource: &Resource, name: &str, uid: &str) -> Value {
    let details = Details {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.plural.clone(),
        uid: uid.to_owned(),
        ..Details::default()
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
