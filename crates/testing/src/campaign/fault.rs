//! The faults of the crash campaign, and how each is injected.

use super::collection::Collection;
use super::life::OPERATORS;
use crate::TestCluster;
use crate::faults::{Act, Past, Pattern, Which};
use crate::faulty_client::{ClientFault, FaultyClient};
use futures::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use windlass_apiserver::Api;
use windlass_apiserver::read::Hold;
use windlass_clock::Clock;

/// A fault at one of an operator's writes.
///
/// ```
/// use windlass_testing::campaign::Fault;
/// use windlass_testing::faulty_client::ClientFault;
///
/// let anywhere = Fault::ALL.into_iter().filter(|fault| fault.is_by_client()).count();
/// assert_eq!(anywhere, 5);
/// assert_eq!(Fault::Client(ClientFault::KillAfter).to_string(), "a crash after");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A fault in the operator's own client: a crash, a lost request or response, a conflict.
    Client(ClientFault),
    /// Its watches are closed after the write.
    WatchesDropped,
    /// Likewise, and the history is compacted: it must list again.
    HistoryForgotten,
    /// From the write on, watch events are delayed.
    EventsLate,
    /// It is killed after the write, and after its restart reads are stale for a while.
    PastAfterCrash,
    /// For the whole life, the watch of one kind lags behind all others; each watched kind in turn.
    KindLags,
    /// From just before the write, and for a while, all its watches lag behind except that of the kind it writes.
    OthersLag,
}

impl Fault {
    /// Whether the operator sees what is no more, and may act on it for as long as it does: it may, for instance, make
    /// the child of an object that was deleted meanwhile, which the garbage collector then takes away.
    pub(super) fn shows_the_past(&self) -> bool {
        matches!(self, Self::EventsLate | Self::PastAfterCrash | Self::KindLags | Self::OthersLag)
    }
}

/// A fault, and at which point of a life it is injected.
#[derive(Debug, Clone)]
pub(super) struct Disturbance {
    pub(super) fault: Fault,
    /// The number of the write, or of the kind, counted from one.
    pub(super) number: usize,
    /// The resources that the undisturbed operator watched.
    pub(super) watched: Arc<Vec<String>>,
    /// Notified when the fault was injected.
    came: Arc<Notify>,
    /// Notified when the past is over.
    over: Arc<Notify>,
    /// The number of watches or reads that the fault changed, where the API injects it.
    changed: Arc<AtomicUsize>,
}

impl Disturbance {
    pub(super) fn new(fault: Fault, number: usize, watched: Arc<Vec<String>>) -> Self {
        Self { fault, number, watched, came: Arc::default(), over: Arc::default(), changed: Arc::default() }
    }

    /// Whether the fault did something in the life that has ended: its write came, and where the API injects it, there was a
    /// watch or a read for it.
    pub(super) fn took_effect(&self, faulty_client: &FaultyClient) -> bool {
        let came = self.fault == Fault::KindLags || faulty_client.writes().len() >= self.number;
        came && (self.fault.is_by_client() || self.changed.load(Ordering::Relaxed) > 0)
    }

    /// The kind that lags, where one does.
    pub(super) fn lagging(&self) -> Option<&str> {
        (self.fault == Fault::KindLags)
            .then(|| self.watched.get(self.number - 1).map(String::as_str))
            .flatten()
    }

    /// The client that injects the fault at its write.
    pub(super) fn faulty_client(&self, cluster: &TestCluster) -> FaultyClient {
        let watches = Pattern::watches().user(OPERATORS[0]);
        let api = cluster.embedded().cloned();
        let number = self.number;
        let after = |then: fn(&Api, &Pattern) -> usize| {
            let (api, watches, changed) = (api.clone(), watches.clone(), self.changed.clone());
            FaultyClient::after(number, move || {
                let count: usize = api.iter().map(|api| then(api, &watches)).sum();
                changed.fetch_add(count, Ordering::Relaxed);
            })
        };
        match self.fault {
            Fault::Client(how) => FaultyClient::at(number, how),
            Fault::PastAfterCrash => FaultyClient::at(number, ClientFault::KillAfter),
            Fault::WatchesDropped => after(|api, watches| api.faults().drop_watches(watches)),
            Fault::HistoryForgotten => after(|api, watches| {
                api.store().compact(api.store().revision());
                api.faults().drop_watches(watches)
            }),
            Fault::EventsLate => after(|api, watches| {
                let late = Hold { delay: LATE, ..Hold::default() };
                api.faults().hold_watches(watches, late)
            }),
            Fault::KindLags => FaultyClient::none(),
            Fault::OthersLag => {
                let (watched, came, changed) =
                    (self.watched.clone(), self.came.clone(), self.changed.clone());
                FaultyClient::before(number, move |write| {
                    let written = Collection::of(write).map(|collection| collection.resource());
                    for resource in watched.iter().filter(|resource| Some(*resource) != written.as_ref()) {
                        let others = watches.clone().resource(resource);
                        let lag = Hold { delay: LAG, ..Hold::default() };
                        if let Some(api) = &api {
                            changed.fetch_add(api.faults().hold_watches(&others, lag), Ordering::Relaxed);
                        }
                    }
                    came.notify_one();
                })
            }
        }
    }

    /// Waits until the past is over, if the crash came that it follows.
    pub(super) async fn until_over(&self, cluster: &TestCluster, faulty_client: &FaultyClient) {
        if faulty_client.killed().now_or_never().is_some() {
            cluster.run_clock_while(self.over.notified()).await;
        }
    }

    /// What has to run concurrently with the life to inject the fault; to be polled first.
    pub(super) async fn run_beside(&self, cluster: &TestCluster, faulty_client: &FaultyClient) {
        match self.fault {
            Fault::PastAfterCrash => {
                let reads = Pattern::any().verbs(&["get", "list", "watch"]).user(OPERATORS[1]);
                let stale = cluster.faults().add(reads.then(Which::Every, Act::ServePast(Past::Behind(4))));
                faulty_client.killed().await;
                Clock::real().sleep(PAST_FOR).await;
                self.count(cluster.faults().remove(stale));
                self.over.notify_one();
            }
            Fault::KindLags => {
                let Some(resource) = self.lagging() else { return };
                let watches = Pattern::watches().user(OPERATORS[0]).resource(resource);
                let lag = Hold { delay: LAG, ..Hold::default() };
                let lagging = cluster.faults().add(watches.then(Which::Every, Act::HoldEvents(lag)));
                // As soon as there is such a watch, all its events lag.
                while cluster.faults().matched(lagging).unwrap_or_default() == 0 {
                    Clock::real().sleep(LOOK).await;
                }
                self.count(Some(1));
            }
            Fault::OthersLag => {
                self.came.notified().await;
                Clock::real().sleep(2 * LAG).await;
                let watches = Pattern::watches().user(OPERATORS[0]);
                cluster.faults().hold_watches(&watches, Hold::default());
            }
            _ => {}
        }
    }
}

impl Disturbance {
    fn count(&self, changed: Option<u64>) {
        let changed = usize::try_from(changed.unwrap_or_default()).unwrap_or(usize::MAX);
        self.changed.fetch_add(changed, Ordering::Relaxed);
    }
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 11] = [
        Self::Client(ClientFault::KillBefore),
        Self::Client(ClientFault::KillAfter),
        Self::Client(ClientFault::LoseRequest),
        Self::Client(ClientFault::LoseResponse),
        Self::Client(ClientFault::Conflict),
        Self::WatchesDropped,
        Self::HistoryForgotten,
        Self::EventsLate,
        Self::PastAfterCrash,
        Self::KindLags,
        Self::OthersLag,
    ];

    /// Whether the client alone injects it, so that it works on any cluster.
    pub fn is_by_client(self) -> bool {
        matches!(self, Self::Client(_))
    }
}

/// How long watch events are delayed.
const LATE: Duration = Duration::from_millis(40);

/// How far a lagging watch is behind.
const LAG: Duration = Duration::from_millis(150);

/// How often it is looked whether a watch is there.
const LOOK: Duration = Duration::from_millis(5);

/// How long reads are stale.
const PAST_FOR: Duration = Duration::from_millis(120);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Client(ClientFault::KillBefore) => "a crash before",
            Self::Client(ClientFault::KillAfter) => "a crash after",
            Self::Client(ClientFault::LoseRequest) => "a lost request",
            Self::Client(ClientFault::LoseResponse) => "a lost response",
            Self::Client(ClientFault::Conflict) => "a conflict",
            Self::WatchesDropped => "watches dropped",
            Self::HistoryForgotten => "watches dropped and history forgotten",
            Self::EventsLate => "events late",
            Self::PastAfterCrash => "a crash, and then the past,",
            Self::KindLags => "a kind that lags",
            Self::OthersLag => "all other kinds lagging",
        })
    }
}
