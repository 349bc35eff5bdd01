//! Brings custom objects from one version of their CRD into another: by their names alone, or by its conversion webhook.
//!
//! What was converted is kept beside the stored entry that it was made of, by version and generation of the CRD, as long as others are
//! likely to ask for it.

use crate::conversion_webhook::{BATCH_BYTES, TIMEOUT};
use crate::flow::decode;
use crate::object::text;
use crate::operation::in_time;
use crate::read::EntryConverter;
use crate::resource::Resource;
use crate::state::ApiState;
use crate::status::Status;
use crate::webhook_client::Network;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_clock::{Clock, Moment};
use windlass_schema::{default, prune};
use windlass_store::{Body, Entry, Form};

/// The largest number of objects that a webhook is sent at once.
const BATCH: usize = 500;

/// Converts the objects of a resource for one request.
#[derive(Clone)]
pub(crate) struct Converter {
    network: Network,
    resource: Arc<Resource>,
    /// When the request is to be given up; none for a watch, which outlasts every call.
    deadline: Option<Moment>,
    /// Who waits may be gone before there is an answer.
    given_up: CancellationToken,
}

impl Converter {
    pub(crate) fn new(api: &ApiState, resource: &Arc<Resource>, deadline: Option<Moment>) -> Self {
        Self {
            network: api.webhooks.network.clone(),
            resource: resource.clone(),
            deadline,
            given_up: CancellationToken::new(),
        }
    }

    /// The same, until somebody gives up.
    pub(crate) fn until(mut self, given_up: CancellationToken) -> Self {
        self.given_up = given_up;
        self
    }

    /// Stored entries as entries of the version of the resource, in their order.
    pub(crate) async fn entries(&self, stored: &[Arc<Entry>]) -> Result<Vec<Arc<Entry>>, Status> {
        let form = Form::new(format!("entry of {} {}", self.resource.api_version(), self.resource.stamp));
        let mut converted = Vec::with_capacity(stored.len());
        let mut rest = stored;
        while let Some(first) = rest.first() {
            if let Some(kept) = first.kept(&form) {
                converted.push(kept);
                rest = &rest[1..];
                continue;
            }
            let batch = unkept(rest, &form);
            converted.extend(self.converted(&rest[..batch], &form).await?);
            rest = &rest[batch..];
        }
        Ok(converted)
    }

    /// The same for some that are not kept.
    async fn converted(&self, stored: &[Arc<Entry>], form: &Form) -> Result<Vec<Arc<Entry>>, Status> {
        let resource = &self.resource;
        // Many may watch the same object: one asks for all of them, and the others find what it was answered.
        let _asking = match (stored, &resource.conversion) {
            ([only], Some(webhook)) => {
                let turn = webhook.turn(only.revision().0);
                match Clock::real().timeout(self.time_left(), turn).await {
                    Ok(turn) => Some(turn),
                    Err(_) => {
                        self.in_time()?;
                        None
                    }
                }
            }
            _ => None,
        };
        if let [only] = stored
            && let Some(kept) = only.kept(form)
        {
            return Ok(vec![kept]);
        }
        let objects = stored.iter().map(|entry| readied(resource, entry.value())).collect();
        let objects = self.in_version(objects, &resource.api_version()).await?;
        let mut entries = Vec::with_capacity(objects.len());
        for (entry, object) in stored.iter().zip(objects) {
            let object = decode::coerced(resource, object).map_err(Status::plain)?;
            let body = Body::encode(&object, resource.fields_of(&object));
            entries.push(entry.keep(form, Arc::new(entry.converted(body))));
        }
        Ok(entries)
    }

    /// Objects in another version of their CRD, those that are in it already as they are. Nothing is pruned.
    pub(super) async fn in_version(
        &self,
        mut objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, Status> {
        let known = &self.resource.api_versions;
        let others: Vec<usize> = (0..objects.len())
            .filter(|&index| text(&objects[index], &["apiVersion"]) != api_version)
            .collect();
        if others.is_empty() {
            return Ok(objects);
        }
        let invalid = |which: &str, version: &str| {
            Status::plain(format!("request to convert CR {which} an invalid group/version: {version}"))
        };
        if !known.iter().any(|known| known == api_version) {
            return Err(invalid("to", api_version));
        }
        for &index in &others {
            let from = text(&objects[index], &["apiVersion"]);
            if !known.iter().any(|known| known == from) {
                return Err(invalid("from", from));
            }
        }
        let webhook = self.resource.conversion.as_ref();
        let Some(webhook) = webhook.filter(|_| !others.iter().all(|&index| is_empty(&objects[index]))) else {
            for index in others {
                objects[index]["apiVersion"] = json!(api_version);
            }
            return Ok(objects);
        };
        let asked: Vec<Value> = others.iter().map(|&index| objects[index].take()).collect();
        self.in_time()?;
        let calling = webhook.convert(&self.network, &asked, api_version, self.time_left());
        let answer = tokio::select! {
            // What is answered already is taken, even by who gave up.
            biased;
            answer = calling => answer,
            () = self.given_up.cancelled() => Err("context canceled".to_owned()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                // What the request has no time for is no fault of the webhook.
                self.in_time()?;
                return Err(Status::plain(why));
            }
        };
        for (index, converted) in others.into_iter().zip(answer) {
            objects[index] = converted;
        }
        Ok(objects)
    }

    fn time_left(&self) -> Duration {
        match self.deadline {
            Some(deadline) => deadline.since(Clock::real().moment()),
            None => TIMEOUT,
        }
    }

    fn in_time(&self) -> Result<(), Status> {
        self.deadline.map_or(Ok(()), in_time)
    }
}

impl EntryConverter for Converter {
    fn convert<'a>(&'a self, entries: &'a [Arc<Entry>]) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Status>> {
        self.entries(entries).boxed()
    }
}

/// How many of the first entries are not kept, as far as a webhook is sent at once.
fn unkept(entries: &[Arc<Entry>], form: &Form) -> usize {
    let mut bytes = 0;
    let more = |(index, entry): &(usize, &Arc<Entry>)| {
        bytes += entry.json().len();
        *index == 0 || (bytes <= BATCH_BYTES && entry.kept(form).is_none())
    };
    entries.iter().take(BATCH).enumerate().take_while(more).count()
}

/// A stored object as its definition is now: what another generation of its schema did not prune or default is pruned and defaulted, in
/// the version that it is stored in. A webhook is not told of the version of the store.
fn readied(resource: &Resource, mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    if let Some(schema) = resource.schemas.get(text(&object, &["apiVersion"])) {
        prune::prune(schema, &mut object, true);
        default::fill(schema, &mut object);
    }
    object
}

/// Whether an object has nothing but its type: it has no more in any version.
fn is_empty(object: &Value) -> bool {
    object.as_object().is_some_and(|object| object.keys().all(|name| name == "apiVersion" || name == "kind"))
}
