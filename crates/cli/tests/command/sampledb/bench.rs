//! `make bench-sampledb`: how long a SampleDB takes to be created, to fail over and to switch over, and what it costs at rest; on
//! the embedded cluster, and on the reference with our node. Built as tests are, without optimizations: nearly all of it is
//! PostgreSQL's time and waiting.

use super::place::{Place, agents, cannot_run_postgres, first_process};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::ListParams;
use nix::sys::signal::{Signal, kill};
use sampledb_operator::api::v1alpha1::{SampleDB, SampleDBInstance};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_harness::bench::{Bench, Better};
use windlass_harness::process::Usage;

const EMBEDDED: &str = "embedded";
const REFERENCE: &str = "reference";
/// How often each of them is measured, unless `WINDLASS_ROUNDS` says it.
const FAILOVERS: usize = 10;
const SWITCHOVERS: usize = 5;
/// How long it is looked at while nothing happens.
const REST: Duration = Duration::from_secs(30);

#[tokio::test]
#[ignore = "a bench: make bench-sampledb"]
async fn bench() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let mut bench = Bench::start("sampledb", &[EMBEDDED, REFERENCE]);
    measure(&mut bench, EMBEDDED, Place::start().await).await;
    if let Some(place) = Place::on_the_reference().await {
        measure(&mut bench, REFERENCE, place).await;
    }
    bench.note("three instances, a Lease of 5 s, writers connected to every instance; built as tests are");
    bench.finish().unwrap();
}

async fn measure(bench: &mut Bench, subject: &str, place: Place) {
    let clock = place.world.clock.clone();
    bench.progress(&format!("{subject}: creation"));
    let began = clock.moment();
    place.create("ledger", json!({"instances": 3})).await;
    place.until("ledger", "it takes writes", || async { place.primary("ledger").await.is_some() }).await;
    let mut record =
        |metric: &str, value: f64, unit: &str| bench.record(subject, metric, value, unit, Better::Lower);
    record("created until it takes writes", seconds(clock.moment() - began), "s");
    place.is_ready("ledger").await;
    record("created until all instances are ready", seconds(clock.moment() - began), "s");
    rest(bench, subject, &place).await;

    place.begin_to_write("ledger").await;
    let rounds = std::env::var("WINDLASS_ROUNDS").ok();
    let rounds = rounds.map_or(FAILOVERS, |rounds| rounds.parse().expect("WINDLASS_ROUNDS is a number"));
    for (metric, destroys) in [("end reported", false), ("end not reported", true)] {
        let mut took = Vec::new();
        for round in 0..rounds {
            bench.progress(&format!("{subject}: failover, {metric}, {} of {rounds}", round + 1));
            let primary = place.primary("ledger").await.unwrap();
            let process = first_process(&primary).unwrap();
            let began = clock.moment();
            match destroys {
                true => place.destroy(&primary).await,
                false => kill(process, Signal::SIGKILL).unwrap(),
            }
            // Until the kubelet has ended it, a primary whose pod is deleted goes on.
            place.until("ledger", "its server has ended", || async { kill(process, None).is_err() }).await;
            let before = place.acknowledged().await;
            place
                .until("ledger", "it is written again", || async { place.acknowledged().await > before + 3 })
                .await;
            took.push(clock.moment() - began);
            place.start_anew_if_it_waits(&primary).await;
            place.is_ready("ledger").await;
        }
        took.sort();
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            // Of fewer than a hundred the p99 is the longest.
            let took = seconds(took[(took.len() * percent / 100).min(took.len() - 1)]);
            bench.record(
                subject,
                &format!("failover, {metric}: {name} of {rounds}"),
                took,
                "s",
                Better::Lower,
            );
        }
    }
    for round in 0..SWITCHOVERS {
        bench.progress(&format!("{subject}: switchover, {} of {SWITCHOVERS}", round + 1));
        let began = clock.moment();
        place.sampledb(&["switchover", "ledger"]).await;
        bench.record(subject, "switchover, by command", seconds(clock.moment() - began), "s", Better::Lower);
        place.is_ready("ledger").await;
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// What is written and used while nothing happens.
async fn rest(bench: &mut Bench, subject: &str, place: &Place) {
    bench.progress(&format!("{subject}: at rest, {} s", REST.as_secs()));
    let (objects, renewals) = (place.versions().await, place.versions_of::<Lease>().await);
    let usage = |agents: &[u32]| -> Vec<Usage> { agents.iter().copied().filter_map(Usage::of).collect() };
    let agents = agents("ledger");
    let before = usage(&agents);
    let mut renewed = 0_u32;
    let mut last = renewals;
    let began = place.world.clock.moment();
    while place.world.clock.moment() - began < REST {
        place.world.clock.sleep(Duration::from_millis(200)).await;
        let now = place.versions_of::<Lease>().await;
        renewed += u32::from(now != last);
        last = now;
    }
    let after = usage(&agents);
    let later = place.versions().await;
    let written = later.iter().filter(|(name, version)| objects.get(*name) != Some(*version)).count();
    let mut record =
        |metric: &str, value: f64, unit: &str| bench.record(subject, metric, value, unit, Better::Lower);
    record("at rest: objects written, beside the Lease", written as f64, "");
    record("at rest: renewals of the Lease in a minute", f64::from(renewed) * 60.0 / REST.as_secs_f64(), "");
    let cpu = |all: &[Usage]| all.iter().map(|one| one.cpu).sum::<Duration>();
    let used = cpu(&after).saturating_sub(cpu(&before));
    record("at rest: processor, all agents", 100.0 * used.as_secs_f64() / REST.as_secs_f64(), "%");
    let memory: u64 = after.iter().map(|one| one.memory).sum();
    record("at rest: memory, all agents and watchdogs", memory as f64 / f64::from(1 << 20), "MiB");
}

impl Place {
    /// The versions of everything of a database that the operator or its agents write, beside the Lease.
    async fn versions(&self) -> BTreeMap<String, Option<String>> {
        let mut versions = self.versions_of::<SampleDB>().await;
        versions.extend(self.versions_of::<SampleDBInstance>().await);
        versions.extend(self.versions_of::<StatefulSet>().await);
        versions.extend(self.versions_of::<Secret>().await);
        versions.extend(self.versions_of::<Service>().await);
        versions.extend(self.versions_of::<EndpointSlice>().await);
        versions.extend(self.versions_of::<Event>().await);
        versions
    }

    async fn versions_of<K>(&self) -> BTreeMap<String, Option<String>>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let all = self.world.api::<K>().list(&ListParams::default()).await.unwrap();
        all.iter()
            .map(|one| (format!("{}/{}", K::kind(&()), one.name_any()), one.resource_version()))
            .collect()
    }
}
