//! The crash test: the sample survives a crash before and after every one of its writes, and every lost request and answer,
//! and ends in the state of an undisturbed life.

use anyhow::ensure;
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Ground, Suite, Target};
use windlass_testing::campaign::{Campaign, Fault};
use windlass_testing::sabotage::Break;
use windlass_tests::grounds::{cluster, embedded_in_process};
use windlass_tests::sample;

fn main() -> ExitCode {
    Suite::on([embedded_in_process(), Ground::reference()])
        .limit(Duration::from_secs(900))
        .test("a crash after each write converges to the same end", |target| {
            every_write(target, Break::KillAfter)
        })
        .test("a crash before each write converges to the same end", |target| {
            every_write(target, Break::KillBefore)
        })
        .test("a lost request converges to the same end", |target| every_write(target, Break::LoseRequest))
        .test("a lost answer converges to the same end", |target| every_write(target, Break::LoseAnswer))
        .test("a conflict converges to the same end", |target| every_write(target, Break::Conflict))
        .run()
}

async fn every_write(target: Target, how: Break) -> anyhow::Result<()> {
    let ground = target.ground();
    let report = Campaign::new(sample::operator, sample::life)
        .kinds(sample::crds())
        .faults([Fault::Break(how)])
        .on(move || {
            let target = target.clone();
            async move { cluster(&target).await }
        })
        .most_extra_changes(MOST_EXTRA_CHANGES)
        .run()
        .await?;
    ensure!(report.writes > 10, "the sample writes more than that");
    println!("{ground}: {how:?}: {report}");
    Ok(())
}

/// A write that was lost is tried again, and so is what the other workers had on its way when the process died.
const MOST_EXTRA_CHANGES: usize = 3;
