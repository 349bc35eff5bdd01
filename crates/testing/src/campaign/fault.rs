//! What befalls an operator at one of its writes, and how it is brought about.

use super::life::OPERATORS;
use super::place::Place;
use crate::TestCluster;
use crate::faults::{Act, Past, Pattern, Which};
use crate::faulty_client::{ClientFault, FaultyClient};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass_apiserver::Api;
use windlass_apiserver::read::Hold;
use windlass_clock::Clock;

/// What befalls an operator at one of its writes.
///
/// ```
/// use windlass_testing::campaign::Fault;
/// use windlass_testing::faulty_client::ClientFault;
///
/// let anywhere = Fault::ALL.into_iter().filter(|fault| fault.is_by_client()).count();
/// assert_eq!(anywhere, 5);
/// assert_eq!(Fault::Break(ClientFault::KillAfter).to_string(), "a crash after");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Something that the operator's own client does to it: a crash, a lost request or answer, a conflict.
    Break(ClientFault),
    /// Its watches are cut off after the write.
    WatchesDropped,
    /// Likewise, and the API has forgotten what happened since: it must list again.
    HistoryForgotten,
    /// From the write on, events come late.
    EventsLate,
    /// It is killed after the write, and the next one is shown the past for a while.
    PastAfterCrash,
    /// For the whole life, one of the kinds that it watches lags behind all others; each of them in turn, whatever it writes.
    KindLags,
    /// From just before the write, and for a while, all that it watches lags behind, but for the kind that it writes.
    OthersLag,
}

/// A fault, and where in a life it comes.
#[derive(Debug, Clone)]
pub(super) struct Disturbance {
    pub(super) fault: Fault,
    /// The number of the write, or of the kind, counted from one.
    pub(super) number: usize,
    /// The resources that the undisturbed operator watched.
    pub(super) watched: Arc<Vec<String>>,
    /// Set when the fault came.
    came: Arc<Notify>,
}

impl Disturbance {
    pub(super) fn new(fault: Fault, number: usize, watched: Arc<Vec<String>>) -> Self {
        Self { fault, number, watched, came: Arc::default() }
    }

    /// The kind that lags, where one does.
    pub(super) fn lagging(&self) -> Option<&str> {
        (self.fault == Fault::KindLags)
            .then(|| self.watched.get(self.number - 1).map(String::as_str))
            .flatten()
    }

    /// What happens at its write, told to the client that makes it.
    pub(super) fn faulty_client(&self, cluster: &TestCluster) -> FaultyClient {
        let watches = Pattern::watches().user(OPERATORS[0]);
        let api = cluster.embedded().cloned();
        let number = self.number;
        let after = |then: fn(&Api, &Pattern)| {
            let (api, watches) = (api.clone(), watches.clone());
            FaultyClient::after(number, move || api.iter().for_each(|api| then(api, &watches)))
        };
        match self.fault {
            Fault::Break(how) => FaultyClient::at(number, how),
            Fault::PastAfterCrash => FaultyClient::at(number, ClientFault::KillAfter),
            Fault::WatchesDropped => after(|api, watches| {
                api.faults().drop_watches(watches);
            }),
            Fault::HistoryForgotten => after(|api, watches| {
                api.store().compact(api.store().revision());
                api.faults().drop_watches(watches);
            }),
            Fault::EventsLate => after(|api, watches| {
                let late = Hold { delay: LATE, ..Hold::default() };
                api.faults().hold_watches(watches, late);
            }),
            Fault::KindLags => FaultyClient::none(),
            Fault::OthersLag => {
                let (watched, came) = (self.watched.clone(), self.came.clone());
                FaultyClient::before(number, move |write| {
                    let written = Place::of(write).map(|place| place.resource());
                    for resource in watched.iter().filter(|resource| Some(*resource) != written.as_ref()) {
                        let others = watches.clone().resource(resource);
                        let lag = Hold { delay: LAG, ..Hold::default() };
                        if let Some(api) = &api {
                            api.faults().hold_watches(&others, lag);
                        }
                    }
                    came.notify_one();
                })
            }
        }
    }

    /// What happens beside the life, for as long as it takes; to be awaited beside it, and first.
    pub(super) async fn accompany(&self, cluster: &TestCluster, faulty_client: &FaultyClient) {
        match self.fault {
            Fault::PastAfterCrash => {
                let reads = Pattern::any().verbs(&["get", "list", "watch"]).user(OPERATORS[1]);
                let stale = cluster.faults().add(reads.then(Which::Every, Act::ServePast(Past::Behind(4))));
                faulty_client.killed().await;
                Clock::real().sleep(PAST_FOR).await;
                cluster.faults().remove(stale);
            }
            Fault::KindLags => {
                let Some(resource) = self.lagging() else { return };
                let watches = Pattern::watches().user(OPERATORS[0]).resource(resource);
                let lag = Hold { delay: LAG, ..Hold::default() };
                cluster.faults().add(watches.then(Which::Every, Act::HoldEvents(lag)));
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

impl Fault {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Break(ClientFault::KillBefore),
        Self::Break(ClientFault::KillAfter),
        Self::Break(ClientFault::LoseRequest),
        Self::Break(ClientFault::LoseAnswer),
        Self::Break(ClientFault::Conflict),
        Self::WatchesDropped,
        Self::HistoryForgotten,
        Self::EventsLate,
        Self::PastAfterCrash,
        Self::KindLags,
        Self::OthersLag,
    ];

    /// Whether it needs nothing of the API, and so works on any cluster.
    pub fn is_by_client(self) -> bool {
        matches!(self, Self::Break(_))
    }

    /// Whether the operator may leave orphans: shown the past, it may make something for a parent that it cannot know to be
    /// gone, and a garbage collector, which no test cluster has, removes it.
    pub(super) fn may_orphan(self) -> bool {
        self == Self::PastAfterCrash
    }
}

/// How late events come.
const LATE: Duration = Duration::from_millis(40);

/// How far what lags is behind.
const LAG: Duration = Duration::from_millis(150);

/// For how long the past is shown.
const PAST_FOR: Duration = Duration::from_millis(120);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Break(ClientFault::KillBefore) => "a crash before",
            Self::Break(ClientFault::KillAfter) => "a crash after",
            Self::Break(ClientFault::LoseRequest) => "a lost request",
            Self::Break(ClientFault::LoseAnswer) => "a lost answer",
            Self::Break(ClientFault::Conflict) => "a conflict",
            Self::WatchesDropped => "watches dropped",
            Self::HistoryForgotten => "watches dropped and history forgotten",
            Self::EventsLate => "events late",
            Self::PastAfterCrash => "a crash, and then the past,",
            Self::KindLags => "a kind that lags",
            Self::OthersLag => "all other kinds lagging",
        })
    }
}
