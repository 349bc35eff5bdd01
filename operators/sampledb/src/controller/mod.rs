//! The operator's decisions, one controller per concern.

pub mod failover;
pub mod provisioning;
pub mod storage;
