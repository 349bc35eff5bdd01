//! What the controllers of a cluster do, on the embedded cluster and on the reference.

use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::Suite;
use windlass_tests::targets;
use windlass_tests::workloads as w;

fn main() -> ExitCode {
    let suite = Suite::on([targets::embedded_cluster(), targets::reference_cluster()]);
    let areas = [
        w::service_accounts::behaviours,
        w::admission_policies::behaviours,
        w::certificates::behaviours,
        w::flow_schemas::behaviours,
        w::garbage_collection::behaviours,
        w::namespaces::behaviours,
        w::replica_sets::behaviours,
        w::deployments::behaviours,
        w::daemon_sets::behaviours,
        w::stateful_sets::behaviours,
        w::jobs::behaviours,
        w::cron_jobs::behaviours,
        w::endpoints::behaviours,
        w::volumes::behaviours,
        w::disruption::behaviours,
        w::nodes::behaviours,
        w::scheduling::behaviours,
        w::failures::behaviours,
    ];
    areas.iter().fold(suite.limit(Duration::from_secs(120)), |suite, area| area(suite)).run()
}
