//! What the world can do to an operator: dropped watches, forgotten history, late events, the past, outages, storms of
//! refusals, clocks that jump, code that panics or hangs, and servers that change what is written. Mostly injected on the
//! server's side, so on the embedded API alone; `disturbed.rs` has those that a real Kubernetes shows too.

mod own_writes;

use anyhow::ensure;
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Suite, Target};
use windlass_testing::TestCluster;
use windlass_testing::campaign::{Campaign, Fault};
use windlass_tests::grounds::embedded_in_process;
use windlass_tests::sample;

fn main() -> ExitCode {
    Suite::on([embedded_in_process()])
        .limit(Duration::from_secs(300))
        .test("watches dropped after each write", |_| at_every_write(Fault::WatchesDropped))
        .test("watches dropped and history forgotten after each write", |_| {
            at_every_write(Fault::HistoryForgotten)
        })
        .test("events late from each write on", |_| at_every_write(Fault::EventsLate))
        .test("a stale list after a crash at each write", |_| at_every_write(Fault::PastAfterCrash))
        .test("at rest and after a restart nothing is written", silent_at_rest)
        .test("a cached read after a write is never older than the write", own_writes::reads_its_own_writes)
        .run()
}

async fn at_every_write(fault: Fault) -> anyhow::Result<()> {
    let campaign = Campaign::new(sample::operator, sample::life).kinds(sample::crds()).faults([fault]);
    println!("{fault}: {}", campaign.run().await?);
    Ok(())
}

async fn silent_at_rest(_: Target) -> anyhow::Result<()> {
    const LONG_ENOUGH: Duration = Duration::from_millis(700);
    let cluster = TestCluster::start();
    cluster.install(sample::crds()).await?;
    let operator = cluster.run(sample::operator);
    sample::life(cluster.clone()).await?;
    cluster.flow(Clock::real().sleep(LONG_ENOUGH)).await;
    operator.kill().await;
    let before = cluster.faults().audit().total();
    ensure!(before > 10, "the API counted {before} writes of a whole life");
    for round in ["after a restart", "after another restart"] {
        let operator = cluster.run(sample::operator);
        cluster.flow(Clock::real().sleep(LONG_ENOUGH)).await;
        ensure!(!operator.has_ended(), "it ended by itself");
        operator.kill().await;
        let written = cluster.faults().audit().since(before);
        ensure!(written.is_empty(), "{round}, in a world that is as declared, it wrote {written:?}");
    }
    Ok(())
}
