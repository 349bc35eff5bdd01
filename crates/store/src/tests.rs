//! The store's laws, over random histories and under many threads.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

fn store(options: Options) -> Arc<Store> {
    Store::new(options, Clock::real())
}

fn key(namespace: &str, name: &str) -> Key {
    Key::new("configmaps", namespace, name)
}

fn body(key: &Key, data: u64) -> Body {
    let value = json!({
        "metadata": {"name": &*key.name, "namespace": &*key.namespace, "labels": {"parity": (data % 2).to_string()}},
        "data": data,
    });
    Body::encode(&value, vec![])
}

/// Creates, replaces or deletes, whatever is possible.
async fn put(store: &Store, key: &Key, data: Option<u64>) -> Option<Arc<Entry>> {
    let change = match (store.get(key), data) {
        (None, None) => return None,
        (None, Some(data)) => Change::Create { key: key.clone(), body: body(key, data) },
        (Some(found), Some(data)) => {
            Change::Update { key: key.clone(), expected: found.revision(), body: body(key, data) }
        }
        (Some(found), None) => Change::Delete { key: key.clone(), expected: found.revision() },
    };
    store.commit(change).await.ok()
}

type Contents = BTreeMap<(String, String), (u64, serde_json::Value)>;

fn put_into(contents: &mut Contents, entry: &Entry) {
    let key = (entry.key().namespace.to_string(), entry.key().name.to_string());
    contents.insert(key, (entry.revision().0, entry.value()));
}

fn contents(page: &Page) -> Contents {
    let mut contents = Contents::new();
    page.items.iter().for_each(|entry| put_into(&mut contents, entry));
    contents
}

fn list_at(store: &Store, namespace: Option<&str>, at: At) -> Result<Page, Compacted> {
    store.list(&ListQuery { namespace, at, ..ListQuery::all("configmaps") })
}

/// Applies what a watcher has to say to `contents`.
fn follow(watcher: &mut Watcher, contents: &mut Contents) -> Vec<Revision> {
    let mut seen = vec![];
    while let Some(event) = watcher.try_next().unwrap() {
        let key = (event.entry.key().namespace.to_string(), event.entry.key().name.to_string());
        let before = contents.get(&key).map(|(revision, _)| *revision);
        assert_eq!(before, event.before.as_ref().map(|before| before.revision().0));
        match event.kind {
            Kind::Deleted => drop(contents.remove(&key)),
            _ => put_into(contents, &event.entry),
        }
        seen.push(event.revision());
    }
    seen
}

fn history() -> impl Strategy<Value = Vec<(usize, usize, Option<u64>)>> {
    prop::collection::vec((0..3_usize, 0..4_usize, prop::option::weighted(0.7, 0..5_u64)), 1..60)
}

const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];
const NAMES: [&str; 4] = ["k", "l.m", "m", "n"];

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn a_list_and_a_watch_from_its_version_equal_a_later_list(history in history(), cut in 0..60_usize) {
        block_on(async {
            let store = store(Options::default());
            let cut = cut.min(history.len());
            for (namespace, name, data) in &history[..cut] {
                put(&store, &key(NAMESPACES[*namespace], NAMES[*name]), *data).await;
            }
            for namespace in [None, Some("a"), Some("a-b")] {
                let page = list_at(&store, namespace, At::Latest).unwrap();
                let mut watcher = store.watch("configmaps", namespace, page.revision).unwrap();
                let mut seen = contents(&page);
                for (namespace, name, data) in &history[cut..] {
                    put(&store, &key(NAMESPACES[*namespace], NAMES[*name]), *data).await;
                }
                follow(&mut watcher, &mut seen);
                assert_eq!(watcher.progress(), store.revision());
                assert_eq!(seen, contents(&list_at(&store, namespace, At::Latest).unwrap()));
            }
        });
    }

    #[test]
    fn every_version_reads_as_it_was_until_it_is_compacted(history in history(), cut in 0..60_u64) {
        block_on(async {
            let store = store(Options::default());
            let mut states = vec![(store.revision(), Contents::new())];
            for (namespace, name, data) in &history {
                put(&store, &key(NAMESPACES[*namespace], NAMES[*name]), *data).await;
                let page = list_at(&store, None, At::Latest).unwrap();
                states.push((page.revision, contents(&page)));
            }
            let oldest = Revision(cut.min(store.revision().0));
            store.compact(oldest);
            for (revision, state) in states {
                let page = list_at(&store, None, At::Exact(revision));
                if revision < oldest {
                    assert_eq!(page.unwrap_err(), Compacted { oldest });
                    assert!(store.watch("configmaps", None, revision).is_err());
                    continue;
                }
                assert_eq!(contents(&page.unwrap()), state.clone());
                for ((namespace, name), (version, _)) in &state {
                    let found = store.get_at(&key(namespace, name), revision).unwrap().unwrap();
                    assert_eq!(found.revision().0, *version);
                }
                let mut seen = state;
                follow(&mut store.watch("configmaps", None, revision).unwrap(), &mut seen);
                assert_eq!(seen, contents(&list_at(&store, None, At::Latest).unwrap()));
            }
        });
    }

    #[test]
    fn pages_joined_are_the_whole_list(history in history(), limit in 1..6_usize, odd in any::<bool>()) {
        block_on(async {
            let store = store(Options::default());
            for (namespace, name, data) in &history {
                put(&store, &key(NAMESPACES[*namespace], NAMES[*name]), *data).await;
            }
            let accepts = |entry: &Entry| entry.label("parity") == Some("1");
            let filter: Option<&(dyn Fn(&Entry) -> bool + Sync)> = if odd { Some(&accepts) } else { None };
            for namespace in [None, Some("a")] {
                let whole = ListQuery { namespace, filter, ..ListQuery::all("configmaps") };
                let wanted = store.list(&whole).unwrap();
                let paths: Vec<_> = wanted.items.iter().map(|entry| entry.key().path()).collect();
                assert!(paths.is_sorted());
                let mut joined: Vec<Arc<Entry>> = vec![];
                loop {
                    let last = joined.last().cloned();
                    let after = last.as_ref().map(|last| (&*last.key().namespace, &*last.key().name));
                    let at = At::Exact(wanted.revision);
                    let page = store.list(&ListQuery { after, limit, at, ..whole }).unwrap();
                    joined.extend(page.items);
                    if let Some(remaining) = page.remaining {
                        assert_eq!(remaining, wanted.items.len() - joined.len());
                    }
                    if !page.more {
                        break;
                    }
                }
                let versions = |entries: &[Arc<Entry>]| entries.iter().map(|e| e.revision()).collect::<Vec<_>>();
                assert_eq!(versions(&joined), versions(&wanted.items));
            }
        });
    }

    #[test]
    fn no_forged_place_breaks_a_list(namespace in "[a-c/.0-]{0,3}", name in "[a-c/.0-]{0,3}") {
        block_on(async {
            let store = store(Options::default());
            put(&store, &key("a", "k"), Some(1)).await;
            for within in [None, Some("a"), Some("b")] {
                let query = ListQuery {
                    namespace: within,
                    after: Some((&namespace, &name)),
                    ..ListQuery::all("configmaps")
                };
                assert!(store.list(&query).unwrap().items.len() <= 1);
            }
        });
    }
}

#[tokio::test]
async fn an_update_that_changes_nothing_makes_no_revision() {
    let store = store(Options::default());
    let key = key("a", "k");
    let made = put(&store, &key, Some(1)).await.unwrap();
    let again = put(&store, &key, Some(1)).await.unwrap();
    assert!(Arc::ptr_eq(&made, &again));
    assert_eq!(store.revision(), made.revision());
    let stale = Change::Update { key: key.clone(), expected: Revision(1), body: body(&key, 1) };
    assert!(matches!(store.commit(stale).await, Err(CommitError::Conflict(_))));
}

#[tokio::test]
async fn a_deletion_shows_the_last_form_at_its_own_revision() {
    let store = store(Options::default());
    let key = key("a", "k");
    let made = put(&store, &key, Some(1)).await.unwrap();
    let gone = put(&store, &key, None).await.unwrap();
    assert_eq!(gone.revision().0, made.revision().0 + 1);
    assert_eq!(gone.value()["metadata"]["resourceVersion"], json!(gone.revision().to_string()));
    assert_eq!(made.value()["metadata"]["resourceVersion"], json!(made.revision().to_string()));
    assert!(store.get(&key).is_none());
    let made = put(&store, &key, Some(1)).await.unwrap();
    let gone = store.commit(Change::Delete { key: key.clone(), expected: made.revision() }).await.unwrap();
    assert_eq!(gone.value()["data"], json!(1));
    let missing = Change::Delete { key: key.clone(), expected: made.revision() };
    assert!(matches!(store.commit(missing).await, Err(CommitError::Missing)));
}

#[tokio::test]
async fn a_slow_watcher_is_cut_off_and_the_writer_is_not() {
    let store = store(Options { history_events: 8, ..Options::default() });
    let mut slow = store.watch("configmaps", None, store.revision()).unwrap();
    let mut namespaced = store.watch("configmaps", Some("b"), store.revision()).unwrap();
    for data in 0..100 {
        put(&store, &key("a", "k"), Some(data)).await.unwrap();
    }
    assert_eq!(slow.next().await.unwrap_err(), Lagged);
    // Nothing of its namespace was forgotten.
    assert_eq!(namespaced.try_next().unwrap().map(|event| event.revision()), None);
    assert_eq!(namespaced.progress(), store.revision());
    let mut quick = store.watch("configmaps", None, Revision(store.revision().0 - 8)).unwrap();
    for _ in 0..8 {
        quick.next().await.unwrap();
    }
    assert_eq!(quick.progress(), store.revision());
}

#[tokio::test]
async fn history_is_bounded_in_bytes_and_age() {
    let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    let options = Options { history_bytes: 10_000, ..Options::default() };
    let store = Store::new(options, clock);
    for data in 0..1000 {
        put(&store, &key("a", "k"), Some(data)).await.unwrap();
    }
    let kept = store.revision().0 - store.oldest("configmaps").0;
    assert!((10..100).contains(&kept), "{kept} events kept");
    driver.advance(Duration::from_secs(400));
    let aged = store.revision();
    store
        .commit(Change::Create { key: Key::new("secrets", "a", "s"), body: body(&key("a", "s"), 1) })
        .await
        .unwrap();
    assert_eq!(store.oldest("configmaps"), aged);
    assert_eq!(list_at(&store, None, At::Exact(aged)).unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_watcher_that_starts_in_the_future_sees_nothing_from_before_it() {
    let store = store(Options::default());
    let start = Revision(store.revision().0 + 2);
    let mut watcher = store.watch("configmaps", None, start).unwrap();
    for data in 0..4 {
        put(&store, &key("a", "k"), Some(data)).await.unwrap();
    }
    assert_eq!(watcher.next().await.unwrap().revision().0, start.0 + 1);
}

#[tokio::test]
async fn an_encoding_is_made_once_and_forms_are_bounded() {
    let store = store(Options::default());
    let entry = put(&store, &key("a", "k"), Some(1)).await.unwrap();
    let first = entry.encoding(&Form::new("f"), |_| "made".into());
    assert_eq!(first, entry.encoding(&Form::new("f"), |_| unreachable!("it was made already")));
    for form in 0..100 {
        entry.encoding(&Form::new(form.to_string()), |entry| entry.json());
    }
}

#[tokio::test]
async fn encodings_of_what_is_long_past_are_not_kept_and_made_again_for_who_asks() {
    let store = store(Options::default());
    let mut watcher = store.watch("configmaps", None, store.revision()).unwrap();
    let (form, name) = (Form::new("f"), key("a", "k"));
    put(&store, &name, Some(0)).await.unwrap();
    let first = watcher.next().await.unwrap();
    put(&store, &name, Some(1)).await.unwrap();
    let second = watcher.next().await.unwrap();
    second.encoding(&form, |_| "line".into());
    first.entry.encoding(&form, |_| "object".into());
    for data in 2..300 {
        put(&store, &name, Some(data)).await.unwrap();
    }
    assert_eq!(second.encoding(&form, |_| "line again".into()), "line again");
    assert_eq!(second.encoding(&form, |_| "and again".into()), "and again");
    assert_eq!(first.entry.encoding(&form, |_| "object again".into()), "object again");
}

#[tokio::test]
async fn who_waits_for_a_version_goes_on_when_it_is_there() {
    let store = store(Options::default());
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wait_for(Revision(3)).await }
    });
    for data in 0..2 {
        tokio::task::yield_now().await;
        put(&store, &key("a", "k"), Some(data)).await.unwrap();
    }
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn compare_and_swap_under_many_threads_loses_nothing_and_all_watchers_agree() {
    const TASKS: u64 = 8;
    const ADDITIONS: u64 = 200;
    let store = store(Options::default());
    let counter = key("a", "counter");
    put(&store, &counter, Some(0)).await.unwrap();
    let mut watchers: Vec<_> = (0..4)
        .map(|number| store.watch("configmaps", (number % 2 == 0).then_some("a"), store.revision()).unwrap())
        .collect();
    let mut tasks = vec![];
    for _ in 0..TASKS {
        let (store, counter) = (store.clone(), counter.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..ADDITIONS {
                loop {
                    let found = store.get(&counter).unwrap();
                    let data = found.value()["data"].as_u64().unwrap();
                    let body = body(&counter, data + 1);
                    let change = Change::Update { key: counter.clone(), expected: found.revision(), body };
                    if store.commit(change).await.is_ok() {
                        break;
                    }
                }
            }
        }));
    }
    let mut orders = vec![];
    for watcher in &mut watchers {
        let mut order = vec![];
        while order.len() < (TASKS * ADDITIONS) as usize {
            order.push(watcher.next().await.unwrap().revision());
        }
        orders.push(order);
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.get(&counter).unwrap().value()["data"], json!(TASKS * ADDITIONS));
    assert!(orders[0].is_sorted());
    assert!(orders.iter().all(|order| *order == orders[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_long_list_is_of_one_version_while_writers_go_on() {
    let store = store(Options { history_events: 500, ..Options::default() });
    for number in 0..6000 {
        put(&store, &key("a", &format!("k{number:05}")), Some(0)).await.unwrap();
    }
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            // The first and the last key change together, the last one first: no list may see it the other way round.
            for data in 1..2000 {
                put(&store, &key("a", "k05999"), Some(data)).await.unwrap();
                put(&store, &key("a", "k00000"), Some(data)).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    while !writer.is_finished() {
        let page = list_at(&store, None, At::Latest).unwrap();
        assert_eq!(page.items.len(), 6000);
        let data = |index: usize| page.items[index].value()["data"].as_u64().unwrap();
        let (first, last) = (data(0), data(5999));
        assert!(last == first || last == first + 1, "{first} and {last} of different versions");
    }
    writer.await.unwrap();
}
