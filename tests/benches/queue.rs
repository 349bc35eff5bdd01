//! The queue: what it costs to add 1,000 keys, get them and be done with them, beside controller-runtime's priority queue
//! (a small Go program, `bench/peers/queue`) in the same run.

use anyhow::Context;
use std::path::Path;
use std::process::Command;
use windlass::queue::{Backoff, Priority, Queue};
use windlass_clock::Clock;
use windlass_harness::bench::{Bench, Better};
use windlass_tests::peers::Program;

const OURS: &str = "windlass";
const THEIRS: &str = "controller-runtime";
const ROUNDS: usize = 3;

/// The numbers of keys, the metric of each, and how often it is measured in a round: the median counts.
const SIZES: [(&str, usize, usize); 2] = [
    ("add_get_done_per_1000_at_1000_keys", 1_000, 201),
    ("add_get_done_per_1000_at_1000000_keys", 1_000_000, 3),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("queue", &[OURS, THEIRS]);
    let peer = Program::go("queue");
    if let Err(error) = &peer {
        bench.note(&format!("controller-runtime was not measured: {error:#}"));
    }
    for round in 1..=ROUNDS {
        bench.progress(&format!("round {round} of {ROUNDS}: {OURS}"));
        for (metric, keys, rounds) in SIZES {
            let value = per_thousand(&bench, keys, rounds).await;
            bench.record(OURS, metric, value, "us", Better::Lower);
        }
        bench.record(OURS, "heap_per_key_at_1000000_keys", memory_per_key()?, "bytes", Better::Lower);
        if let Ok(peer) = &peer {
            bench.progress(&format!("round {round} of {ROUNDS}: {THEIRS}"));
            run_peer(&mut bench, peer.path())?;
        }
    }
    Ok(bench.finish()?)
}

/// The microseconds that a thousand keys took: the median over the rounds.
async fn per_thousand(bench: &Bench, keys: usize, rounds: usize) -> f64 {
    let queue: Queue<u64> = Queue::new(Clock::real(), Backoff::default());
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let ((), took) = bench
            .timed(async {
                for key in 0..keys as u64 {
                    queue.add(key, Priority::default());
                }
                for _ in 0..keys {
                    drop(queue.next().await);
                }
            })
            .await;
        times.push(took.as_secs_f64() * 1e9 / keys as f64);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Bytes of resident memory that each of a million queued keys takes, by the kernel's accounting.
fn memory_per_key() -> anyhow::Result<f64> {
    const KEYS: u64 = 1_000_000;
    let resident = || -> anyhow::Result<u64> {
        Ok(windlass_harness::Usage::of(std::process::id()).context("no accounting on this platform")?.memory)
    };
    let before = resident()?;
    let queue: Queue<u64> = Queue::new(Clock::real(), Backoff::default());
    for key in 0..KEYS {
        queue.add(key, Priority::default());
    }
    let after = resident()?;
    drop(queue);
    Ok(after.saturating_sub(before) as f64 / KEYS as f64)
}

/// Runs the Go program and records the lines of JSON that it prints.
fn run_peer(bench: &mut Bench, program: &Path) -> anyhow::Result<()> {
    let output = Command::new(program).output().context("cannot run the peer")?;
    anyhow::ensure!(output.status.success(), "the peer failed: {}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8(output.stdout)?.lines() {
        let record: serde_json::Value = serde_json::from_str(line).context("the peer printed no JSON")?;
        let metric = record["metric"].as_str().context("a line without a metric")?;
        let value = record["value"].as_f64().context("a line without a value")?;
        bench.record(THEIRS, metric, value, record["unit"].as_str().unwrap_or_default(), Better::Lower);
    }
    Ok(())
}
