//! What the controllers of a cluster do, written once and run on the embedded cluster and on the reference: one file per
//! area, each behaviour a test.

pub mod accounts;
pub mod by_hand;
pub mod crons;
pub mod daemons;
pub mod deployments;
pub mod disruption;
pub mod endpoints;
pub mod garbage;
pub mod jobs;
pub mod namespaces;
pub mod nodes;
mod own_nodes;
pub mod record;
pub mod replicas;
pub mod scheduling;
pub mod stateful;
pub mod trouble;
pub mod volumes;
