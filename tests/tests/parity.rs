//! `make parity`: one body of named behaviours on the embedded API (in process and over TCP) and on the reference.
//!
//! Prints `N behaviours, M equal` and writes `target/parity.json`. Differences that remain are in docs/parity.md.

use anyhow::ensure;
use futures::StreamExt;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::compare::first_difference;
use windlass_tests::parity::{Behaviour, Report, Row, behaviours, known, known_names};
use windlass_tests::targets::{embedded_in_process, embedded_over_tcp};

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(900))
        .test("the embedded API behaves as the reference", compared)
        .run()
}

/// How many behaviours run at a time: enough to keep the reference busy while some wait for it.
const AT_ONCE: usize = 8;

async fn compared(target: Target) -> anyhow::Result<()> {
    let rows = chosen().into_iter().map(|behaviour| judged(behaviour, target.clone()));
    let rows: Vec<anyhow::Result<Row>> = futures::stream::iter(rows).buffered(AT_ONCE).collect().await;
    let report = Report(rows.into_iter().collect::<anyhow::Result<_>>()?);
    report.write()?;
    let mut surprises = Vec::new();
    for row in &report.0 {
        match (row.equal, known(&row.behaviour)) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(_)) => {
                surprises.push(format!("{}: listed as different, but it is equal now", row.behaviour))
            }
            (false, None) => {
                let difference = first_difference(&row.embedded, &row.reference, "");
                surprises.push(format!("{}: {difference}", row.behaviour));
            }
        }
    }
    if let Some(gone) =
        known_names().find(|name| !behaviours().iter().any(|behaviour| behaviour.name == *name))
    {
        surprises.push(format!("{gone}: listed as different, but there is no such behaviour"));
    }
    println!("{} behaviours, {} equal", report.0.len(), report.equal());
    ensure!(surprises.is_empty(), "{}", surprises.join("\n"));
    Ok(())
}

/// All behaviours, or those whose name contains `WINDLASS_BEHAVIOUR`.
fn chosen() -> Vec<Behaviour> {
    let wanted = std::env::var("WINDLASS_BEHAVIOUR").unwrap_or_default();
    behaviours().into_iter().filter(|behaviour| behaviour.name.contains(&wanted)).collect()
}

/// The reference answers some reads from caches that lag behind for an instant: a difference counts when it shows again.
async fn judged(behaviour: Behaviour, reference: Target) -> anyhow::Result<Row> {
    let first = row(&behaviour, &reference).await?;
    if first.equal || known(&behaviour.name).is_some() {
        return Ok(first);
    }
    let second = row(&behaviour, &reference).await?;
    if second.equal {
        println!("{}: differed, and not when looked at again", behaviour.name);
    }
    Ok(second)
}

async fn row(behaviour: &Behaviour, reference: &Target) -> anyhow::Result<Row> {
    let (in_process, over_tcp) = (embedded_in_process().open().await?, embedded_over_tcp().open().await?);
    let (reference, in_process, over_tcp) = futures::join!(
        behaviour.transcript(reference),
        behaviour.transcript(&in_process),
        behaviour.transcript(&over_tcp),
    );
    let (reference, in_process, over_tcp) = (outcome(reference), outcome(in_process), outcome(over_tcp));
    let equal = in_process == reference && over_tcp == reference;
    let embedded = if in_process == reference { over_tcp } else { in_process };
    Ok(Row { behaviour: behaviour.name.clone(), embedded, reference, equal })
}

fn outcome(transcript: anyhow::Result<serde_json::Value>) -> serde_json::Value {
    transcript.unwrap_or_else(|error| json!({"failed": format!("{error:#}")}))
}
