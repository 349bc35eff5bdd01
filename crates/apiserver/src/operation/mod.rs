//! A request on its way: a [`Call`] as it was routed and read, and the [`Operation`] that each write of it is.

mod call;
mod outcome;

pub(crate) use call::Call;
pub(crate) use outcome::Outcome;

use crate::faults::Mutation;
use crate::kinds::RuleContext;
use crate::object::timestamp;
use crate::request::Identity;
use crate::request::write_options::WriteOptions;
use crate::resource::Resource;
use crate::state::ApiState;
use parking_lot::Mutex;
use std::sync::Arc;
use windlass_store::Key;

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
}

impl Operation<'_> {
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
