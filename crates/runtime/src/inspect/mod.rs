//! A manager seen from outside while it runs: metrics, health, and what it is doing about what, for whom.
//!
//! The manager serves these over HTTP where it is told to; an [`Inspector`] gives them to a program that has a server of
//! its own.

mod health;

pub use health::{Check, Health};

use crate::cache::{Cache, Stats};
use crate::controller::Running;
use crate::election::Leadership;
use crate::key::Key;
use crate::metrics::{self, Page, Requests, TaskState};
use crate::webhook::Conversions;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Adds metrics of an operator's own to a page.
pub(crate) type Collector = Box<dyn Fn(&mut Page) + Send + Sync>;

/// The number of waiting objects that are listed; each can be asked for by name.
const LISTED: usize = 1_000;

/// Looks into a manager while it runs. Cheap to clone; it keeps nothing running.
#[derive(Clone, Default)]
pub struct Inspector(Arc<Shared>);

#[derive(Default)]
struct Shared {
    requests: Requests,
    collectors: Mutex<Vec<Collector>>,
    live: Mutex<Vec<(String, Check)>>,
    ready: Mutex<Vec<(String, Check)>>,
    served: Mutex<Served>,
    /// What runs; nothing before the start and after the end.
    inside: Mutex<Option<Arc<Inside>>>,
}

/// Where a manager serves its pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// `/metrics` and `/debug`.
    pub metrics: Option<SocketAddr>,
    /// `/healthz` and `/readyz`.
    pub health: Option<SocketAddr>,
    /// The webhooks.
    pub webhooks: Option<SocketAddr>,
}

/// What a manager runs.
pub(crate) struct Inside {
    pub(crate) cache: Cache,
    pub(crate) controllers: Vec<Arc<Running>>,
    pub(crate) election: Option<Elected>,
    pub(crate) tasks: Vec<Arc<TaskState>>,
    /// The kinds that this operator converts.
    pub(crate) converted: Vec<Conversions>,
}

/// The lease that a manager holds, or waits for.
pub(crate) struct Elected {
    pub(crate) lease: String,
    pub(crate) identity: String,
    pub(crate) leadership: Leadership,
}

impl Inside {
    /// The caches that must be filled before it is ready. What it converts itself can be read only once it is asked, which it may be only
    /// once it is ready.
    fn awaited_caches(&self) -> impl Iterator<Item = Stats> {
        let stats = self.cache.stats().into_iter();
        stats.filter(|stats| self.converted.iter().all(|one| !one.concern(&stats.kind)))
    }
}

impl Inspector {
    pub(crate) fn requests(&self) -> &Requests {
        &self.0.requests
    }

    pub(crate) fn collect(&self, collector: Collector) {
        self.0.collectors.lock().push(collector);
    }

    pub(crate) fn check_live(&self, name: String, check: Check) {
        self.0.live.lock().push((name, check));
    }

    pub(crate) fn check_ready(&self, name: String, check: Check) {
        self.0.ready.lock().push((name, check));
    }

    pub(crate) fn serves(&self, served: Served) {
        *self.0.served.lock() = served;
    }

    pub(crate) fn serves_webhooks(&self, at: Option<SocketAddr>) {
        self.0.served.lock().webhooks = at;
    }

    pub(crate) fn opened(&self, inside: Inside) {
        *self.0.inside.lock() = Some(Arc::new(inside));
    }

    pub(crate) fn closed(&self) {
        *self.0.served.lock() = Served::default();
        *self.0.inside.lock() = None;
    }

    fn inside(&self) -> Option<Arc<Inside>> {
        self.0.inside.lock().clone()
    }

    /// Where its pages are served now: of use where any free port was asked for.
    pub fn served(&self) -> Served {
        *self.0.served.lock()
    }

    /// A page of metrics, in Prometheus' text format: see [`crate::metrics`].
    pub fn metrics(&self) -> String {
        let mut page = Page::default();
        if let Some(inside) = self.inside() {
            let controllers: Vec<_> = inside.controllers.iter().map(|one| one.measured()).collect();
            metrics::write_controllers(&mut page, &controllers);
            metrics::write_caches(&mut page, &inside.cache.stats());
            metrics::write_tasks(&mut page, &inside.tasks);
            if let Some(elected) = &inside.election {
                metrics::write_leadership(&mut page, &elected.lease, elected.leadership.leads());
            }
        }
        metrics::write_requests(&mut page, &self.0.requests);
        for collector in self.0.collectors.lock().iter() {
            collector(&mut page);
        }
        page.into_text()
    }

    /// Whether the process is alive: it answers, and no check that the operator added fails.
    pub fn live(&self) -> Health {
        let mut checks = vec![("ping".to_owned(), Ok(()))];
        checks.extend(self.0.live.lock().iter().map(|(name, check)| (name.clone(), check())));
        Health { checks }
    }

    /// Whether it is ready to work, or to take over: every cache had its first list, and no check fails.
    pub fn ready(&self) -> Health {
        let mut checks = vec![("ping".to_owned(), Ok(()))];
        match self.inside() {
            None => checks.push(("caches".to_owned(), Err("not started".to_owned()))),
            Some(inside) => checks.extend(inside.awaited_caches().map(|stats| {
                let name = format!("cache/{}", stats.kind.kind.to_lowercase());
                let missing = || stats.trouble.clone().unwrap_or_else(|| "no list yet".to_owned());
                (name, stats.synced.then_some(()).ok_or_else(missing))
            })),
        }
        checks.extend(self.0.ready.lock().iter().map(|(name, check)| (name.clone(), check())));
        Health { checks }
    }

    /// Queues, caches, and what is awaited, since when and why, as JSON. Nothing that an object holds is in it.
    pub fn debug(&self) -> Value {
        let Some(inside) = self.inside() else { return json!({ "state": "not running" }) };
        let controllers: Vec<Value> =
            inside.controllers.iter().map(|controller| show_controller(controller)).collect();
        let caches: Vec<Value> = inside
            .cache
            .stats()
            .into_iter()
            .map(|stats| {
                json!({
                    "kind": stats.kind.kind, "apiVersion": stats.kind.api_version(), "scope": stats.scope,
                    "objects": stats.objects, "bytes": stats.bytes, "synced": stats.synced,
                    "relists": stats.relists, "disconnects": stats.disconnects,
                    "unreadable": stats.unreadable, "trouble": stats.trouble,
                })
            })
            .collect();
        let election = inside.election.as_ref().map(|elected| {
            json!({ "lease": elected.lease, "identity": elected.identity, "leads": elected.leadership.leads() })
        });
        json!({
            "state": "running",
            "cluster": &**inside.cache.cluster(),
            "election": election,
            "controllers": controllers,
            "caches": caches,
            "tasks": inside.tasks.iter().map(|task| task.show()).collect::<Vec<_>>(),
        })
    }

    /// What is known of one object by the controllers of its kind: what is awaited, and whether a reconcile is due. A manager
    /// that waits for its turn to lead knows nothing: `leads` is false.
    pub fn object(&self, kind: &str, namespace: Option<&str>, name: &str) -> Value {
        let Some(inside) = self.inside() else { return json!([]) };
        let key = Key::new(inside.cache.cluster().clone(), namespace, name);
        let concerned = inside.controllers.iter().filter(|one| one.kind().is_called(kind));
        let leads = inside.election.as_ref().is_none_or(|elected| elected.leadership.leads());
        concerned
            .map(|one| {
                json!({
                    "controller": one.name(),
                    "leads": leads,
                    "awaited": one.waiting().of(&key),
                    "queue": one.queue_state(&key),
                })
            })
            .collect()
    }
}

fn show_controller(controller: &Running) -> Value {
    let measured = controller.measured();
    let (depth, waiting) = (&measured.depth, controller.waiting());
    let ready: Vec<Value> = depth
        .ready
        .iter()
        .map(|(priority, objects)| json!({ "priority": priority.0, "objects": objects }))
        .collect();
    let running: Vec<f64> =
        measured.workqueue.running().iter().map(std::time::Duration::as_secs_f64).collect();
    json!({
        "name": &*measured.name,
        "kind": controller.kind().kind,
        "workers": measured.workers,
        "queue": {
            "ready": ready,
            "waiting": depth.waiting,
            "held": depth.held,
            "taken": depth.taken,
            "oldestSeconds": measured.oldest.map(|oldest| oldest.as_secs_f64()),
        },
        "reconciles": { "runningSeconds": running },
        "awaited": waiting.show(LISTED),
        "awaitedInAll": waiting.len(),
        "actions": controller.show_actions(LISTED),
    })
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("running", &self.inside().is_some()).finish()
    }
}
