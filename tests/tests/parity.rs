//! `make parity`: one body of named behaviours on the embedded API (in process and over TCP) and on the reference.
//!
//! Prints `N behaviours, M equal` and writes `target/parity.json`. Differences that remain are in docs/parity.md.

use anyhow::ensure;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Ground, Suite, Target};
use windlass_tests::compare::first_difference;
use windlass_tests::grounds::{embedded_in_process, embedded_over_tcp};
use windlass_tests::parity::{Report, Row, behaviours};

fn main() -> ExitCode {
    Suite::on([Ground::reference()])
        .limit(Duration::from_secs(900))
        .test("the embedded API behaves as the reference", compared)
        .run()
}

async fn compared(target: Target) -> anyhow::Result<()> {
    let mut report = Report::default();
    let mut differences = Vec::new();
    for behaviour in behaviours() {
        let reference = outcome(behaviour.transcript(&target).await);
        let in_process = outcome(behaviour.transcript(&embedded_in_process().open().await?).await);
        let over_tcp = outcome(behaviour.transcript(&embedded_over_tcp().open().await?).await);
        let equal = in_process == reference && over_tcp == reference;
        if !equal {
            let other = if in_process == reference { &over_tcp } else { &in_process };
            differences.push(format!("{}: {}", behaviour.name, first_difference(other, &reference, "")));
        }
        report.0.push(Row { behaviour: behaviour.name, embedded: in_process, reference, equal });
    }
    report.write()?;
    println!("{} behaviours, {} equal", report.0.len(), report.equal());
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

fn outcome(transcript: anyhow::Result<serde_json::Value>) -> serde_json::Value {
    transcript.unwrap_or_else(|error| json!({"failed": format!("{error:#}")}))
}
