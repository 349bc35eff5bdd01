//! What befalls an operator at one of its writes, and how it is brought about.

use super::life::OPERATORS;
use crate::TestCluster;
use crate::faults::{Act, Past, Pattern, Which};
use crate::faulty_client::{ClientFault, FaultyClient};
use std::time::Duration;
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
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Break(ClientFault::KillBefore),
        Self::Break(ClientFault::KillAfter),
        Self::Break(ClientFault::LoseRequest),
        Self::Break(ClientFault::LoseAnswer),
        Self::Break(ClientFault::Conflict),
        Self::WatchesDropped,
        Self::HistoryForgotten,
        Self::EventsLate,
        Self::PastAfterCrash,
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

    /// What happens at the write of this number, told to the client that makes it.
    pub(super) fn faulty_client(self, number: usize, cluster: &TestCluster) -> FaultyClient {
        let watches = Pattern::watches().user(OPERATORS[0]);
        let api = cluster.embedded().cloned();
        let after = |then: fn(&Api, &Pattern)| {
            let then = move || api.iter().for_each(|api| then(api, &watches));
            FaultyClient::after(number, then)
        };
        match self {
            Self::Break(how) => FaultyClient::at(number, how),
            Self::PastAfterCrash => FaultyClient::at(number, ClientFault::KillAfter),
            Self::WatchesDropped => after(|api, watches| {
                api.faults().drop_watches(watches);
            }),
            Self::HistoryForgotten => after(|api, watches| {
                api.store().compact(api.store().revision());
                api.faults().drop_watches(watches);
            }),
            Self::EventsLate => after(|api, watches| {
                let late = Hold { delay: LATE, ..Hold::default() };
                api.faults().hold_watches(watches, late);
            }),
        }
    }

    /// Shows the past to the one that follows a killed operator, for a while; to be awaited beside the life.
    pub(super) async fn show_the_past(self, cluster: &TestCluster, faulty_client: &FaultyClient) {
        if self == Self::PastAfterCrash {
            let reads = Pattern::any().verbs(&["get", "list", "watch"]).user(OPERATORS[1]);
            let stale = cluster.faults().add(reads.then(Which::Every, Act::ServePast(Past::Behind(4))));
            faulty_client.killed().await;
            Clock::real().sleep(PAST_FOR).await;
            cluster.faults().remove(stale);
        }
    }
}

/// How late events come.
const LATE: Duration = Duration::from_millis(40);

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
        })
    }
}
