//! The operator's decisions, one controller per concern.

pub(crate) mod drain;
pub mod failover;
pub mod provisioning;
pub mod storage;
