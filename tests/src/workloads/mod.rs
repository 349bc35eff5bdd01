//! What the controllers of a cluster do, written once and run on the embedded cluster and on the reference: one file per
//! area, each behaviour a test.

pub mod admission_policies;
pub mod certificates;
pub mod cron_jobs;
pub mod daemon_sets;
pub mod deployments;
pub mod disruption;
pub mod endpoints;
pub mod failures;
pub mod flow_schemas;
pub mod garbage_collection;
pub mod jobs;
pub mod manual_pods;
pub mod namespaces;
pub mod nodes;
pub mod replica_sets;
pub mod scheduling;
pub mod service_accounts;
pub mod stateful_sets;
mod test_nodes;
pub mod volumes;
pub mod watch_record;
