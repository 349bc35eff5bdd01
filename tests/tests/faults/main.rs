//! Faults that an operator must survive: dropped watches, compacted history, late events, stale reads, outages, storms of
//! errors, clocks that jump, code that panics or hangs, and servers that change what is written. Mostly injected on the
//! server's side, so on the embedded API alone; `disturbed.rs` has those that a real Kubernetes shows too.

mod code;
mod network;
mod own_writes;
mod process;
mod server;
mod token;

use anyhow::ensure;
use kube::CustomResourceExt;
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Suite, Target};
use windlass_testing::TestCluster;
use windlass_testing::campaign::{Campaign, Fault};
use windlass_tests::operators::teams;
use windlass_tests::sample;
use windlass_tests::targets::embedded_in_process;

fn main() -> ExitCode {
    if let Some(ended) = process::as_operator() {
        return ended;
    }
    Suite::on([embedded_in_process()])
        .limit(Duration::from_secs(300))
        .test("watches dropped after each write", |_| at_every_write(Fault::WatchesDropped))
        .test("watches dropped and history compacted after each write", |_| {
            at_every_write(Fault::HistoryForgotten)
        })
        .test("events late from each write on", |_| at_every_write(Fault::EventsLate))
        .test("a stale list after a crash at each write", |_| at_every_write(Fault::PastAfterCrash))
        .test("every fault for a cluster-scoped operator", every_fault_outside_namespaces)
        .test("at rest and after a restart nothing is written", silent_at_rest)
        .test("a cached read after a write is never older than the write", own_writes::reads_its_own_writes)
        .test("an API outage of a minute", network::gone_for_a_minute)
        .test("every request slow", network::every_request_slow)
        .test("a storm of 429", network::storm_of_429)
        .test("a storm of 409", network::storm_of_409)
        .test("a token that expires, in a file that is rotated", token::token_expires)
        .test("a wall clock that jumps", code::wall_clock_jumps)
        .test("a decision that panics on one object", code::panics)
        .test("a reconciler that hangs on one object", code::hangs)
        .test("a reconciler that fails for ever on one object", code::fails_for_ever)
        .test("a server that stamps every write", server::stamps_every_write)
        .test("a server that overrules every write", server::overrules_every_write)
        .test("CRDs that are deleted and created again", server::kind_goes_and_comes)
        .test("a CRD that is never installed", server::kind_never_comes)
        .test("SIGTERM during a reconcile", process::terminated_in_mid_reconcile)
        .run()
}

async fn at_every_write(fault: Fault) -> anyhow::Result<()> {
    let campaign =
        Campaign::new(sample::operator, sample::life).api_only().kinds(sample::crds()).faults([fault]);
    println!("{fault}: {}", campaign.run().await?);
    Ok(())
}

/// Here and not in the crash test, since on a cluster that tests share such objects would be in the way of each other.
async fn every_fault_outside_namespaces(_: Target) -> anyhow::Result<()> {
    let campaign = Campaign::new(teams::operator, teams::life).api_only().kinds([teams::Team::crd()]);
    println!("{}", campaign.run().await?);
    Ok(())
}

async fn silent_at_rest(_: Target) -> anyhow::Result<()> {
    const LONG_ENOUGH: Duration = Duration::from_millis(700);
    let cluster = TestCluster::api_only();
    cluster.install(sample::crds()).await?;
    let operator = cluster.run(sample::operator);
    sample::life(cluster.clone()).await?;
    cluster.run_clock_while(Clock::real().sleep(LONG_ENOUGH)).await;
    operator.kill().await;
    let before = cluster.faults().audit().total();
    ensure!(before > 10, "the API counted {before} writes of a whole life");
    for round in ["after a restart", "after another restart"] {
        let operator = cluster.run(sample::operator);
        cluster.run_clock_while(Clock::real().sleep(LONG_ENOUGH)).await;
        ensure!(!operator.has_ended(), "it ended by itself");
        operator.kill().await;
        let written = cluster.faults().audit().since(before);
        ensure!(written.is_empty(), "{round}, in a world that is as declared, it wrote {written:?}");
    }
    Ok(())
}
