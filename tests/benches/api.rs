//! The API: how fast it is ready, and creates, gets, applies, lists and watches per second, ours beside the reference's.
//!
//! The same client, the same work: ConfigMaps of half a kilobyte, 16 requests at a time. The reference syncs to disk and
//! speaks TLS; ours is in memory, in process and over plain TCP: first figures, and not yet a like-for-like comparison.

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use std::collections::BTreeMap;
use windlass_harness::Reference;
use windlass_harness::bench::{Bench, Better};
use windlass_tests::grounds;

const OBJECTS: usize = 2000;
const AT_A_TIME: usize = 16;
const TURNS: usize = 3;
const SUBJECTS: [&str; 3] = ["windlass in process", "windlass over TCP", "reference"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let with_reference = windlass_harness::reference::programs();
    let mut bench = Bench::start("api", &SUBJECTS);
    if let Err(error) = &with_reference {
        bench.note(&format!("{error}"));
    }
    for turn in 1..=TURNS {
        for subject in SUBJECTS {
            if subject == "reference" && with_reference.is_err() {
                continue;
            }
            bench.progress(&format!("turn {turn} of {TURNS}: {subject}"));
            turn_of(&mut bench, subject).await.with_context(|| format!("measuring {subject}"))?;
        }
    }
    Ok(bench.finish()?)
}

async fn turn_of(bench: &mut Bench, subject: &'static str) -> anyhow::Result<()> {
    // Whatever a subject consists of stays alive until it was measured.
    let (started, ready) = match subject {
        "reference" => {
            let (reference, took) = bench.timed(Reference::builder().durable().without_audit().start()).await;
            let reference = reference?;
            let client = reference.client().await?;
            (Started { client, _reference: Some(reference), _embedded: None }, took)
        }
        "windlass over TCP" => {
            let (embedded, took) = bench.timed(grounds::Embedded::over_tcp()).await;
            let embedded = embedded?;
            (Started { client: embedded.client(), _reference: None, _embedded: Some(embedded) }, took)
        }
        _ => {
            let (embedded, took) = bench.timed(async { grounds::Embedded::in_process() }).await;
            (Started { client: embedded.client(), _reference: None, _embedded: Some(embedded) }, took)
        }
    };
    bench.record(subject, "server ready", ready.as_secs_f64() * 1e3, "ms", Better::Lower);
    measure(bench, subject, started.client.clone()).await
}

struct Started {
    client: kube::Client,
    _reference: Option<Reference>,
    _embedded: Option<grounds::Embedded>,
}

async fn measure(bench: &mut Bench, subject: &str, client: kube::Client) -> anyhow::Result<()> {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("bench".into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let api: Api<ConfigMap> = Api::namespaced(client, "bench");

    let watch = api.watch(&WatchParams::default().timeout(120), "0").await?;
    let watching = tokio::spawn(async move {
        let added = watch.try_filter(|event| std::future::ready(matches!(event, WatchEvent::Added(_))));
        added.take(OBJECTS).try_fold(0_usize, |count, _| async move { Ok(count + 1) }).await
    });
    let (created, took) = bench
        .timed(
            stream::iter(0..OBJECTS)
                .map(|number| {
                    let api = api.clone();
                    async move { api.create(&PostParams::default(), &object(number)).await.map(drop) }
                })
                .buffer_unordered(AT_A_TIME)
                .try_collect::<Vec<()>>(),
        )
        .await;
    created?;
    bench.record(subject, "create", rate(took), "/s", Better::Higher);
    let (seen, rest) = bench.timed(watching).await;
    anyhow::ensure!(seen?? == OBJECTS, "the watch lost events");
    bench.record(subject, "create and see it in a watch", rate(took + rest), "/s", Better::Higher);

    let (got, took) = bench
        .timed(
            stream::iter(0..OBJECTS)
                .map(|number| {
                    let api = api.clone();
                    async move { api.get(&name(number)).await.map(drop) }
                })
                .buffer_unordered(AT_A_TIME)
                .try_collect::<Vec<()>>(),
        )
        .await;
    got?;
    bench.record(subject, "get", rate(took), "/s", Better::Higher);

    let (applied, took) = bench
        .timed(
            stream::iter(0..OBJECTS)
                .map(|number| {
                    let api = api.clone();
                    let intent = serde_json::json!({
                        "apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": name(number)}, "data": {"applied": number.to_string()},
                    });
                    async move {
                        api.patch(&name(number), &PatchParams::apply("bench"), &Patch::Apply(intent))
                            .await
                            .map(drop)
                    }
                })
                .buffer_unordered(AT_A_TIME)
                .try_collect::<Vec<()>>(),
        )
        .await;
    applied?;
    bench.record(subject, "server-side apply", rate(took), "/s", Better::Higher);

    let (list, took) = bench.timed(api.list(&ListParams::default())).await;
    anyhow::ensure!(list?.items.len() == OBJECTS, "the list is short");
    bench.record(subject, &format!("list {OBJECTS}"), took.as_secs_f64() * 1e3, "ms", Better::Lower);
    Ok(())
}

fn rate(took: std::time::Duration) -> f64 {
    OBJECTS as f64 / took.as_secs_f64()
}

fn name(number: usize) -> String {
    format!("object-{number:05}")
}

/// A ConfigMap of half a kilobyte.
fn object(number: usize) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name(number)), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("payload".to_owned(), "x".repeat(400))])),
        ..ConfigMap::default()
    }
}
