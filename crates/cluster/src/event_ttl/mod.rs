//! Deletes Events an hour after they were last observed, as the API server's `--event-ttl` does. It keeps no state: each pass
//! computes when the next one is due.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, MicroTime, ObjectMeta, Time};
use kube::Client;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use windlass::{Key, Kind, Manager, Task};

/// How long an Event is kept after it was last observed.
const TTL: SignedDuration = SignedDuration::from_hours(1);
/// The shortest pause between two passes.
const MIN_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// The page size.
const PAGE: usize = 500;

pub(crate) fn add(manager: Manager) -> Manager {
    manager.task("event-ttl-controller", |task| async move { Ok(run(task).await?) })
}

async fn run(task: Task) -> kube::Result<()> {
    loop {
        let now = task.clock().now();
        let oldest = delete_expired(task.client(), now).await?;
        let pause = Duration::try_from(pause(oldest, now)).unwrap_or_default();
        tokio::select! {
            () = task.stopped() => return Ok(()),
            () = task.clock().sleep(pause) => {}
        }
    }
}

/// How long until the next pass, given when the oldest kept Event was last observed. Later ones expire later.
fn pause(oldest: Option<Timestamp>, now: Timestamp) -> SignedDuration {
    oldest.map_or(TTL, |oldest| TTL - now.duration_since(oldest)).clamp(MIN_PAUSE, TTL)
}

/// The fields of an Event that are needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    metadata: ObjectMeta,
    event_time: Option<MicroTime>,
    last_timestamp: Option<Time>,
    series: Option<Series>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<MicroTime>,
}

#[derive(Deserialize)]
struct Page {
    metadata: ListMeta,
    items: Vec<Event>,
}

impl Event {
    /// When it was last observed.
    fn last_observed(&self) -> Option<Timestamp> {
        let times = [
            self.metadata.creation_timestamp.as_ref().map(|time| time.0),
            self.event_time.as_ref().map(|time| time.0),
            self.last_timestamp.as_ref().map(|time| time.0),
            self.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0),
        ];
        times.into_iter().flatten().max()
    }
}

/// Deletes expired Events, and returns when the oldest of the others was last observed.
async fn delete_expired(client: &Client, now: Timestamp) -> kube::Result<Option<Timestamp>> {
    let kind = Kind::of::<k8s_openapi::api::core::v1::Event>();
    let mut oldest = None::<Timestamp>;
    let mut at = String::new();
    loop {
        let path = format!("{}?limit={PAGE}{at}", kind.collection_path(None));
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let page: Page = match client.request(request).await {
            // The continue token expired: the next pass starts over.
            Err(error) if crate::metadata_client::code(&error) == Some(410) => return Ok(Some(now - TTL)),
            page => page?,
        };
        for event in page.items {
            let Some(last_observed) = event.last_observed() else { continue };
            if now.duration_since(last_observed) < TTL {
                oldest = Some(oldest.map_or(last_observed, |oldest| oldest.min(last_observed)));
                continue;
            }
            let name = event.metadata.name.as_deref().unwrap_or_default();
            let key = Key::new("".into(), event.metadata.namespace.as_deref(), name);
            // Observed again since: it stays.
            let version = &event.metadata.resource_version;
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "resourceVersion": version },
            });
            match crate::metadata_client::delete(client, &kind, &key, &options).await {
                Err(error) if !matches!(crate::metadata_client::code(&error), Some(404 | 409)) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => at = format!("&continue={}", crate::metadata_client::escape(&next)),
            None => return Ok(oldest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_when_the_oldest_event_is_due() {
        let now = Timestamp::from_second(10_000).unwrap();
        let ago = |seconds: i64| Some(now - SignedDuration::from_secs(seconds));
        assert_eq!(pause(None, now), TTL, "what comes now is due then");
        assert_eq!(pause(ago(600), now), SignedDuration::from_mins(50));
        assert_eq!(pause(ago(3599), now), MIN_PAUSE);
        assert_eq!(pause(ago(-5), now), TTL, "clocks jump");
    }

    #[test]
    fn an_event_is_as_old_as_what_it_told_last() {
        let event: Event = serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:30:00.000000Z"},
        }))
        .unwrap();
        assert_eq!(event.last_observed(), Some("2026-01-01T00:30:00Z".parse().unwrap()));
    }
}
