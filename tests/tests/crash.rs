//! The crash test: the sample survives a crash before and after every one of its writes, and every lost request and answer,
//! and ends in the state of an undisturbed life.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Ground, Suite, Target};
use windlass_tests::campaign::{Orphans, live, world};
use windlass_tests::grounds::embedded_in_process;
use windlass_tests::sabotage::{Break, Sabotage};

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
    let (place, namespace) = world(&target).await?;
    let undisturbed =
        live(&place, &namespace, Sabotage::none(), None, Orphans::Count).await.context("undisturbed")?;
    let count = undisturbed.writes.len();
    ensure!(count > 10, "the sample writes more than that: {:?}", undisturbed.writes);
    let mut extra = BTreeMap::<isize, usize>::new();
    for number in 1..=count {
        let (place, namespace) = world(&target).await?;
        let ended =
            live(&place, &namespace, Sabotage::at(number, how), Some(&undisturbed.state), Orphans::Count)
                .await
                .with_context(|| format!("{how:?} at write {number} of {count}"))?;
        *extra.entry(ended.writes.len() as isize - count as isize).or_default() += 1;
        let more = changes(&ended.writes) as isize - changes(&undisturbed.writes) as isize;
        ensure!(
            more <= MOST_EXTRA_CHANGES,
            "{how:?} at write {number} of {count} cost {more} more changes:\n  undisturbed: {:?}\n  disturbed: {:?}",
            undisturbed.writes,
            ended.writes
        );
    }
    println!(
        "{}: {how:?} at each of {count} writes; extra writes (how many: how often): {extra:?}",
        target.ground()
    );
    Ok(())
}

/// Writes that change something. Whether a tenant still gets to say that it waits before its vault opens is a matter of
/// timing, so reports of status are told in the figures and not held against anyone.
fn changes(writes: &[String]) -> usize {
    writes.iter().filter(|write| !write.ends_with("/status")).count()
}

/// A write that was lost is tried again, and so is what the other workers had on its way when the process died.
const MOST_EXTRA_CHANGES: isize = 3;
