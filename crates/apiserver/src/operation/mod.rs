//! A request on its way: a [`Call`] as it was routed and read, and the [`Operation`] that each write of it is.

mod call;
mod conversions;
mod outcome;

pub(crate) use call::Call;
pub(crate) use conversions::{Conversions, Wanted};
pub(crate) use outcome::Outcome;

use crate::audit::AuditedRequest;
use crate::faults::Mutation;
use crate::kinds::RuleContext;
use crate::object::timestamp;
use crate::request::Identity;
use crate::request::write_options::WriteOptions;
use crate::resource::Resource;
use crate::state::ApiState;
use crate::status::Status;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::{Clock, Moment};
use windlass_store::Key;

/// How long a write may take that was given no time, or more.
pub(crate) const LONGEST_REQUEST: Duration = Duration::from_secs(60);

/// What a request is told that took too long.
const LATE: &str = "request did not complete within requested timeout - context deadline exceeded";

/// One write on its way through the steps.
pub(crate) struct Operation<'a> {
    pub(crate) api: &'a ApiState,
    pub(crate) identity: &'a Identity,
    pub(crate) resource: Arc<Resource>,
    /// From the path; empty for what belongs to the whole cluster.
    pub(crate) namespace: String,
    /// From the path; empty when creating.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    pub(crate) options: WriteOptions,
    /// What the client is told with the answer.
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    /// What faults make of the object.
    pub(crate) mutations: Vec<Mutation>,
    /// The request, if it is audited.
    pub(crate) audited: Option<Arc<AuditedRequest>>,
    /// When it is to be given up, by the machine's own time.
    pub(crate) deadline: Moment,
    /// Whether webhooks are asked: not about what the server writes beside what it was asked for.
    pub(crate) asks_webhooks: bool,
    /// What server-side apply wants to be converted, and was.
    pub(crate) conversions: Conversions,
}

/// 504 for a request whose time is over.
pub(crate) fn in_time(deadline: Moment) -> Result<(), Status> {
    match deadline.since(Clock::real().moment()).is_zero() {
        true => Err(Status::timeout(LATE, 0)),
        false => Ok(()),
    }
}

impl<'a> Operation<'a> {
    /// A write that the server makes itself.
    pub(crate) fn of_server(api: &'a ApiState, resource: Arc<Resource>, namespace: &str, name: &str) -> Self {
        Self {
            api,
            identity: &api.own_identity,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            options: WriteOptions::of_server(false),
            warnings: Arc::default(),
            mutations: Vec::new(),
            audited: None,
            deadline: Clock::real().moment() + LONGEST_REQUEST,
            asks_webhooks: false,
            conversions: Conversions::default(),
        }
    }
}

impl Operation<'_> {
    /// The time that is left for it.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.since(Clock::real().moment())
    }

    /// 504 once there is none.
    pub(crate) fn in_time(&self) -> Result<(), Status> {
        in_time(self.deadline)
    }

    /// Where an object of this name is stored.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key::new(self.resource.storage_key(), self.namespace.as_str(), name)
    }

    /// Tells the client something beside the answer, once.
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        let mut told = self.warnings.lock();
        for warning in warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
    }

    /// What the rules of its kind may know of it.
    pub(crate) fn rule_context(&self) -> RuleContext<'_> {
        RuleContext {
            identity: self.identity,
            clock: &self.api.clock,
            store: &self.api.store,
            allocations: &self.api.service_allocations,
            namespace: &self.namespace,
            subresource: &self.subresource,
        }
    }

    /// The wall clock, as objects are stamped.
    pub(crate) fn now(&self) -> String {
        timestamp(self.api.clock.now())
    }
}
