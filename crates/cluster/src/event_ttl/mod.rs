//! Events are of interest for an hour. Nothing is held for it: from what the last look saw it is known when the next one is due.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, MicroTime, ObjectMeta, Time};
use kube::Client;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use windlass::{Key, Kind, Manager, Task};

/// How long after it was last told an event goes.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// No event is kept longer by more than this, and nobody looks more often.
const SHORTEST: SignedDuration = SignedDuration::from_mins(1);
/// How many are read at once.
const PAGE: usize = 500;

pub(crate) fn add(manager: Manager) -> Manager {
    manager.task("event-ttl-controller", |task| async move { Ok(keep_forgetting(task).await?) })
}

async fn keep_forgetting(task: Task) -> kube::Result<()> {
    loop {
        let now = task.clock().now();
        let oldest = forget(task.client(), now).await?;
        let pause = Duration::try_from(pause(oldest, now)).unwrap_or_default();
        tokio::select! {
            () = task.stopped() => return Ok(()),
            () = task.clock().sleep(pause) => {}
        }
    }
}

/// How long to wait, when the oldest event that was kept was told then. What comes later goes later.
fn pause(oldest: Option<Timestamp>, now: Timestamp) -> SignedDuration {
    oldest.map_or(KEPT, |oldest| KEPT - now.duration_since(oldest)).clamp(SHORTEST, KEPT)
}

/// As much of an event as is needed.
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
    /// When it was last told.
    fn told(&self) -> Option<Timestamp> {
        let times = [
            self.metadata.creation_timestamp.as_ref().map(|time| time.0),
            self.event_time.as_ref().map(|time| time.0),
            self.last_timestamp.as_ref().map(|time| time.0),
            self.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0),
        ];
        times.into_iter().flatten().max()
    }
}

/// Deletes what is old, and says when the oldest of the rest was told.
async fn forget(client: &Client, now: Timestamp) -> kube::Result<Option<Timestamp>> {
    let kind = Kind::of::<k8s_openapi::api::core::v1::Event>();
    let mut oldest = None::<Timestamp>;
    let mut at = String::new();
    loop {
        let path = format!("{}?limit={PAGE}{at}", kind.collection_path(None));
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let page: Page = match client.request(request).await {
            // The place in the list is too old by now: the next look begins anew.
            Err(error) if crate::metadata_client::code(&error) == Some(410) => return Ok(Some(now - KEPT)),
            page => page?,
        };
        for event in page.items {
            let Some(told) = event.told() else { continue };
            if now.duration_since(told) < KEPT {
                oldest = Some(oldest.map_or(told, |oldest| oldest.min(told)));
                continue;
            }
            let name = event.metadata.name.as_deref().unwrap_or_default();
            let key = Key::new("".into(), event.metadata.namespace.as_deref(), name);
            // Told again since, it stays.
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
        assert_eq!(pause(None, now), KEPT, "what comes now is due then");
        assert_eq!(pause(ago(600), now), SignedDuration::from_mins(50));
        assert_eq!(pause(ago(3599), now), SHORTEST);
        assert_eq!(pause(ago(-5), now), KEPT, "clocks jump");
    }

    #[test]
    fn an_event_is_as_old_as_what_it_told_last() {
        let event: Event = serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:30:00.000000Z"},
        }))
        .unwrap();
        assert_eq!(event.told(), Some("2026-01-01T00:30:00Z".parse().unwrap()));
    }
}
