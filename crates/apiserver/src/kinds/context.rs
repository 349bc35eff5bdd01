//! What a kind's rules may know of the write that they run in.

use super::services::ServiceAllocations;
use crate::object::timestamp;
use crate::request::Identity;
use windlass_clock::Clock;
use windlass_store::Store;

/// A write, as a kind's rules see it.
pub(crate) struct RuleContext<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) clock: &'a Clock,
    pub(crate) store: &'a Store,
    /// Which addresses and ports Services have.
    pub(crate) allocations: &'a ServiceAllocations,
    /// Empty for what belongs to the whole cluster.
    pub(crate) namespace: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
}

impl RuleContext<'_> {
    /// The wall clock, as objects are stamped.
    pub(crate) fn now(&self) -> String {
        timestamp(self.clock.now())
    }
}
