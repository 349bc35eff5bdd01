//! The operator's decisions, one controller per concern.

pub mod archive;
pub mod backup;
pub mod deletion;
pub(crate) mod drain;
pub mod failover;
pub mod provisioning;
pub(crate) mod restore;
pub mod restoring;
mod roll;
pub mod schedule;
pub mod storage;
mod upgrade;
mod upgrade_steps;
