//! An API in a directory: what was answered is there after a restart, and after the process was killed.

use crate::support::{Client, DEFINITIONS, MAPS, WIDGETS, widget, widgets};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use windlass_apiserver::store::{Body, Change, Key, OpenError, Options, Store};
use windlass_apiserver::{Api, Config};
use windlass_clock::Clock;

async fn open(directory: &Path) -> Client {
    let config = Config { data_dir: Some(directory.to_owned()), ..Config::default() };
    Client { api: Api::open(config).await.unwrap() }
}

#[tokio::test]
async fn everything_is_there_again_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let client = open(directory.path()).await;
    let default = client.get("/api/v1/namespaces/default").await.expect(200);
    client.post(DEFINITIONS, widgets()).await.expect(201);
    let made = client.post(WIDGETS, widget("a", json!({"size": 2}))).await.expect(201);
    client.post(MAPS, json!({"metadata": {"name": "gone"}})).await.expect(201);
    client.delete(&format!("{MAPS}/gone")).await.expect(200);
    let before = client.api.store().revision();
    drop(client);

    let client = open(directory.path()).await;
    assert_eq!(client.api.store().revision(), before, "nothing is written by opening it");
    assert_eq!(client.get("/api/v1/namespaces/default").await.expect(200), default);
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.expect(200), made);
    client.get(&format!("{MAPS}/gone")).await.refused(404, "configmaps \"gone\" not found");
    let next = client.post(WIDGETS, widget("b", json!({}))).await.expect(201);
    assert_eq!(next["spec"]["size"], json!(3), "the definition's schema is in force again");
    assert_eq!(next["metadata"]["resourceVersion"], json!((before.0 + 1).to_string()));
    let old =
        client.get(&format!("{WIDGETS}?watch=true&resourceVersion={}&timeoutSeconds=1", before.0 - 1)).await;
    assert!(old.body.to_string().contains("too old resource version"), "{}", old.body);

    client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.expect(200);
    drop(client);
    let client = open(directory.path()).await;
    assert_eq!(client.get(WIDGETS).await.code, 404);
    assert_eq!(client.get(DEFINITIONS).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn a_definition_is_served_even_if_its_writer_left_before_the_answer() {
    let directory = tempfile::tempdir().unwrap();
    let client = open(directory.path()).await;
    let left = client.api.clock().timeout(Duration::ZERO, client.post(DEFINITIONS, widgets())).await;
    assert!(left.is_err(), "the disk was asked before it could answer");
    for _ in 0..500 {
        if client.get(WIDGETS).await.code == 200 {
            return;
        }
        client.api.clock().sleep(Duration::from_millis(10)).await;
    }
    panic!("the definition never came to be served");
}

#[test]
fn a_directory_belongs_to_one_store_at_a_time_and_to_one_user() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a").join("b");
    let open = || Store::open(&place, Options::default(), Clock::real());
    let store = open().unwrap();
    let refused = open().unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }));
    assert!(refused.to_string().contains("is in use by another process"), "{refused}");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(put(&store, "k", 1));
    drop(store);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o700);
        for file in place.read_dir().unwrap() {
            assert_eq!(mode(&file.unwrap().path()), 0o600);
        }
    }
    assert_eq!(counters(&open().unwrap())["k"], 1);
}

#[test]
fn what_is_no_directory_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = Store::open(file.path(), Options::default(), Clock::real()).unwrap_err();
    assert!(matches!(refused, OpenError::Disk { .. }), "{refused}");
}

/// Sets a counter, and returns the revision that did.
async fn put(store: &Store, name: &str, count: u64) -> u64 {
    let key = Key::new("configmaps", "", name);
    let value = json!({"metadata": {"name": name}, "count": count, "filler": "x".repeat(20_000)});
    let body = Body::encode(&value, vec![]);
    let change = match store.get(&key) {
        None => Change::Create { key, body },
        Some(found) => Change::Update { key, expected: found.revision(), body },
    };
    store.commit(change).await.unwrap().revision().0
}

fn counters(store: &Store) -> BTreeMap<String, u64> {
    let page = store.list(&windlass_apiserver::store::ListQuery::all("configmaps")).unwrap();
    let count = |value: &Value| value["count"].as_u64().unwrap();
    page.items.iter().map(|entry| (entry.key().name.to_string(), count(&entry.value()))).collect()
}

const DIRECTORY: &str = "WINDLASS_KILLED_STORE";
const WRITERS: usize = 8;

/// The process that is killed: counts, and tells of each number once it is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "only a part of the next test, which starts it in a process of its own"]
async fn counts_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = Store::open(Path::new(&directory), Options::default(), Clock::real()).unwrap();
    let start = counters(&store);
    let count = |name: String| {
        let (store, start) = (store.clone(), start.get(&name).copied().unwrap_or(0));
        tokio::spawn(async move {
            for count in start + 1.. {
                let revision = put(&store, &name, count).await;
                println!("acknowledged {name} {count} {revision}");
            }
        })
    };
    let tasks: Vec<_> = (0..WRITERS).map(|writer| count(format!("w{writer}"))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn what_a_killed_process_acknowledged_is_there() {
    const ROUNDS: usize = 6;
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut revision = 1;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "durable::counts_until_it_is_killed",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        let mut lines = told.lines();
        let mut seen = 0;
        // It is killed in the middle of something, after a number of answers that differs from round to round.
        for line in &mut lines {
            seen += note(&line.unwrap(), &mut acknowledged, &mut revision);
            if seen == 100 + 150 * round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 100, "it wrote something before it was killed");
        let store = Store::open(directory.path(), Options::default(), Clock::real()).unwrap();
        assert!(store.revision().0 >= revision);
        let found = counters(&store);
        for (name, count) in &acknowledged {
            let found = found[name];
            assert!(found == *count || found == count + 1, "{name}: {count} acknowledged, {found} found");
        }
        acknowledged = found;
    }
}

/// Takes note of one line; says how many acknowledgements it held. The last line may have been cut off by the kill.
fn note(line: &str, acknowledged: &mut BTreeMap<String, u64>, revision: &mut u64) -> usize {
    let words: Vec<&str> = line.split(' ').collect();
    let ["acknowledged", name, count, made] = words[..] else { return 0 };
    let (Ok(count), Ok(made)) = (count.parse::<u64>(), made.parse::<u64>()) else { return 0 };
    let highest = acknowledged.entry(name.to_owned()).or_default();
    *highest = count.max(*highest);
    *revision = made.max(*revision);
    1
}
