//! Lists and watches as clients see them.

use super::*;
use crate::status::Status;
use http_body_util::BodyExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_clock::{Clock, Driver};
use windlass_store::{Body, Change, Key, Options};

const RESOURCE: &str = "configmaps";

struct World {
    store: Arc<Store>,
    driver: Driver,
}

impl World {
    fn new() -> Self {
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
        Self { store: Store::new(Options::default(), clock), driver }
    }

    /// Creates or replaces an object with one label; returns its version.
    async fn put(&self, namespace: &str, name: &str, label: &str) -> u64 {
        let key = Key::new(RESOURCE, namespace, name);
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {"l": label}}});
        let body = Body::encode(&value, vec![]);
        let change = match self.store.get(&key) {
            None => Change::Create { key, body },
            Some(found) => Change::Update { key, expected: found.revision(), body },
        };
        self.store.commit(change).await.unwrap().revision().0
    }

    async fn delete(&self, namespace: &str, name: &str) -> u64 {
        let key = Key::new(RESOURCE, namespace, name);
        let expected = self.store.get(&key).unwrap().revision();
        self.store.commit(Change::Delete { key, expected }).await.unwrap().revision().0
    }

    async fn list(&self, scope: &Scope, query: &str) -> Result<Value, Status> {
        let body = list(&self.store, scope, &options(query).unwrap(), &view()).await?;
        Ok(serde_json::from_slice(&body.to_bytes()).unwrap())
    }

    async fn watch(&self, scope: &Scope, query: &str) -> Lines {
        self.watch_on(scope, query, WatchControl::default()).await
    }

    async fn watch_on(&self, scope: &Scope, query: &str, control: WatchControl) -> Lines {
        let options = options(&format!("watch=1&{query}")).unwrap();
        let body = watch(&self.store, scope.clone(), &options, Arc::new(view()), control).await.unwrap();
        Lines { body, buffered: vec![] }
    }
}

/// A watch, line by line in short: what happened to whom, at which version.
struct Lines {
    body: WatchBody,
    buffered: Vec<Value>,
}

impl Lines {
    /// The next line, `END` when there is none and `CUT` when it broke off.
    async fn next_value(&mut self) -> Value {
        if self.buffered.is_empty() {
            let bytes = match self.body.frame().await {
                None => return json!("END"),
                Some(Err(_)) => return json!("CUT"),
                Some(Ok(frame)) => frame.into_data().unwrap(),
            };
            self.buffered = bytes
                .split_inclusive(|byte| *byte == b'\n')
                .map(|line| serde_json::from_slice(line).unwrap())
                .collect();
        }
        self.buffered.remove(0)
    }

    async fn next(&mut self) -> String {
        let value = self.next_value().await;
        if let Some(end) = value.as_str() {
            return end.to_owned();
        }
        let metadata = &value["object"]["metadata"];
        let mut text = value["type"].as_str().unwrap().to_owned();
        for part in [&metadata["name"], &metadata["labels"]["l"], &metadata["resourceVersion"]] {
            if let Some(part) = part.as_str() {
                text.push(' ');
                text.push_str(part);
            }
        }
        if metadata["annotations"]["k8s.io/initial-events-end"] == json!("true") {
            text.push_str(" end");
        }
        text
    }

    /// Nothing comes now.
    async fn is_quiet(&mut self) {
        for _ in 0..16 {
            tokio::select! {
                biased;
                line = self.next() => panic!("{line}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}

fn options(query: &str) -> Result<ListOptions, Status> {
    ListOptions::parse(
        query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap()),
    )
}

fn view() -> View {
    View::stored("v1", "ConfigMap", "ConfigMapList", false)
}

fn everything() -> Scope {
    Scope::new(RESOURCE, None)
}

fn labelled(label: &'static str) -> Scope {
    everything().with_filter(Some(Arc::new(move |entry: &Entry| entry.label("l") == Some(label))))
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[test]
fn options_that_do_not_go_together_are_refused_in_the_words_of_the_reference() {
    for (query, code, message) in [
        ("limit=abc", 400, r#"strconv.ParseInt: parsing "abc": invalid syntax"#),
        (
            "timeoutSeconds=99999999999999999999",
            400,
            r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#,
        ),
        (
            "resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Foo&continue=abc",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided, resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"]",
        ),
        (
            "sendInitialEvents=true",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "watch=1&sendInitialEvents=abc",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "watch=1&resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]",
        ),
        (
            "watch=1&continue=abc",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
    ] {
        let status = options(query).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (code, message), "{query}");
    }
}

#[tokio::test]
async fn tokens_that_are_none_are_refused_in_the_words_of_the_reference() {
    use base64::Engine;
    let world = World::new();
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    for (token, message) in [
        ("abc".to_owned(), "invalid character 'i' looking for beginning of value"),
        ("!!!".to_owned(), "illegal base64 data at input byte 0"),
        (encode("{}"), "server does not recognize this encoded version "),
        (
            encode(r#"{"v":"meta.k8s.io/v2"}"#),
            "server does not recognize this encoded version meta.k8s.io/v2",
        ),
        (
            encode(r#"{"v":"meta.k8s.io/v1","start":"/c"}"#),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (encode(r#"{"v":"meta.k8s.io/v1","rv":5}"#), "encoded start key empty (version meta.k8s.io/v1)"),
        (encode(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"/../c1"}"#), "/../c1"),
        (
            encode(r#"{"v":"meta.k8s.io/v1","rv":"x"}"#),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
    ] {
        let status = world.list(&everything(), &format!("continue={token}")).await.unwrap_err();
        assert_eq!(status.message, format!("invalid continue token: continue key is not valid: {message}"));
        assert_eq!(status.code, 400);
    }
    let token = encode(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"/c1\u0000"}"#);
    let status = world.list(&everything(), &format!("resourceVersion=5&continue={token}")).await.unwrap_err();
    assert_eq!(status.message, "specifying resource version is not allowed when using continue");
}

#[tokio::test]
async fn a_list_says_what_it_is_and_its_items_do_not() {
    let world = World::new();
    let version = world.put("a", "x", "1").await;
    assert_eq!(
        world.list(&everything(), "").await.unwrap(),
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": version.to_string()},
            "items": [{"metadata": {"name": "x", "namespace": "a", "labels": {"l": "1"}, "resourceVersion": version.to_string()}}]})
    );
    let entry = world.store.get(&Key::new(RESOURCE, "a", "x")).unwrap();
    let typed = View::stored("g/v2", "Thing", "ThingList", true);
    let body = list(&world.store, &everything(), &ListOptions::default(), &typed).await.unwrap();
    let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    assert_eq!(
        (&body["items"][0]["apiVersion"], &body["items"][0]["kind"]),
        (&json!("g/v2"), &json!("Thing"))
    );
    let object: Value = serde_json::from_slice(&typed.object(&entry)).unwrap();
    assert_eq!(object, body["items"][0]);
    assert_eq!(view().object(&entry), entry.json());
    let none = world.list(&labelled("none"), "").await.unwrap();
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn pages_are_of_one_version_until_it_is_compacted() {
    let world = World::new();
    for (namespace, name) in [("a", "1"), ("a", "2"), ("a-b", "3"), ("b", "4")] {
        world.put(namespace, name, "x").await;
    }
    let first = world.list(&everything(), "limit=2").await.unwrap();
    assert_eq!(names(&first), ["3", "1"], "a-b comes before a");
    assert_eq!(first["metadata"]["remainingItemCount"], json!(2));
    world.put("a", "0", "x").await;
    world.put("c", "5", "x").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = world.list(&everything(), &format!("limit=2&continue={token}")).await.unwrap();
    assert_eq!(names(&second), ["2", "4"]);
    assert_eq!(second["metadata"].get("continue"), None);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);

    world.store.compact(world.store.revision());
    let expired = world.list(&everything(), &format!("limit=1&continue={token}")).await.unwrap_err();
    assert_eq!((expired.code, &*expired.reason), (410, "Expired"));
    let fresh = expired.to_value()["metadata"]["continue"].as_str().unwrap().to_owned();
    let inconsistent = world.list(&everything(), &format!("limit=2&continue={fresh}")).await.unwrap();
    assert_eq!(names(&inconsistent), ["2", "4"]);
    assert_eq!(inconsistent["metadata"]["remainingItemCount"], json!(1));
    let selected = world.list(&labelled("x"), "limit=1").await.unwrap();
    assert!(selected["metadata"].get("continue").is_some());
    assert!(selected["metadata"].get("remainingItemCount").is_none());
}

#[tokio::test]
async fn within_a_namespace_pages_go_on_within_it() {
    let world = World::new();
    for (namespace, name) in [("a", "1"), ("a", "2"), ("b", "3")] {
        world.put(namespace, name, "x").await;
    }
    let scope = Scope::new(RESOURCE, Some("a"));
    let first = world.list(&scope, "limit=1").await.unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = world.list(&scope, &format!("limit=1&continue={token}")).await.unwrap();
    assert_eq!(names(&second), ["2"]);
    assert_eq!(second["metadata"].get("continue"), None);
}

#[tokio::test]
async fn a_list_of_one_name_is_whole_and_a_watch_of_it_tells_of_no_other() {
    let world = World::new();
    for name in ["1", "2", "3"] {
        world.put("a", name, "x").await;
    }
    let scope = Scope::new(RESOURCE, Some("a")).with_name(Some("2"));
    let found = world.list(&scope, "limit=1").await.unwrap();
    assert_eq!(names(&found), ["2"]);
    assert_eq!(found["metadata"], json!({"resourceVersion": "4"}));
    let before = world.list(&scope, "resourceVersion=2&resourceVersionMatch=Exact").await.unwrap();
    assert_eq!(before["items"], json!([]));
    let mut lines = world.watch(&scope, "").await;
    assert_eq!(lines.next().await, "ADDED 2 x 3");
    world.put("a", "3", "y").await;
    world.put("a", "2", "y").await;
    assert_eq!(lines.next().await, "MODIFIED 2 y 6");
}

#[tokio::test]
async fn a_list_shows_the_version_it_was_asked_for() {
    let world = World::new();
    let first = world.put("a", "1", "x").await;
    let second = world.put("a", "2", "x").await;
    let exact = format!("resourceVersion={first}&resourceVersionMatch=Exact");
    assert_eq!(names(&world.list(&everything(), &exact).await.unwrap()), ["1"]);
    let legacy = format!("resourceVersion={first}&limit=5");
    assert_eq!(names(&world.list(&everything(), &legacy).await.unwrap()), ["1"]);
    for query in [String::new(), "resourceVersion=0&limit=1".into(), format!("resourceVersion={first}")] {
        assert_eq!(names(&world.list(&everything(), &query).await.unwrap()), ["1", "2"], "{query}");
    }
    world.store.compact(Revision(second));
    assert_eq!(world.list(&everything(), &exact).await.unwrap_err().code, 410);
    let none = world.list(&everything(), "resourceVersion=-1").await.unwrap_err();
    assert_eq!(
        none.message,
        "invalid resource version: resourceVersion: Invalid value: \"-1\": strconv.ParseUint: parsing \"-1\": invalid syntax"
    );
}

#[tokio::test]
async fn a_version_from_the_future_is_waited_for_and_then_refused() {
    let world = World::new();
    let next = world.store.revision().0 + 1;
    let query = format!("resourceVersion={next}");
    let waiting = tokio::spawn({
        let (store, options) = (world.store.clone(), options(&query).unwrap());
        async move { list(&store, &everything(), &options, &view()).await }
    });
    tokio::task::yield_now().await;
    world.put("a", "1", "x").await;
    assert!(waiting.await.unwrap().is_ok());
    let key = Key::new(RESOURCE, "a", "1");
    let everywhere = Scope::new(RESOURCE, None);
    let (refused, ()) = tokio::join!(
        get(&world.store, &key, "99", &everywhere),
        world.driver.run_for(Duration::from_secs(4))
    );
    let status = refused.unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (504, "Timeout: Too large resource version: 99, current: 2")
    );
    assert_eq!(get(&world.store, &key, "abc", &Scope::new(RESOURCE, None)).await.unwrap_err().code, 500);
    assert!(get(&world.store, &key, "1", &Scope::new(RESOURCE, None)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_watch_replays_from_its_version_and_goes_on() {
    let world = World::new();
    let start = world.put("a", "1", "x").await;
    world.put("a", "1", "y").await;
    let mut lines = world.watch(&everything(), &format!("resourceVersion={start}")).await;
    assert_eq!(lines.next().await, "MODIFIED 1 y 3");
    lines.is_quiet().await;
    world.put("b", "2", "x").await;
    world.delete("a", "1").await;
    assert_eq!(lines.next().await, "ADDED 2 x 4");
    assert_eq!(lines.next().await, "DELETED 1 y 5");
}

#[tokio::test]
async fn who_leaves_a_selection_is_deleted_as_it_was_at_the_new_version() {
    let world = World::new();
    world.put("a", "1", "x").await;
    let mut lines = world.watch(&labelled("x"), "").await;
    assert_eq!(lines.next().await, "ADDED 1 x 2");
    world.put("a", "1", "y").await;
    world.put("a", "1", "z").await;
    world.put("a", "1", "x").await;
    world.delete("a", "1").await;
    assert_eq!(lines.next().await, "DELETED 1 x 3");
    assert_eq!(lines.next().await, "ADDED 1 x 5");
    assert_eq!(lines.next().await, "DELETED 1 x 6");
    lines.is_quiet().await;
}

#[tokio::test]
async fn a_watch_that_wants_what_is_there_is_told_when_it_has_it() {
    let world = World::new();
    world.put("b", "2", "x").await;
    world.put("a", "1", "x").await;
    let wanted = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for query in [
        wanted.to_owned(),
        format!("{wanted}&resourceVersion=1"),
        "resourceVersion=0&allowWatchBookmarks=1".into(),
    ] {
        let mut lines = world.watch(&everything(), &query).await;
        for line in ["ADDED 1 x 3", "ADDED 2 x 2", "BOOKMARK 3 end"] {
            assert_eq!(lines.next().await, line, "{query}");
        }
        lines.is_quiet().await;
    }
    let mut lines =
        world.watch(&everything(), "sendInitialEvents=false&resourceVersionMatch=NotOlderThan").await;
    lines.is_quiet().await;
    world.put("a", "1", "y").await;
    assert_eq!(lines.next().await, "MODIFIED 1 y 4");
    let (scope, query) = (everything(), format!("{wanted}&resourceVersion=99"));
    let (mut lines, ()) =
        tokio::join!(world.watch(&scope, &query), world.driver.run_for(Duration::from_secs(4)));
    let error = lines.next_value().await;
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert_eq!(lines.next().await, "END");
}

#[tokio::test]
async fn a_version_that_is_forgotten_or_none_ends_the_watch() {
    let world = World::new();
    world.put("a", "1", "x").await;
    world.put("a", "1", "y").await;
    world.store.compact(Revision(3));
    let mut lines = world.watch(&everything(), "resourceVersion=2").await;
    let error = lines.next_value().await;
    assert_eq!(error["object"]["message"], json!("too old resource version: 2 (3)"));
    assert_eq!((&error["object"]["reason"], &error["object"]["code"]), (&json!("Expired"), &json!(410)));
    assert_eq!(lines.next().await, "END");
    let options = options("watch=1&resourceVersion=abc").unwrap();
    let none = watch(&world.store, everything(), &options, Arc::new(view()), WatchControl::default())
        .await
        .unwrap_err();
    assert_eq!((none.code, &*none.reason), (500, ""));
}

#[tokio::test]
async fn bookmarks_come_regularly_and_before_the_end() {
    let world = World::new();
    let mut lines =
        world.watch(&labelled("x"), "resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=400").await;
    world.put("a", "1", "unseen").await;
    let mut told = vec![];
    for _ in 0..3 {
        let (line, ()) = tokio::join!(lines.next(), world.driver.run_for(Duration::from_secs(300)));
        told.push(line);
        world.put("a", "1", &format!("still unseen {}", told.len())).await;
    }
    assert_eq!(told, ["BOOKMARK 2", "BOOKMARK 3", "END"]);
}

#[tokio::test]
async fn a_watch_without_a_limit_ends_within_an_hour() {
    let world = World::new();
    let mut lines = world.watch(&everything(), "resourceVersion=1").await;
    world.driver.advance(Duration::from_secs(1799));
    lines.is_quiet().await;
    world.driver.advance(Duration::from_secs(1802));
    assert_eq!(lines.next().await, "END");
}

#[tokio::test]
async fn a_watch_ends_with_its_resource_and_breaks_off_when_cut() {
    let world = World::new();
    let control = WatchControl::default();
    let mut ended = world.watch_on(&everything(), "resourceVersion=1", control.clone()).await;
    control.ended.cancel();
    assert_eq!(ended.next().await, "END");
    let control = WatchControl::default();
    let mut cut = world.watch_on(&everything(), "resourceVersion=1", control.clone()).await;
    control.cut.cancel();
    assert_eq!(cut.next().await, "CUT");
    assert_eq!(cut.next().await, "END");
}

#[tokio::test]
async fn held_events_come_late_and_in_order() {
    let world = World::new();
    let (hold, held) = tokio::sync::watch::channel(Hold { ceiling: Some(Revision(2)), ..Hold::default() });
    let control = WatchControl { hold: Some(held), ..WatchControl::default() };
    let query = "resourceVersion=1&allowWatchBookmarks=true";
    let mut lines = world.watch_on(&everything(), query, control).await;
    for name in ["1", "2", "3"] {
        world.put("a", name, "x").await;
    }
    assert_eq!(lines.next().await, "ADDED 1 x 2");
    lines.is_quiet().await;
    hold.send_replace(Hold { delay: Duration::from_secs(5), ..Hold::default() });
    lines.is_quiet().await;
    world.driver.advance(Duration::from_secs(5));
    assert_eq!(lines.next().await, "ADDED 2 x 3");
    hold.send_replace(Hold { ceiling: Some(Revision(3)), ..Hold::default() });
    lines.is_quiet().await;
    drop(hold);
    assert_eq!(lines.next().await, "ADDED 3 x 4");
}

#[tokio::test]
async fn the_past_is_served_as_it_was() {
    let world = World::new();
    world.put("a", "1", "x").await;
    let past = Revision(world.put("a", "2", "x").await);
    world.delete("a", "1").await;
    let scope = everything().with_ceiling(Some(past));
    let listed = world.list(&scope, "").await.unwrap();
    assert_eq!(names(&listed), ["1", "2"]);
    assert_eq!(listed["metadata"]["resourceVersion"], json!("3"));
    let key = Key::new(RESOURCE, "a", "1");
    assert!(
        get(&world.store, &key, "", &Scope::new(RESOURCE, None).with_ceiling(Some(past)))
            .await
            .unwrap()
            .is_some()
    );
    assert!(get(&world.store, &key, "", &Scope::new(RESOURCE, None)).await.unwrap().is_none());
    let (refused, ()) =
        tokio::join!(world.list(&scope, "resourceVersion=4"), world.driver.run_for(Duration::from_secs(4)));
    assert_eq!(refused.unwrap_err().code, 504);
    world.store.compact(world.store.revision());
    assert_eq!(names(&world.list(&scope, "").await.unwrap()), ["2"], "what is forgotten cannot be served");
}

#[tokio::test]
async fn a_reader_that_stops_reading_is_cut_off_in_the_end() {
    let (clock, _driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    let store = Store::new(Options { history_events: 4, ..Options::default() }, clock.clone());
    let world = World { store, driver: Clock::driven(clock.now()).1 };
    let mut lines = world.watch(&everything(), "resourceVersion=1").await;
    world.put("a", "1", "x").await;
    assert_eq!(lines.next().await, "ADDED 1 x 2");
    for label in ["a", "b", "c", "d", "e"] {
        world.put("a", "1", label).await;
    }
    assert_eq!(lines.next().await, "END");
}

#[tokio::test]
async fn watchers_in_one_form_share_their_lines() {
    let world = World::new();
    let view = Arc::new(view());
    let options = options("watch=1&resourceVersion=1").unwrap();
    let mut bodies = vec![];
    for _ in 0..2 {
        let body =
            watch(&world.store, everything(), &options, view.clone(), WatchControl::default()).await.unwrap();
        bodies.push(body);
    }
    world.put("a", "1", "x").await;
    let mut places = vec![];
    for body in &mut bodies {
        places.push(body.frame().await.unwrap().unwrap().into_data().unwrap().as_ptr());
    }
    assert_eq!(places[0], places[1]);
}

#[tokio::test]
async fn a_transform_is_applied_to_gets_lists_and_watches_alike() {
    let world = World::new();
    world.put("a", "1", "x").await;
    let view = view().transformed(
        "names only",
        Arc::new(|entry: &Entry| json!({"metadata": {"name": &*entry.key().name}}).to_string().into()),
    );
    let body = list(&world.store, &everything(), &ListOptions::default(), &view).await.unwrap();
    let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    assert_eq!(body["items"], json!([{"metadata": {"name": "1"}}]));
    let options = options("watch=1").unwrap();
    let body =
        watch(&world.store, everything(), &options, Arc::new(view), WatchControl::default()).await.unwrap();
    let mut lines = Lines { body, buffered: vec![] };
    assert_eq!(lines.next().await, "ADDED 1");
    world.put("a", "1", "y").await;
    assert_eq!(lines.next().await, "MODIFIED 1");
}

type Shown = BTreeMap<(String, String), Value>;

fn place(object: &Value) -> (String, String) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap().to_owned();
    (text("namespace"), text("name"))
}

/// What a list shows, page by page, and its version.
async fn listed(world: &World, scope: &Scope, limit: usize) -> (Shown, String) {
    let mut shown = Shown::new();
    let mut query = format!("limit={limit}");
    loop {
        let page = world.list(scope, &query).await.unwrap();
        shown.extend(page["items"].as_array().unwrap().iter().map(|item| (place(item), item.clone())));
        match page["metadata"].get("continue").and_then(Value::as_str) {
            Some(token) => query = format!("limit={limit}&continue={token}"),
            None => return (shown, page["metadata"]["resourceVersion"].as_str().unwrap().to_owned()),
        }
    }
}

async fn happen(world: &World, history: &[(usize, usize, usize)]) {
    for (namespace, name, label) in history {
        let (namespace, name) = (["a", "a-b", "b"][*namespace], ["k", "l.m", "n"][*name]);
        match ["x", "y", ""][*label] {
            "" if world.store.get(&Key::new(RESOURCE, namespace, name)).is_none() => {}
            "" => drop(world.delete(namespace, name).await),
            label => drop(world.put(namespace, name, label).await),
        }
    }
}

proptest! {
    #[test]
    fn a_selected_list_and_a_watch_from_it_equal_a_later_list(
        history in prop::collection::vec((0..3_usize, 0..3_usize, 0..3_usize), 0..50),
        cut in 0..50_usize,
        limit in 1..4_usize,
        initial in any::<bool>(),
    ) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let world = World::new();
            let cut = cut.min(history.len());
            happen(&world, &history[..cut]).await;
            let within = Scope { namespace: Some("a".into()), ..labelled("x") };
            for scope in [labelled("x"), everything(), within] {
                let (mut shown, version) = listed(&world, &scope, limit).await;
                let mut query = format!("resourceVersion={version}");
                if initial {
                    shown.clear();
                    query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
                }
                let mut lines = world.watch(&scope, &query).await;
                happen(&world, &history[cut..]).await;
                world.put("z", "unseen", "y").await;
                world.delete("z", "unseen").await;
                // The end is told as well: a watch that is over has told everything before.
                world.put("a", "end", "x").await;
                loop {
                    let mut line = lines.next_value().await;
                    let object = &mut line["object"];
                    let at = place(object);
                    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>();
                    if let Some(before) = shown.get(&at) {
                        assert!(version(before).unwrap() < version(object).unwrap());
                    }
                    object.as_object_mut().unwrap().retain(|name, _| name == "metadata");
                    let known = match line["type"].as_str().unwrap() {
                        "DELETED" => shown.remove(&at).is_some(),
                        "MODIFIED" => shown.insert(at.clone(), line["object"].clone()).is_some(),
                        _ => shown.insert(at.clone(), line["object"].clone()).is_none(),
                    };
                    assert!(known, "{line}");
                    if at.1 == "end" {
                        break;
                    }
                }
                assert_eq!(shown, listed(&world, &scope, limit).await.0);
                world.delete("a", "end").await;
            }
        });
    }

    #[test]
    fn no_query_and_no_token_makes_a_list_panic(token in ".{0,24}", json in "[{}\\[\\]\":,a-z0-9/.-]{0,40}") {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&json);
        let shaped = format!(r#"{{"v":"meta.k8s.io/v1","rv":-1,"start":{}}}"#, Value::from(token.clone()));
        let shaped = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(shaped);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let world = World::new();
            world.put("a", "k", "x").await;
            for token in [token, encoded, shaped] {
                let pairs = [("continue", token.as_str()), ("limit", "1")];
                let Ok(options) = ListOptions::parse(pairs) else { continue };
                for scope in [everything(), Scope::new(RESOURCE, Some("a"))] {
                    drop(list(&world.store, &scope, &options, &view()).await);
                }
            }
        });
    }
}
