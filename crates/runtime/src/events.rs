//! Events: what a controller did and why, told to people. Best effort, bounded, aggregated; never in the way of a reconcile.

use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::reason::Reason;
use kube::Client;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_clock::{Clock, Moment};

/// Events that wait to be sent; more are dropped.
const WAITING: usize = 1024;
/// An event that is recorded again within this time is counted, not repeated.
const SAME_FOR: Duration = Duration::from_secs(600);
/// The number of different events of one object in that time; more are dropped.
const PER_OBJECT: usize = 25;
/// Recent events that are remembered, for counting.
const REMEMBERED: usize = 4096;
/// The API's limit for a message.
const MESSAGE_LIMIT: usize = 1024;

/// Which events a controller records: each is a write to the API, beside those of its plans.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::{Controller, Events, Plan};
/// let controller = Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new())).events(Events::Warnings);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Events {
    /// What was done and why, and warnings.
    #[default]
    All,
    /// Warnings only.
    Warnings,
    /// None at all.
    None,
}

/// Records events in the name of one controller. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder {
    controller: Arc<str>,
    sender: mpsc::Sender<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    controller: Arc<str>,
    about: About,
    warning: bool,
    reason: Reason,
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct About {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) uid: String,
}

impl Recorder {
    /// A recorder for a program that is no manager, and what sends for it: to be polled as long as events are to be sent.
    ///
    /// ```
    /// # use windlass::{Reason, Recorder, clock::Clock};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn example(client: kube::Client, pod: &Pod) {
    /// let (recorder, sending) = Recorder::standalone(client, Clock::real(), "kubelet");
    /// tokio::spawn(sending);
    /// recorder.tell(pod, false, Reason::new("Started", "Started container web"));
    /// # }
    /// ```
    pub fn standalone(
        client: Client,
        clock: Clock,
        component: &str,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let sender = EventSender::new();
        let recorder = sender.recorder(component.into());
        (recorder, sender.send(client, clock))
    }

    /// Says something about an object, as a warning or not; if too much waits to be sent, it is dropped.
    pub fn tell<C: Object>(&self, object: &C, warning: bool, reason: impl Into<Reason>) {
        let uid = object.meta().uid.clone().unwrap_or_default();
        let about = About { kind: Kind::of::<C>(), key: Key::of("".into(), object.meta()), uid };
        self.record(about, warning, reason.into());
    }

    /// The same about an object of any kind.
    pub fn about(&self, kind: &Kind, key: &Key, uid: &str, warning: bool, reason: impl Into<Reason>) {
        let about = About { kind: kind.clone(), key: key.clone(), uid: uid.to_owned() };
        self.record(about, warning, reason.into());
    }

    /// Records an event of an object; if too much waits to be sent, it is dropped.
    pub(crate) fn record(&self, about: About, warning: bool, reason: Reason) {
        let recorded = Recorded { controller: self.controller.clone(), about, warning, reason };
        if let Err(error) = self.sender.try_send(recorded) {
            tracing::debug!(controller = %self.controller, "an event was dropped: {error}");
        }
    }
}

/// Sends what recorders record.
#[derive(Debug)]
pub(crate) struct EventSender {
    sender: mpsc::Sender<Recorded>,
    receiver: mpsc::Receiver<Recorded>,
}

impl EventSender {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver }
    }

    pub(crate) fn recorder(&self, controller: Arc<str>) -> Recorder {
        Recorder { controller, sender: self.sender.clone() }
    }

    /// Sends until every recorder is gone.
    pub(crate) async fn send(self, client: Client, clock: Clock) {
        let Self { sender, mut receiver } = self;
        drop(sender);
        let mut counts = Counts::default();
        while let Some(recorded) = receiver.recv().await {
            let request = match counts.judge(&recorded, clock.moment()) {
                Judged::New(serial) => create(&recorded, serial, &clock),
                Judged::Again { name, count } => repeat(&recorded, &name, count, &clock),
                Judged::Enough => continue,
            };
            let sent = match request {
                Ok(request) => client.request_text(request).await,
                Err(error) => Err(kube::Error::HttpError(error)),
            };
            if let Err(error) = sent {
                tracing::debug!(controller = %recorded.controller, object = %recorded.about.key, "an event was not recorded: {error}");
            }
        }
    }
}

/// What was said lately.
#[derive(Debug, Default)]
struct Counts {
    recent: HashMap<Arc<What>, Recent>,
    /// The keys of `recent`, longest remembered first.
    order: VecDeque<Arc<What>>,
    per_object: HashMap<About, usize>,
    serial: u64,
}

/// About whom, the reason's name, and its message.
type What = (About, String, String);

#[derive(Debug)]
struct Recent {
    name: String,
    count: u64,
    last: Moment,
    /// Whether it was said again since it was last put into the order.
    again: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    New(String),
    Again { name: String, count: u64 },
    Enough,
}

impl Counts {
    fn judge(&mut self, recorded: &Recorded, now: Moment) -> Judged {
        let what =
            (recorded.about.clone(), recorded.reason.name().to_owned(), recorded.reason.message().to_owned());
        self.forget(now);
        if let Some(recent) = self.recent.get_mut(&what) {
            recent.count += 1;
            recent.last = now;
            recent.again = true;
            // At 2, 4, 8 and so on: a loop that fails every second writes ten times in a quarter of an hour.
            return match recent.count.is_power_of_two() {
                true => Judged::Again { name: recent.name.clone(), count: recent.count },
                false => Judged::Enough,
            };
        }
        let on_object = self.per_object.entry(recorded.about.clone()).or_default();
        if *on_object >= PER_OBJECT {
            return Judged::Enough;
        }
        *on_object += 1;
        self.serial += 1;
        let name = self.name(recorded);
        let what = Arc::new(what);
        self.order.push_back(what.clone());
        self.recent.insert(what, Recent { name: name.clone(), count: 1, last: now, again: false });
        Judged::New(name)
    }

    /// Forgets what is old, and the longest remembered when there is no room; what was said again gets another round.
    /// Each step forgets one or uses up a repetition, so the work is bounded by what was said.
    fn forget(&mut self, now: Moment) {
        while let Some(what) = self.order.front() {
            let Some(recent) = self.recent.get_mut(what) else { break };
            let old = now - recent.last >= SAME_FOR;
            if !old && self.order.len() < REMEMBERED {
                break;
            }
            let again = std::mem::take(&mut recent.again);
            let Some(what) = self.order.pop_front() else { break };
            if again && !old {
                self.order.push_back(what);
                continue;
            }
            self.recent.remove(&what);
            if let Some(count) = self.per_object.get_mut(&what.0) {
                *count -= 1;
                if *count == 0 {
                    self.per_object.remove(&what.0);
                }
            }
        }
    }

    fn name(&self, recorded: &Recorded) -> String {
        let mut random = [0u8; 6];
        // Without randomness, names may collide after a restart, and an event is lost: that is what best effort means.
        let _ = getrandom::fill(&mut random);
        let suffix: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let object: String = recorded.about.key.name().chars().take(200).collect();
        format!("{object}.{:x}.{suffix}", self.serial)
    }
}

fn place(recorded: &Recorded) -> String {
    format!("/api/v1/namespaces/{}/events", recorded.about.key.namespace().unwrap_or("default"))
}

fn seconds(clock: &Clock) -> String {
    let now = clock.now();
    windlass_clock::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

fn create(recorded: &Recorded, name: String, clock: &Clock) -> http::Result<http::Request<Vec<u8>>> {
    let about = &recorded.about;
    let namespace = about.key.namespace().unwrap_or("default");
    let now = seconds(clock);
    let message: String = recorded.reason.message().chars().take(MESSAGE_LIMIT).collect();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": about.kind.api_version(),
            "kind": about.kind.kind,
            "namespace": about.key.namespace(),
            "name": about.key.name(),
            "uid": about.uid,
        },
        "reason": recorded.reason.name(),
        "message": message,
        "type": if recorded.warning { "Warning" } else { "Normal" },
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": { "component": &*recorded.controller },
        "reportingComponent": &*recorded.controller,
    });
    http::Request::post(place(recorded))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(event.to_string().into_bytes())
}

fn repeat(
    recorded: &Recorded,
    name: &str,
    count: u64,
    clock: &Clock,
) -> http::Result<http::Request<Vec<u8>>> {
    let patch = json!({ "count": count, "lastTimestamp": seconds(clock) });
    http::Request::patch(format!("{}/{name}", place(recorded)))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(patch.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn recorded(message: &str) -> Recorded {
        Recorded {
            controller: "c".into(),
            about: About {
                kind: Kind::of::<ConfigMap>(),
                key: Key::new("k".into(), Some("ns"), "name"),
                uid: "u".into(),
            },
            warning: false,
            reason: Reason::new("Why", message),
        }
    }

    #[test]
    fn what_is_said_again_is_counted_and_seldom_sent() {
        let mut counts = Counts::default();
        let now = Moment::default();
        assert!(matches!(counts.judge(&recorded("same"), now), Judged::New(_)));
        let sent = (0..1000).filter(|_| counts.judge(&recorded("same"), now) != Judged::Enough).count();
        assert_eq!(sent, 9, "at 2, 4, ... 512");
    }

    #[test]
    fn an_object_with_too_much_to_say_is_cut_short_for_a_while() {
        let mut counts = Counts::default();
        let mut now = Moment::default();
        let sent = |counts: &mut Counts, now| {
            (0..100).filter(|n| counts.judge(&recorded(&format!("{n}")), now) != Judged::Enough).count()
        };
        assert_eq!(sent(&mut counts, now), PER_OBJECT);
        now += SAME_FOR;
        assert!(sent(&mut counts, now) > 0);
    }
}
