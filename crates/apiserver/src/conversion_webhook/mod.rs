//! Conversion webhooks: servers that bring custom objects from one version of their CRD into another.
//!
//! - `review`: the question and the answer
//! - `metadata`: what of an object's metadata a conversion may change
//!
//! When objects are converted, and which, is in `flow::convert`.

mod metadata;
mod review;

use crate::object::text;
use crate::webhook_client::{CallError, Caller, ClientConfig, Network, go_kind};
use parking_lot::Mutex;
use review::Review;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long a webhook may take, whatever it is asked.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// About how much a webhook is sent at once: its answers, which may be larger, are bounded too.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// How many turns are remembered before those that nobody takes are looked for.
const MANY_TURNS: usize = 1000;

/// The webhook of a CRD.
#[derive(Debug)]
pub(crate) struct ConversionWebhook {
    /// Who asks about the object of a revision, and who waits for that.
    turns: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>,
    /// The versions of ConversionReview that it understands, the best first.
    review_versions: Vec<String>,
    caller: Caller,
}

/// To be the one who asks about an object, until it is dropped.
pub(crate) struct Turn<'a> {
    webhook: &'a ConversionWebhook,
    revision: u64,
    taken: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.taken = None;
        let mut turns = self.webhook.turns.lock();
        // Nobody waits.
        if turns.get(&self.revision).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.revision);
        }
    }
}

impl ConversionWebhook {
    /// The webhook that `spec.conversion` tells of, if it tells of one.
    pub(crate) fn new(conversion: &Value) -> Option<Self> {
        if text(conversion, &["strategy"]) != "Webhook" {
            return None;
        }
        let webhook = conversion.get("webhook")?;
        let config = ClientConfig::deserialize(webhook.get("clientConfig")?).unwrap_or_default();
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(|version| version.as_str());
        Some(Self {
            turns: Mutex::default(),
            review_versions: versions.map(str::to_owned).collect(),
            caller: Caller::new(config),
        })
    }

    /// Waits until nobody else asks about the object of this revision.
    pub(crate) async fn turn(&self, revision: u64) -> Turn<'_> {
        let turn = {
            let mut turns = self.turns.lock();
            if turns.len() >= MANY_TURNS {
                turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            }
            turns.entry(revision).or_default().clone()
        };
        Turn { webhook: self, revision, taken: Some(turn.lock_owned().await) }
    }

    /// The objects in another version, in their order. All of them are of one kind and in other versions than that.
    ///
    /// # Errors
    /// What went wrong, in the reference's words.
    pub(crate) async fn convert(
        &self,
        network: &Network,
        objects: &[Value],
        api_version: &str,
        time_left: Duration,
    ) -> Result<Vec<Value>, String> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let kind = go_kind(text(first, &["apiVersion"]), text(first, &["kind"]));
        let review = Review::new(&self.review_versions, objects, api_version)?;
        let failed = |why: String| format!("conversion webhook for {kind} failed: {why}");
        let timeout = TIMEOUT.min(time_left);
        let answer = self.caller.post(network, review.body.clone(), timeout).await;
        let answer = answer.map_err(|error| match error {
            CallError::NoClient(why) | CallError::Failed(why, _) => failed(why),
        })?;
        let converted = review.converted(&answer).map_err(failed)?;
        if converted.len() != objects.len() {
            let (got, expected) = (converted.len(), objects.len());
            return Err(format!("conversion webhook for {kind} returned {got} objects, expected {expected}"));
        }
        let checked = objects.iter().zip(converted).map(|(original, converted)| {
            let kind = go_kind(text(original, &["apiVersion"]), text(original, &["kind"]));
            checked(original, converted, api_version, &kind)
        });
        checked.collect()
    }
}

/// An object as it may come back: what it was, in the version that was asked for.
fn checked(original: &Value, converted: Value, api_version: &str, kind: &str) -> Result<Value, String> {
    let mut converted = review::object(converted)?;
    let invalid = |why: String| {
        Err(format!("conversion webhook for {kind} returned invalid object at index 0: invalid {why}"))
    };
    let got = text(&converted, &["apiVersion"]);
    if got != api_version {
        return invalid(format!("groupVersion (expected {api_version}, received {got})"));
    }
    let (expected, got) = (text(original, &["kind"]), text(&converted, &["kind"]));
    if got != expected {
        return invalid(format!("kind (expected {expected}, received {got})"));
    }
    metadata::check(original, &converted)
        .map_err(|why| format!("conversion webhook for {kind} returned invalid object: {why}"))?;
    metadata::restore(original, &mut converted)
        .map_err(|why| format!("conversion webhook for {kind} returned invalid metadata: {why}"))?;
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(version: &str) -> Value {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": "a", "uid": "u"}})
    }

    fn wrong(converted: Value) -> String {
        checked(&object("v1"), converted, "example.com/v2", "example.com/v1, Kind=Widget").unwrap_err()
    }

    #[test]
    fn an_object_comes_back_in_the_version_that_was_asked_for_and_of_its_kind() {
        let same = checked(&object("v1"), object("v2"), "example.com/v2", "").unwrap();
        assert_eq!(same, object("v2"));
        assert!(
            wrong(object("v3"))
                .ends_with("invalid groupVersion (expected example.com/v2, received example.com/v3)")
        );
        let mut other = object("v2");
        other["kind"] = json!("Gadget");
        assert!(wrong(other).ends_with("invalid kind (expected Widget, received Gadget)"));
        let mut other = object("v2");
        other["metadata"]["name"] = json!("b");
        assert!(wrong(other).ends_with("returned invalid object: must have the same name: a != b"));
    }

    #[tokio::test]
    async fn one_asks_about_an_object_and_nothing_is_left_of_it() {
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}}});
        let webhook = ConversionWebhook::new(&conversion).unwrap();
        let first = webhook.turn(1).await;
        let mut second = Box::pin(webhook.turn(1));
        assert!(futures::poll!(&mut second).is_pending());
        let other = webhook.turn(2).await;
        drop(first);
        let second = second.await;
        drop((second, other));
        assert!(webhook.turns.lock().is_empty());
    }

    #[test]
    fn only_the_strategy_webhook_has_one() {
        assert!(ConversionWebhook::new(&json!({"strategy": "None"})).is_none());
        assert!(ConversionWebhook::new(&Value::Null).is_none());
        let webhook = json!({"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]});
        let known = ConversionWebhook::new(&json!({"strategy": "Webhook", "webhook": webhook}));
        assert_eq!(known.unwrap().review_versions, ["v1"]);
    }
}
