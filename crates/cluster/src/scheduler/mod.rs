//! The scheduler: gives every pod that waits for one a node that has room for it and that it may go to.
//!
//! It is no controller of single objects: what one pod gets, another cannot have. So one loop decides about pods one after the
//! other, the most important first, on sums that are kept change by change (`state`); what it decided is assumed to be so at
//! once, and written by many requests at a time. `decide` and all it asks is pure.

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
use cache::{News, State};
use decide::{Verdict, decide};
use info::{NAME, PodFacts, waits};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use parking_lot::Mutex;
use scheduling_queue::Waiting;
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use volume_binding::Volumes;
use windlass::cache::{AnyObject, Cache, Changed, Store};
use windlass::{Key, Recorder};
use windlass_clock::Clock;

/// So many pods are given to their nodes at once.
const WRITES: usize = 32;

/// A scheduler at work.
struct Scheduler {
    client: Client,
    clock: Clock,
    pods: Arc<Store<Pod>>,
    volumes: Volumes,
    budgets: Arc<Store<PodDisruptionBudget>>,
    recorder: Recorder,
    known: Mutex<Known>,
    /// There is something to do.
    woken: Notify,
    writes: Arc<Semaphore>,
}

#[derive(Default)]
struct Known {
    state: State,
    waiting: Waiting,
    /// The most that happened since somebody looked.
    news: Option<News>,
}

/// Listens to a cache, which is to be started after that; what is returned schedules until it is dropped.
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
        writes: Arc::new(Semaphore::new(WRITES)),
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
        scheduler.schedule(&mut tasks).await;
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
                let news = known.state.node(changed.key.name(), of::<Node>(changed.new.as_ref()));
                scheduler.tell(&mut known, news);
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
        // A claim that came or got its volume, the volume itself, or a class that is heard of later than its claims: each may be
        // what a pod waits for.
        self.volumes.listen(Arc::new(move |_| {
            if let Some(scheduler) = weak.upgrade() {
                let mut known = scheduler.known.lock();
                scheduler.tell(&mut known, News::Room);
            }
        }));
    }

    fn pod_changed(&self, changed: &Changed) {
        let pod = of::<Pod>(changed.new.as_ref());
        let now = self.clock.moment();
        let mut known = self.known.lock();
        let news = known.state.pod(&changed.key, pod);
        match pod.filter(|pod| waits(pod)) {
            Some(pod) if !known.state.is_placed(&changed.key) => {
                let spec = pod.spec.as_ref();
                let priority = spec.and_then(|spec| spec.priority).unwrap_or(0);
                // What only tells what we said ourselves is no reason to try again.
                let before = of::<Pod>(changed.old.as_ref()).filter(|before| before.spec == pod.spec);
                let same = before.is_some_and(|before| before.metadata.labels == pod.metadata.labels);
                if !same {
                    let company = spec.is_some_and(|spec| spec.affinity.is_some());
                    known.waiting.add(&changed.key, priority, company, now);
                    self.woken.notify_one();
                }
            }
            Some(_) => {}
            None => known.waiting.remove(&changed.key),
        }
        self.tell(&mut known, news);
    }

    fn tell(&self, known: &mut Known, news: News) {
        if news != News::None && known.waiting.listens() {
            known.news = known.news.max(Some(news));
            self.woken.notify_one();
        }
    }

    async fn schedule(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        loop {
            while tasks.try_join_next().is_some() {}
            let now = self.clock.moment();
            let next = {
                let mut known = self.known.lock();
                if let Some(news) = known.news.take() {
                    known.waiting.hear(news, now);
                }
                known.waiting.next(now)
            };
            match next {
                Ok(key) => {
                    // Waiting for room to write bounds what is assumed and not yet so.
                    let Ok(permit) = self.writes.clone().acquire_owned().await else { return };
                    if let Some(work) = self.try_one(&key) {
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
    fn try_one(&self, key: &Key) -> Option<Work> {
        let mut known = self.known.lock();
        let Some(pod) = self.pods.get(key).filter(|pod| waits(pod)) else {
            known.waiting.remove(key);
            return None;
        };
        let Some(facts) = PodFacts::of(key, &pod).map(Arc::new) else {
            known.waiting.remove(key);
            return None;
        };
        match decide(&facts, &known.state, &self.volumes) {
            Verdict::Goes(node) => {
                known.state.assume(&facts, &node);
                known.waiting.remove(key);
                Some(Work::Bind { pod, facts, node })
            }
            Verdict::Nowhere { message, curable } => {
                let budgets = self.budgets.list();
                let made = preemption::choose(&facts, &known.state, &self.volumes, &budgets, &curable);
                if let Some(room) = &made {
                    known.state.nominated.insert(key.clone(), (room.node.clone(), facts.clone()));
                }
                known.waiting.put_aside(key, self.clock.moment());
                Some(Work::Refuse { pod, message, room: made })
            }
        }
    }

    async fn carry_out(&self, work: Work, permit: OwnedSemaphorePermit) {
        match work {
            Work::Bind { pod, facts, node } => match self.bind(&pod, &facts, &node, permit).await {
                Written::Done | Written::Moot => {}
                Written::Failed => {
                    let mut known = self.known.lock();
                    known.state.give_up(&facts.key);
                    if self.pods.get(&facts.key).is_some_and(|pod| waits(&pod)) {
                        let now = self.clock.moment();
                        known.waiting.add(&facts.key, facts.priority, facts.affinity.is_some(), now);
                        known.waiting.failed(&facts.key, now);
                        self.woken.notify_one();
                    }
                }
            },
            Work::Refuse { pod, message, room } => self.refuse(&pod, message, room).await,
        }
    }
}

/// What is to be written about a pod.
enum Work {
    Bind { pod: Arc<Pod>, facts: Arc<PodFacts>, node: String },
    Refuse { pod: Arc<Pod>, message: String, room: Option<preemption::Room> },
}

fn of<K: 'static>(object: Option<&Arc<dyn AnyObject>>) -> Option<&K> {
    object.and_then(|object| object.as_any().downcast_ref::<K>())
}
