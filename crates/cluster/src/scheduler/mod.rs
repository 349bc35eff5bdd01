//! The scheduler: binds every pending pod to a node that has room for it and that its constraints allow.
//!
//! It is not a controller of single objects: what one pod gets, another cannot have. So one loop decides about one pod after
//! the other, by priority, on sums that are kept up to date change by change (`cache`). A decision is assumed in that cache
//! at once, and bindings are written many at a time. A pod that fits nowhere waits in the queue until an event happens that
//! could make it schedulable (`scheduling_queue`). Preemption is tried on a copy of the cache: all pods of lower priority are
//! removed and added back one by one, those first whose eviction would violate a PodDisruptionBudget (`preemption`).
//!
//! `decide` and everything it asks about a pod and a node is pure, one file per plug-in of kube-scheduler: `node_affinity`,
//! `inter_pod_affinity`, `topology_spread`, `volume_binding`.

mod binding;
mod cache;
mod decide;
mod disruption_budgets;
mod filter;
mod info;
mod inter_pod_affinity;
mod node_affinity;
mod preemption;
mod scheduling_queue;
mod score;
mod topology_spread;
mod volume_binding;

pub(crate) use node_affinity::covers;

use binding::Written;
use cache::{ClusterEvent, SchedulerCache};
use decide::{ScheduleResult, decide};
use info::{NAME, PodInfo, needs_node};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use parking_lot::Mutex;
use scheduling_queue::SchedulingQueue;
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use volume_binding::Volumes;
use windlass::cache::{AnyObject, Cache, Changed, Store};
use windlass::{Key, Recorder};
use windlass_clock::Clock;

/// The most bindings at once.
const MAX_CONCURRENT_BINDINGS: usize = 32;

/// A running scheduler.
struct Scheduler {
    client: Client,
    clock: Clock,
    pods: Arc<Store<Pod>>,
    volumes: Volumes,
    budgets: Arc<Store<PodDisruptionBudget>>,
    recorder: Recorder,
    known: Mutex<Known>,
    /// Notified when there is something to do.
    woken: Notify,
    writes: Arc<Semaphore>,
}

#[derive(Default)]
struct Known {
    state: SchedulerCache,
    queue: SchedulingQueue,
    /// The most significant event since the queue was last updated.
    event: Option<ClusterEvent>,
}

/// Subscribes to a cache, which has to be started afterwards; the returned future schedules until it is dropped.
pub(crate) fn on(cache: &Cache, client: Client, clock: Clock) -> impl Future<Output = ()> + Send + use<> {
    let (recorder, sending) = Recorder::standalone(client.clone(), clock.clone(), NAME);
    let scheduler = Arc::new(Scheduler {
        client,
        clock,
        pods: cache.store(),
        volumes: Volumes::of(cache),
        budgets: cache.store(),
        recorder,
        known: Mutex::default(),
        woken: Notify::new(),
        writes: Arc::new(Semaphore::new(MAX_CONCURRENT_BINDINGS)),
    });
    scheduler.listen(cache);
    let (nodes, namespaces) = (cache.store::<Node>(), cache.store::<Namespace>());
    async move {
        let mut tasks = JoinSet::new();
        tasks.spawn(sending);
        nodes.synced().await;
        namespaces.synced().await;
        scheduler.pods.synced().await;
        scheduler.volumes.synced().await;
        scheduler.run(&mut tasks).await;
    }
}

impl Scheduler {
    fn listen(self: &Arc<Self>, cache: &Cache) {
        let weak = Arc::downgrade(self);
        self.pods.listen(Arc::new(move |changed| {
            if let Some(scheduler) = weak.upgrade() {
                scheduler.pod_changed(changed);
            }
        }));
        let weak = Arc::downgrade(self);
        cache.store::<Node>().listen(Arc::new(move |changed| {
            if let Some(scheduler) = weak.upgrade() {
                let mut known = scheduler.known.lock();
                let event = known.state.node(changed.key.name(), of::<Node>(changed.new.as_ref()));
                scheduler.notify(&mut known, event);
            }
        }));
        let weak = Arc::downgrade(self);
        cache.store::<Namespace>().listen(Arc::new(move |changed| {
            if let Some(scheduler) = weak.upgrade() {
                let mut known = scheduler.known.lock();
                let name = changed.key.name().to_owned();
                match &changed.new {
                    Some(new) => {
                        known.state.namespaces.insert(name, new.meta().labels.clone().unwrap_or_default());
                    }
                    None => drop(known.state.namespaces.remove(&name)),
                }
            }
        }));
        let weak = Arc::downgrade(self);
        // A claim that was created or bound, its volume, or a class that arrives later than its claims: each may be what a pod
        // waits for.
        self.volumes.listen(Arc::new(move |_| {
            if let Some(scheduler) = weak.upgrade() {
                let mut known = scheduler.known.lock();
                scheduler.notify(&mut known, ClusterEvent::Room);
            }
        }));
    }

    fn pod_changed(&self, changed: &Changed) {
        let pod = of::<Pod>(changed.new.as_ref());
        let now = self.clock.moment();
        let mut known = self.known.lock();
        let event = known.state.pod(&changed.key, pod);
        match pod.filter(|pod| needs_node(pod)) {
            Some(pod) if !known.state.is_placed(&changed.key) => {
                let spec = pod.spec.as_ref();
                let priority = spec.and_then(|spec| spec.priority).unwrap_or(0);
                // A change of its status alone is no reason to retry.
                let before = of::<Pod>(changed.old.as_ref()).filter(|before| before.spec == pod.spec);
                let same = before.is_some_and(|before| before.metadata.labels == pod.metadata.labels);
                if !same {
                    let has_affinity = spec.is_some_and(|spec| spec.affinity.is_some());
                    known.queue.add(&changed.key, priority, has_affinity, now);
                    self.woken.notify_one();
                }
            }
            Some(_) => {}
            None => known.queue.remove(&changed.key),
        }
        self.notify(&mut known, event);
    }

    fn notify(&self, known: &mut Known, event: ClusterEvent) {
        if event != ClusterEvent::None && known.queue.has_listeners() {
            known.event = known.event.max(Some(event));
            self.woken.notify_one();
        }
    }

    async fn run(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        loop {
            while tasks.try_join_next().is_some() {}
            let now = self.clock.moment();
            let next = {
                let mut known = self.known.lock();
                if let Some(event) = known.event.take() {
                    known.queue.on_event(event, now);
                }
                known.queue.next(now)
            };
            match next {
                Ok(key) => {
                    // Bounds the number of assumed pods that are not bound yet.
                    let Ok(permit) = self.writes.clone().acquire_owned().await else { return };
                    if let Some(work) = self.schedule_one(&key) {
                        let scheduler = self.clone();
                        tasks.spawn(async move { scheduler.carry_out(work, permit).await });
                    }
                    tokio::task::coop::consume_budget().await;
                }
                Err(due) => {
                    let sleep = async {
                        match due {
                            Some(due) => self.clock.sleep_until(due).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        () = self.woken.notified() => {}
                        () = sleep => {}
                    }
                }
            }
        }
    }

    /// Decides about one pod.
    fn schedule_one(&self, key: &Key) -> Option<Work> {
        let mut known = self.known.lock();
        let Some(pod) = self.pods.get(key).filter(|pod| needs_node(pod)) else {
            known.queue.remove(key);
            return None;
        };
        let Some(info) = PodInfo::of(key, &pod).map(Arc::new) else {
            known.queue.remove(key);
            return None;
        };
        match decide(&info, &known.state, &self.volumes) {
            ScheduleResult::Scheduled(node) => {
                known.state.assume(&info, &node);
                known.queue.remove(key);
                Some(Work::Bind { pod, info, node })
            }
            ScheduleResult::Unschedulable { message, resolvable } => {
                let budgets = self.budgets.list();
                let candidate = preemption::choose(&info, &known.state, &self.volumes, &budgets, &resolvable);
                if let Some(candidate) = &candidate {
                    known.state.nominated.insert(key.clone(), (candidate.node.clone(), info.clone()));
                }
                known.queue.add_unschedulable(key, self.clock.moment());
                Some(Work::Unschedulable { pod, message, candidate })
            }
        }
    }

    async fn carry_out(&self, work: Work, permit: OwnedSemaphorePermit) {
        match work {
            Work::Bind { pod, info, node } => match self.bind(&pod, &info, &node, permit).await {
                Written::Done | Written::Moot => {}
                Written::Failed => {
                    let mut known = self.known.lock();
                    known.state.forget_assumed(&info.key);
                    if self.pods.get(&info.key).is_some_and(|pod| needs_node(&pod)) {
                        let now = self.clock.moment();
                        known.queue.add(&info.key, info.priority, info.affinity.is_some(), now);
                        known.queue.failed(&info.key, now);
                        self.woken.notify_one();
                    }
                }
            },
            Work::Unschedulable { pod, message, candidate } => {
                self.mark_unschedulable(&pod, message, candidate).await
            }
        }
    }
}

/// What to write about a pod.
enum Work {
    Bind { pod: Arc<Pod>, info: Arc<PodInfo>, node: String },
    Unschedulable { pod: Arc<Pod>, message: String, candidate: Option<preemption::Candidate> },
}

fn of<K: 'static>(object: Option<&Arc<dyn AnyObject>>) -> Option<&K> {
    object.and_then(|object| object.as_any().downcast_ref::<K>())
}
