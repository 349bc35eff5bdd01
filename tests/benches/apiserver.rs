//! The API server as people run it beside the reference: how fast it is ready, what it holds, and what it does per second.
//!
//! The same load by the same client over TLS: ConfigMaps of half a kilobyte, over 1 and 16 connections. The reference and
//! `windlass --data-dir` sync every write to disk before they acknowledge it.
//!
//! Subjects named after `--` are measured alone, and `--without-curve` leaves out the longest part:
//! `cargo bench --package windlass-tests --bench apiserver -- windlass --without-curve`.

use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::{Clock, Moment};
use windlass_harness::bench::{Bench, Better};
use windlass_tests::load::{Ask, Connection, Events, Server, run, windlass_program};

const OBJECTS: usize = 5_000;
const CONNECTIONS: [usize; 2] = [1, 16];
const ROUNDS: usize = 3;
const LISTS: usize = 5;
const WATCHERS: usize = 50;
const EVENTS: usize = 200;
/// How often the events are measured in a round: one hiccup of the machine spoils the p99 of one measurement, not of most.
const EVENT_ROUNDS: usize = 5;
/// Where the curve is read.
const SIZES: [usize; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];

const IN_MEMORY: &str = "windlass";
const DURABLE: &str = "windlass --data-dir";
const REFERENCE: &str = "reference";
const SUBJECTS: [&str; 3] = [IN_MEMORY, DURABLE, REFERENCE];

const PLACE: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("apiserver", &SUBJECTS);
    bench.progress("building the windlass command");
    let program = windlass_program()?;
    let reference = windlass_harness::reference::programs();
    if let Err(error) = &reference {
        bench.note(&format!("{error}"));
    }
    let without_curve = std::env::args().any(|argument| argument == "--without-curve");
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let subjects = || {
        let asked = |subject: &&str| named.is_empty() || named.iter().any(|name| name == subject);
        SUBJECTS.into_iter().filter(asked).filter(|subject| *subject != REFERENCE || reference.is_ok())
    };
    let start = async |subject: &str| match subject {
        REFERENCE => Server::reference().await,
        subject => Server::windlass(&program, subject == DURABLE).await,
    };
    for round in 1..=ROUNDS {
        for subject in subjects() {
            bench.progress(&format!("round {round} of {ROUNDS}: {subject}"));
            let (server, ready) = bench.timed(start(subject)).await;
            let server = server?;
            bench.record(subject, "from nothing to ready", milliseconds(ready), "ms", Better::Lower);
            measure(&mut bench, subject, &server).await.with_context(|| format!("measuring {subject}"))?;
        }
    }
    for subject in subjects().filter(|_| !without_curve) {
        let server = start(subject).await?;
        curve(&mut bench, subject, &server).await.with_context(|| format!("measuring {subject}"))?;
    }
    Ok(bench.finish()?)
}

async fn measure(bench: &mut Bench, subject: &str, server: &Server) -> anyhow::Result<()> {
    bench.record(subject, "memory at rest", megabytes(server.usage()?.memory), "MB", Better::Lower);
    for count in CONNECTIONS {
        let mut connections = Connection::open_many(server.config(), count).await?;
        let with = |what: &str| format!("{what}, {count} connection{}", if count == 1 { "" } else { "s" });
        let stem = format!("at{count}");
        let rate = |took: Duration| OBJECTS as f64 / took.as_secs_f64();

        let names = stem.clone();
        let took = run(&mut connections, 0..OBJECTS, move |number| create(&names, number)).await?;
        bench.record(subject, &with("create"), rate(took), "/s", Better::Higher);

        let names = stem.clone();
        let took = run(&mut connections, 0..OBJECTS, move |number| {
            Ask::get(format!("{PLACE}/{}", name(&names, number)))
        })
        .await?;
        bench.record(subject, &with("get"), rate(took), "/s", Better::Higher);

        let took = run(&mut connections, 0..OBJECTS, move |number| apply(&stem, number)).await?;
        bench.record(subject, &with("server-side apply"), rate(took), "/s", Better::Higher);

        // What the next round lists is this round's number of objects.
        if count == CONNECTIONS[0] {
            for _ in 0..LISTS {
                let took = run(&mut connections, 0..1, |_| Ask::get(PLACE)).await?;
                let metric = format!("list {OBJECTS}");
                bench.record(subject, &metric, milliseconds(took), "ms", Better::Lower);
            }
        }
    }
    bench.record(subject, "memory after the load", megabytes(server.usage()?.memory), "MB", Better::Lower);
    let cpu = server.usage()?.cpu.as_secs_f64();
    bench.record(subject, "processor time of all that", cpu, "s", Better::Lower);

    for round in 0..EVENT_ROUNDS {
        let mut delays = events(server, round).await?;
        delays.sort_unstable();
        for (metric, rank) in [("p50", 50), ("p99", 99)] {
            let delay = delays[(delays.len() - 1) * rank / 100];
            let metric = format!("event to {WATCHERS} watchers, {metric}");
            bench.record(subject, &metric, milliseconds(delay), "ms", Better::Lower);
        }
    }
    Ok(())
}

/// From sending a write until a watcher has its event: for every event and watcher.
async fn events(server: &Server, round: usize) -> anyhow::Result<Vec<Duration>> {
    let clock = Clock::real();
    let sent: Arc<[std::sync::OnceLock<Moment>]> = (0..EVENTS).map(|_| std::sync::OnceLock::new()).collect();
    let mut watchers = Vec::with_capacity(WATCHERS);
    for _ in 0..WATCHERS {
        let path = format!("{PLACE}?watch=true&labelSelector=watched%3Dround-{round}");
        let mut events = Events::open(server.config(), &path).await?;
        let (sent, clock) = (sent.clone(), clock.clone());
        watchers.push(tokio::spawn(async move {
            let mut delays = Vec::with_capacity(EVENTS);
            for moment in sent.iter() {
                events.next().await?;
                delays.push(clock.moment() - *moment.get().context("an event that nobody made")?);
            }
            anyhow::Ok(delays)
        }));
    }
    let mut writer = Connection::open(server.config()).await?;
    for (number, moment) in sent.iter().enumerate() {
        let body = format!(
            r#"{{"metadata":{{"name":"watched-{round}-{number}","labels":{{"watched":"round-{round}"}}}},"data":{{"payload":"{}"}}}}"#,
            "x".repeat(400)
        );
        let ask = Ask::post(PLACE, body);
        let _ = moment.set(clock.moment());
        writer.ask(&ask).await?;
        // One event at a time: what is measured is its way, not a queue's length.
        clock.sleep(Duration::from_millis(10)).await;
    }
    let mut delays = Vec::new();
    for watcher in watchers {
        delays.extend(clock.timeout(Duration::from_secs(30), watcher).await.context("an event was lost")???);
    }
    Ok(delays)
}

/// How creating, listing and memory grow with the number of objects.
async fn curve(bench: &mut Bench, subject: &str, server: &Server) -> anyhow::Result<()> {
    let mut connections = Connection::open_many(server.config(), CONNECTIONS[1]).await?;
    let mut there = 0;
    for size in SIZES {
        bench.progress(&format!("curve: {subject}, {size} objects"));
        let took = run(&mut connections, there..size, |number| create("curve", number)).await?;
        let rate = (size - there) as f64 / took.as_secs_f64();
        bench.record(subject, &format!("create, up to {size} objects"), rate, "/s", Better::Higher);
        let took = run(&mut connections[..1], 0..1, |_| Ask::get(PLACE)).await?;
        bench.record(subject, &format!("list {size} objects"), milliseconds(took), "ms", Better::Lower);
        let memory = megabytes(server.usage()?.memory);
        bench.record(subject, &format!("memory with {size} objects"), memory, "MB", Better::Lower);
        there = size;
    }
    Ok(())
}

fn name(stem: &str, number: usize) -> String {
    format!("{stem}-{number:06}")
}

/// A ConfigMap of half a kilobyte.
fn create(stem: &str, number: usize) -> Ask {
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"payload":"{}"}}}}"#,
        name(stem, number),
        "x".repeat(400)
    );
    Ask::post(PLACE, body)
}

fn apply(stem: &str, number: usize) -> Ask {
    let name = name(stem, number);
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"applied":"{number}"}}}}"#
    );
    Ask::apply(format!("{PLACE}/{name}?fieldManager=bench"), body)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
