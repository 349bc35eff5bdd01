//! What the controllers of a cluster do, on the embedded cluster and on the reference.

use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::Suite;
use windlass_tests::grounds;
use windlass_tests::workloads as w;

fn main() -> ExitCode {
    let suite = Suite::on([grounds::embedded_cluster(), grounds::reference_cluster()]);
    let areas = [
        w::accounts::behaviours,
        w::garbage::behaviours,
        w::namespaces::behaviours,
        w::replicas::behaviours,
        w::deployments::behaviours,
        w::daemons::behaviours,
        w::stateful::behaviours,
        w::jobs::behaviours,
        w::crons::behaviours,
        w::endpoints::behaviours,
        w::volumes::behaviours,
        w::disruption::behaviours,
        w::nodes::behaviours,
        w::scheduling::behaviours,
        w::trouble::behaviours,
    ];
    areas.iter().fold(suite.limit(Duration::from_secs(120)), |suite, area| area(suite)).run()
}
