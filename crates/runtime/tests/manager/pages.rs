//! What a manager shows of itself: metrics, probes, and what is awaited.

use crate::support::{Running, Why, cluster, has_secret, make, mirror, until};
use k8s_openapi::api::core::v1::ConfigMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass::clock::Clock;
use windlass::election::Election;
use windlass::inspect::Inspector;
use windlass::metrics::Type;
use windlass::{Action, Bind, Controller, Manager, Plan};

fn anywhere() -> Bind {
    "127.0.0.1:0".parse().unwrap()
}

/// The status and the body of an answer.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The value of a sample: its name with its labels as printed.
fn value(page: &str, sample: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

async fn is_ready(inspector: &Inspector) {
    until("the manager is ready", async || inspector.ready().is_fine()).await;
}

#[tokio::test]
async fn a_manager_is_measured_under_the_names_that_dashboards_know() {
    let (_api, client) = cluster();
    for name in ["a", "b", "panics", "waits", "unwanted"] {
        make(&client, name).await;
    }
    let manager = Manager::new(client.clone(), Clock::real())
        .controller(mirror().concurrency(3))
        .leader_election(Election::new("default", "mirror"))
        .serve_metrics(anywhere())
        .metrics(|page| {
            page.family("shop_open", Type::Gauge, "Whether it is open.").sample(&[], 1.0);
        })
        .measures(|maps: &[Arc<ConfigMap>], page| {
            page.family("shop_shelves", Type::Gauge, "How many there are.").sample(&[], maps.len() as f64);
        });
    let inspector = manager.inspector();
    let running = Running::start(manager);
    until("the secrets are made", async || has_secret(&client, "a").await && has_secret(&client, "b").await)
        .await;
    until("every object had its reconcile", async || {
        let page = inspector.metrics();
        value(&page, "workqueue_work_duration_seconds_count{name=\"mirror\",controller=\"mirror\"}")
            >= Some(5.0)
            && value(&page, "controller_runtime_reconcile_panics_total{controller=\"mirror\"}") >= Some(1.0)
    })
    .await;
    let (code, page) = get(inspector.served().metrics.unwrap(), "/metrics").await;
    assert_eq!(code, 200);
    for (sample, least) in [
        ("shop_shelves", 5.0),
        ("controller_runtime_reconcile_total{controller=\"mirror\",result=\"success\"}", 2.0),
        ("controller_runtime_reconcile_total{controller=\"mirror\",result=\"error\"}", 1.0),
        ("controller_runtime_reconcile_total{controller=\"mirror\",result=\"requeue_after\"}", 0.0),
        ("controller_runtime_reconcile_errors_total{controller=\"mirror\"}", 1.0),
        ("controller_runtime_terminal_reconcile_errors_total{controller=\"mirror\"}", 0.0),
        ("controller_runtime_reconcile_timeouts_total{controller=\"mirror\"}", 0.0),
        ("controller_runtime_reconcile_time_seconds_bucket{controller=\"mirror\",le=\"60\"}", 3.0),
        ("controller_runtime_reconcile_time_seconds_count{controller=\"mirror\"}", 3.0),
        ("controller_runtime_max_concurrent_reconciles{controller=\"mirror\"}", 3.0),
        ("controller_runtime_active_workers{controller=\"mirror\"}", 0.0),
        ("workqueue_depth{name=\"mirror\",controller=\"mirror\",priority=\"0\"}", 0.0),
        ("workqueue_adds_total{name=\"mirror\",controller=\"mirror\"}", 5.0),
        ("workqueue_retries_total{name=\"mirror\",controller=\"mirror\"}", 1.0),
        ("workqueue_unfinished_work_seconds{name=\"mirror\",controller=\"mirror\"}", 0.0),
        ("workqueue_longest_running_processor_seconds{name=\"mirror\",controller=\"mirror\"}", 0.0),
        (
            "workqueue_queue_duration_seconds_bucket{name=\"mirror\",controller=\"mirror\",le=\"9.999999999999999e-06\"}",
            0.0,
        ),
        ("workqueue_work_duration_seconds_bucket{name=\"mirror\",controller=\"mirror\",le=\"+Inf\"}", 5.0),
        ("rest_client_requests_total{code=\"200\",method=\"GET\",host=\"given\"}", 2.0),
        ("rest_client_requests_total{code=\"201\",method=\"PATCH\",host=\"given\"}", 2.0),
        ("leader_election_master_status{name=\"default/mirror\"}", 1.0),
        ("windlass_cache_objects{group=\"\",version=\"v1\",kind=\"ConfigMap\",scope=\"everywhere\"}", 5.0),
        ("windlass_cache_bytes{group=\"\",version=\"v1\",kind=\"ConfigMap\",scope=\"everywhere\"}", 500.0),
        ("shop_open", 1.0),
    ] {
        let found = value(&page, sample);
        assert!(found >= Some(least), "{sample} is {found:?}, and {least} at least was expected:\n{page}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn the_page_is_one_that_prometheus_reads() {
    let (_api, client) = cluster();
    make(&client, "a").await;
    let manager = Manager::new(client.clone(), Clock::real()).controller(mirror());
    let inspector = manager.inspector();
    let running = Running::start(manager);
    until("the secret is made", async || has_secret(&client, "a").await).await;
    let page = inspector.metrics();
    let mut families = Vec::new();
    for line in page.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(!families.contains(&name), "{name} twice");
            families.push(name);
        } else if !line.starts_with('#') {
            let (sample, number) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let family = families.last().unwrap();
            let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{name} is not in {family}"));
            assert!(["", "_bucket", "_sum", "_count"].contains(&suffix), "{line}");
            number.parse::<f64>().unwrap();
        }
    }
    assert!(families.len() >= 17, "{families:?}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_manager_is_ready_when_its_caches_are_full_and_says_what_is_missing() {
    let (_api, client) = cluster();
    let manager = Manager::new(client, Clock::real())
        .controller(mirror())
        .serve_health(anywhere())
        .healthz_check("disk", || Err("the disk\nis full".to_owned()));
    let inspector = manager.inspector();
    assert!(!inspector.ready().is_fine());
    let running = Running::start(manager);
    is_ready(&inspector).await;
    let address = inspector.served().health.unwrap();
    assert_eq!(get(address, "/readyz").await, (200, "ok".to_owned()));
    let (code, text) = get(address, "/readyz?verbose").await;
    assert_eq!(
        (code, text.as_str()),
        (200, "[+]ping ok\n[+]cache/configmap ok\n[+]cache/secret ok\nreadyz check passed\n")
    );
    let (code, text) = get(address, "/healthz").await;
    assert_eq!(
        (code, text.as_str()),
        (500, "[+]ping ok\n[-]disk failed: the disk is full\nhealthz check failed\n")
    );
    assert_eq!(get(address, "/metrics").await.0, 404, "that is served elsewhere");
    running.stop().await.unwrap();
    assert_eq!(inspector.served().health, None);
    assert!(TcpStream::connect(address).await.is_err(), "the server outlived its manager");
}

#[tokio::test]
async fn what_is_awaited_and_why_is_told() {
    let (_api, client) = cluster();
    for name in ["waits", "unwanted", "panics"] {
        make(&client, name).await;
    }
    let manager = Manager::new(client.clone(), Clock::real()).controller(mirror()).serve_metrics(anywhere());
    let inspector = manager.inspector();
    let running = Running::start(manager);
    until("all three are known", async || inspector.debug()["controllers"][0]["awaitedInAll"] == 3).await;
    let address = inspector.served().metrics.unwrap();
    let (_, text) = get(address, "/debug").await;
    let debug: serde_json::Value = serde_json::from_str(&text).unwrap();
    let awaited = debug["controllers"][0]["awaited"].as_array().unwrap();
    let of = |name: &str| {
        let found = awaited.iter().find(|one| one["object"] == format!("default/{name}"));
        let found = found.unwrap_or_else(|| panic!("{name} is not told of: {debug:#}"));
        [found["state"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned()]
    };
    assert_eq!(of("waits"), ["waiting", "WaitsForPatience"]);
    assert_eq!(of("unwanted"), ["refused", "Unwanted"]);
    assert_eq!(of("panics"), ["failing", "Panicked"]);
    assert_eq!(debug["caches"][0]["kind"], "ConfigMap");
    let (_, text) = get(address, "/debug?kind=configmaps&namespace=default&name=waits").await;
    let one: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(one[0]["awaited"]["message"], "waits for patience");
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(client, "default");
    maps.delete("waits", &Default::default()).await.unwrap();
    until("who is gone awaits nothing", async || {
        inspector.object("ConfigMap", Some("default"), "waits")[0]["awaited"].is_null()
    })
    .await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_flood_of_connections_is_bounded_and_the_rest_wait() {
    let (_api, client) = cluster();
    let manager = Manager::new(client, Clock::real()).controller(mirror()).serve_health(anywhere());
    let inspector = manager.inspector();
    let running = Running::start(manager);
    is_ready(&inspector).await;
    let address = inspector.served().health.unwrap();
    // They hold their places and say nothing.
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let waiting = tokio::spawn(async move { get(address, "/healthz").await });
    let clock = Clock::real();
    clock.sleep(std::time::Duration::from_millis(100)).await;
    assert!(!waiting.is_finished(), "a place too many");
    drop(silent);
    let answered = clock.timeout(std::time::Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert_eq!(answered.0, 200);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let (_api, client) = cluster();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let manager = Manager::new(client, Clock::real()).controller(mirror()).serve_metrics(Bind::At(address));
    let error = Running::start(manager).ended().await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn what_actions_are_at_is_told_and_not_what_they_brought_back() {
    let (_api, client) = cluster();
    make(&client, "a").await;
    let backup = Controller::deciding(|_: &ConfigMap, observed| {
        let plan = match observed.action("backup", "1")?.is_done() {
            true => Plan::new(),
            false => Plan::waiting(Why::WaitsForPatience),
        };
        Ok(plan.action(Action::new("backup", "1"), Why::Mirrors))
    });
    let backup = backup.named("backup").action("backup", |_, _, _| async { Ok("hunter2") });
    let manager = Manager::new(client, Clock::real()).controller(backup);
    let inspector = manager.inspector();
    let running = Running::start(manager);
    // There are other ConfigMaps, which a cluster has from the start.
    until("the backup is done", async || {
        let debug = inspector.debug();
        let mut actions = debug["controllers"][0]["actions"].as_array().into_iter().flatten();
        let ours = actions.find(|one| one["object"] == "default/a" && one["key"] == "1");
        ours.is_some_and(|one| one["action"] == "backup" && one["outcome"]["done"]["at"].is_string())
    })
    .await;
    assert!(!inspector.debug().to_string().contains("hunter2"));
    running.stop().await.unwrap();
}
