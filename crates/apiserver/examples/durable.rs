//! Measures the store in a directory: `cargo run --release --example durable -- 100000` says how fast objects are made by
//! 16 tasks, in the store alone and through the API, and how long it takes to open what came of it.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tower::ServiceExt;
use windlass_apiserver::store::{Body, Change, Key, Options, Store};
use windlass_apiserver::{Api, Config, Identity};
use windlass_clock::Clock;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const TASKS: usize = 16;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let clock = Clock::real();
    let place = tempfile::Builder::new().prefix("windlass-durable").tempdir_in(".")?;

    let directory = place.path().join("alone");
    let store = Store::open(&directory, Options::default(), clock.clone())?;
    let (store_time, waits) =
        in_tasks(count, &clock, store.clone(), |store: Arc<Store>, number| async move {
            let name = format!("object-{number:07}");
            let body = Body::encode(&object(&name, true), vec![]);
            store.commit(Change::Create { key: Key::new("configmaps", "default", name), body }).await?;
            Ok(())
        })
        .await?;
    drop(store);
    println!("store: {}", rate(count, store_time, waits));
    measure_opening(&directory, &clock, "snapshot and log")?;

    let config = Config { data_dir: Some(place.path().join("api")), ..Config::default() };
    let api = Api::open(config.clone()).await?;
    let through = count.min(20_000);
    let (api_time, waits) = in_tasks(through, &clock, api.clone(), |api: Api, number| async move {
        let body = object(&format!("object-{number:07}"), false).to_string();
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let answer = api.service(Identity::admin()).oneshot(request).await?;
        let code = answer.status();
        answer.into_body().collect().await.map_err(|_| "the answer broke off")?;
        if code == 201 { Ok(()) } else { Err(format!("answered {code}").into()) }
    })
    .await?;
    println!("through the API, in process: {}", rate(through, api_time, waits));
    drop(api);
    let began = clock.moment();
    let api = Api::open(config).await?;
    println!("the API opened with {through} objects in {:?}", clock.moment() - began);
    drop(api);
    Ok(())
}

fn measure_opening(directory: &Path, clock: &Clock, what: &str) -> Result<(), Failure> {
    let mut bytes = 0;
    for file in directory.read_dir()? {
        bytes += file?.metadata()?.len();
    }
    for _ in 0..3 {
        let began = clock.moment();
        let store = Store::open(directory, Options::default(), clock.clone())?;
        let took = clock.moment() - began;
        let objects = store.list(&windlass_apiserver::store::ListQuery::all("configmaps"))?.items.len();
        println!("opened {objects} objects, {} MB of {what}, in {took:?}", bytes >> 20);
    }
    Ok(())
}

/// Half a kilobyte of data; and about what the API adds to it, if it does not come from there.
fn object(name: &str, whole: bool) -> serde_json::Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "measured"}},
        "data": {"key": "x".repeat(500)},
    });
    if whole {
        object["metadata"]["uid"] = json!("6f1c9f8e-7d6a-4d6e-9a43-0d8f4f0c2b11");
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["managedFields"] = json!([{
            "manager": "measuring", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {".": {}, "f:key": {}}, "f:metadata": {"f:labels": {}}},
        }]);
    }
    object
}

/// Runs `make` for every number, shared among the tasks; returns how long all took, and each.
async fn in_tasks<C, F>(
    count: usize,
    clock: &Clock,
    context: C,
    make: fn(C, usize) -> F,
) -> Result<(Duration, Vec<Duration>), Failure>
where
    C: Clone + Send + 'static,
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let began = clock.moment();
    let task = || {
        let (next, context, clock) = (next.clone(), context.clone(), clock.clone());
        tokio::spawn(async move {
            let mut waits = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<_, Failure>(waits);
                }
                let began = clock.moment();
                make(context.clone(), number).await?;
                waits.push(clock.moment() - began);
            }
        })
    };
    let tasks: Vec<_> = (0..TASKS).map(|_| task()).collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await??);
    }
    let took = clock.moment() - began;
    waits.sort();
    Ok((took, waits))
}

fn rate(count: usize, took: Duration, waits: Vec<Duration>) -> String {
    let at = |part: f64| waits.get((waits.len() as f64 * part) as usize).copied().unwrap_or_default();
    format!(
        "{count} made by {TASKS} tasks in {took:?}: {:.0}/s, half of them in {:?}, 99 of 100 in {:?}, all in {:?}",
        count as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99),
        waits.last().copied().unwrap_or_default(),
    )
}
