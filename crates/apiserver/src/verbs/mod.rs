//! What each verb does with the steps of [`crate::flow`].

pub(crate) mod binding;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delete_options;
pub(crate) mod eviction;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod review;
pub(crate) mod rewrite;
pub(crate) mod scale;
pub(crate) mod self_review;
mod strategic;
pub(crate) mod token_request;
pub(crate) mod token_review;
pub(crate) mod update;

use crate::accept::Wanted;
use crate::api::Inner;
use crate::body::ApiBody;
use crate::faults::Mutation;
use crate::flow::Operation;
use crate::flow::authenticate::Identity;
use crate::flow::decode::Media;
use crate::path::Target;
use crate::pieces::Pieces;
use crate::query::{Query, WriteOptions};
use crate::read::Leash;
use crate::resource::Resource;
use crate::status::{Details, Status};
use crate::store::{Entry, Revision};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request for a resource, routed and read.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Inner,
    pub(crate) identity: &'a Identity,
    pub(crate) resource: Arc<Resource>,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) user_agent: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// Answer as if nothing had happened after this revision.
    pub(crate) ceiling: Option<Revision>,
    /// What the client wants to be answered with.
    pub(crate) wanted: Wanted,
    /// What the client is told with the answer, whatever that is.
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    /// Ends watches when the server stops.
    pub(crate) ended: CancellationToken,
    /// Who may end or hold back a watch.
    pub(crate) leash: Leash,
    /// What faults make of an object that is written.
    pub(crate) mutations: Vec<Mutation>,
}

/// What is sent back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// The name that a new object was given.
    pub(crate) name: String,
    pub(crate) body: ApiBody,
    /// What the body is encoded in already.
    pub(crate) media: Media,
}

impl Answer {
    pub(crate) fn new(code: u16, body: impl Into<Bytes>) -> Self {
        Self { code, name: String::new(), body: ApiBody::full(body.into()), media: Media::Json }
    }

    pub(crate) fn pieces(code: u16, body: Pieces, media: Media) -> Self {
        Self { code, name: String::new(), body: ApiBody::pieces(body), media }
    }

    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::new(code, windlass_schema::json::write(value))
    }
}

impl Call<'_> {
    pub(crate) fn operation(&self, options: WriteOptions) -> Operation<'_> {
        Operation {
            api: self.api,
            identity: self.identity,
            resource: self.resource.clone(),
            namespace: self.target.namespace.clone().unwrap_or_default(),
            name: self.target.name.clone().unwrap_or_default(),
            subresource: self.target.subresource.clone().unwrap_or_default(),
            options,
            warnings: self.warnings.clone(),
            mutations: self.mutations.clone(),
        }
    }
}

/// What became of a write.
pub(crate) enum Outcome {
    /// It is in the store.
    Stored(Arc<Entry>),
    /// It would have become this, or became this and went away at once.
    Shown(Value),
}

impl Outcome {
    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Stored(entry) => &entry.key().name,
            Self::Shown(value) => crate::kinds::text(value, &["metadata", "name"]),
        }
    }

    /// The object, as the resource's clients see it.
    pub(crate) fn answer(&self, call: &Call<'_>, code: u16) -> Answer {
        match self {
            Self::Stored(entry) => {
                let (view, media) = read::encoded(call);
                Answer { media, ..Answer::new(code, view.object(entry)) }
            }
            Self::Shown(value) => Answer::json(code, value),
        }
    }
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

/// How often a write is tried again when others come between: far beyond what contention brings about.
pub(crate) const ATTEMPTS: usize = 1000;

/// 409 for a write that lost every time.
pub(crate) fn contended(resource: &Resource, name: &str) -> Status {
    Status::conflict(resource.named(), name, crate::status::MODIFIED)
}
