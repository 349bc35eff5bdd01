//! The suite of a small operator on envtest, started 20 times as 20 packages of one repository are: on the reference's
//! programs, and on those of `windlass envtest`, in the same run.
//!
//! The suite is a Go program (`bench/peers/envtest`), compiled once: what is measured is its environment. `WINDLASS_PROGRAM`
//! names another `windlass` than the one that is built for this.

use anyhow::{Context, ensure};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_harness::bench::{Bench, Better};
use windlass_harness::reference;
use windlass_tests::load::windlass_program;
use windlass_tests::peers::Program;

const OURS: &str = "windlass";
const THEIRS: &str = "reference";
const PACKAGES: usize = 20;
const TURNS: usize = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("envtest", &[OURS, THEIRS]);
    let suite = Program::go_test("envtest")?;
    let home = tempfile::tempdir()?;
    let subjects = [(OURS, stand_ins(home.path())?), (THEIRS, reference::programs()?)];
    for turn in 1..=TURNS {
        for (subject, programs) in &subjects {
            bench.progress(&format!("turn {turn} of {TURNS}: {subject}"));
            measure(&mut bench, subject, suite.path(), programs).await?;
        }
    }
    bench.note(&format!("{PACKAGES} environments, one after the other"));
    Ok(bench.finish()?)
}

/// The folder that `windlass envtest path` prints.
fn stand_ins(home: &Path) -> anyhow::Result<PathBuf> {
    let program = windlass_program()?;
    let said = Command::new(&program).args(["envtest", "path"]).env("XDG_DATA_HOME", home).output();
    let said = said.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr).trim());
    Ok(String::from_utf8(said.stdout)?.trim().into())
}

async fn measure(bench: &mut Bench, subject: &str, suite: &Path, programs: &Path) -> anyhow::Result<()> {
    let before = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let (figures, whole) = bench
        .timed(async { (0..PACKAGES).map(|_| run(suite, programs)).collect::<anyhow::Result<Vec<Value>>>() })
        .await;
    let figures = figures?;
    let after = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let sum = |name: &str| figures.iter().filter_map(|one| one[name].as_f64()).sum::<f64>() / 1000.0;
    bench.record(subject, "whole suite", whole.as_secs_f64(), "s", Better::Lower);
    let environments = sum("start") + sum("stop");
    bench.record(subject, "starting and stopping environments", environments, "s", Better::Lower);
    bench.record(subject, "the tests themselves", sum("tests"), "s", Better::Lower);
    let memory = figures.iter().filter_map(|one| one["memory"].as_f64()).fold(0.0, f64::max);
    bench.record(subject, "memory of the largest process", memory, "MB", Better::Lower);
    bench.record(subject, "processor time", processor(&after) - processor(&before), "s", Better::Lower);
    Ok(())
}

fn run(suite: &Path, programs: &Path) -> anyhow::Result<Value> {
    let said =
        Command::new(suite).env("KUBEBUILDER_ASSETS", programs).output().context("cannot run the suite")?;
    ensure!(said.status.success(), "the suite failed: {}", String::from_utf8_lossy(&said.stderr).trim());
    let text = String::from_utf8(said.stdout)?;
    let line = text.lines().find(|line| line.starts_with('{')).context("the suite printed no figures")?;
    Ok(serde_json::from_str(line)?)
}

fn processor(usage: &Usage) -> f64 {
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
        .sum()
}
