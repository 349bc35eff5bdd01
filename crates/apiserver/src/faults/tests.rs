//! What rules do to requests and watches.

use super::*;
use serde_json::json;
use windlass_clock::Clock;
use windlass_store::{Body, Change, Key, Options};

fn faults() -> Faults {
    Faults::new(Store::new(Options::default(), Clock::real()))
}

fn request<'a>(verb: &'a str, name: &'a str) -> RequestInfo<'a> {
    RequestInfo {
        verb,
        resource: "configmaps",
        name,
        user: "ann",
        user_agent: "tool/1",
        ..RequestInfo::default()
    }
}

async fn write(store: &Store, name: &str) {
    let body = Body::encode(&json!({"metadata": {"name": name}}), vec![]);
    store.commit(Change::Create { key: Key::new("configmaps", "", name), body }).await.unwrap();
}

#[test]
fn the_nth_match_is_refused_and_no_other() {
    let faults = faults();
    let refusal = Act::Refuse(Box::new(Status::unavailable("not now")));
    let rule = faults.add(Pattern::writes().user("ann").then(Which::Nth(2), refusal));
    let verdicts: Vec<_> = ["create", "get", "update", "patch"]
        .into_iter()
        .map(|verb| faults.before(&request(verb, "x")).verdict == Verdict::Proceed)
        .collect();
    assert_eq!(verdicts, [true, true, false, true]);
    assert_eq!(
        faults.before(&RequestInfo { user: "bob", ..request("create", "x") }).verdict,
        Verdict::Proceed
    );
    assert_eq!(faults.matched(rule), Some(3));
    assert_eq!(faults.remove(rule), Some(3));
    assert_eq!(faults.matched(rule), None);
}

#[test]
fn an_answer_is_lost_after_it_took_effect_and_a_request_before() {
    let faults = faults();
    faults.add(Pattern::any().name("after").then(Which::Every, Act::LoseResponse));
    faults.add(Pattern::any().name("before").then(Which::Every, Act::LoseRequest));
    faults.add(Pattern::any().name("half").then(Which::Every, Act::CutResponse));
    let second = Duration::from_secs(1);
    faults.add(Pattern::any().name("after").then(Which::Every, Act::Delay(second)));
    faults.add(Pattern::any().name("after").then(Which::Every, Act::DelayResponse(2 * second)));
    let after = request("create", "after");
    let decision = faults.before(&after);
    assert_eq!((decision.delay, &decision.verdict), (second, &Verdict::Proceed));
    let outcome = faults.after(&after, &decision, 201);
    assert_eq!(outcome, Outcome { delay: 2 * second, delivery: Delivery::Lose });
    assert_eq!(faults.before(&request("create", "before")).verdict, Verdict::Lose);
    let half = request("list", "half");
    assert_eq!(faults.after(&half, &faults.before(&half), 200).delivery, Delivery::Cut);
    let codes: Vec<_> = faults.audit().since(0).into_iter().map(|record| record.code).collect();
    assert_eq!(codes, [201, 0]);
    assert_eq!(faults.audit().count(Record::succeeded), 1);
    assert_eq!(faults.audit().since(1)[0].name, "before");
}

#[test]
fn watches_are_found_dropped_and_forgotten() {
    let faults = faults();
    let mine = faults.before(&request("watch", ""));
    let other = faults.before(&RequestInfo { user: "bob", ..request("watch", "") });
    let anns = Pattern::watches().user("ann");
    assert_eq!((faults.watches(&Pattern::any()), faults.watches(&anns)), (2, 1));
    assert_eq!(faults.drop_watches(&anns), 1);
    assert!(mine.control.cut.is_cancelled() && !other.control.cut.is_cancelled());
    assert_eq!(faults.watches(&anns), 0);
    drop(other);
    assert_eq!(faults.watches(&Pattern::any()), 0);
    let cut = faults.add(Pattern::watches().then(Which::Nth(1), Act::CutResponse));
    let watch = request("watch", "");
    let decision = faults.before(&watch);
    assert_eq!(faults.after(&watch, &decision, 200).delivery, Delivery::Deliver);
    assert!(decision.control.cut.is_cancelled());
    faults.remove(cut);
}

#[tokio::test]
async fn the_past_is_served_until_the_rule_goes() {
    let faults = faults();
    write(&faults.store, "a").await;
    let past = faults.store.revision();
    let rule = faults.add(Pattern::any().user("ann").then(Which::Every, Act::ServePast(Past::At(past))));
    write(&faults.store, "b").await;
    assert_eq!(faults.before(&request("list", "")).ceiling, Some(past));
    let decision = faults.before(&request("watch", ""));
    let hold = decision.control.hold.unwrap();
    assert_eq!((decision.ceiling, hold.borrow().ceiling), (Some(past), Some(past)));
    faults.remove(rule);
    assert_eq!(*hold.borrow(), Hold::default());
    assert_eq!(faults.before(&request("list", "")).ceiling, None);
    faults.add(Pattern::any().then(Which::From(2), Act::ServePast(Past::Behind(1))));
    assert_eq!(faults.before(&request("get", "a")).ceiling, None);
    assert_eq!(faults.before(&request("get", "a")).ceiling, Some(past));
}

#[tokio::test]
async fn a_write_can_set_off_a_compaction_a_dropped_watch_and_a_call() {
    let faults = faults();
    write(&faults.store, "a").await;
    let watch = faults.before(&request("watch", ""));
    let calls = Arc::new(AtomicU64::new(0));
    let called = calls.clone();
    let call = Effect::Call(Arc::new(move |request| {
        assert_eq!(request.name, "x");
        called.fetch_add(1, Ordering::Relaxed);
    }));
    faults.add(Pattern::writes().then(Which::Nth(1), Act::After(Effect::Compact)));
    faults.add(Pattern::writes().then(Which::Nth(1), Act::After(Effect::DropWatches(Pattern::any()))));
    faults.add(Pattern::writes().then(Which::UpTo(2), Act::Before(call)));
    let update = request("update", "x");
    let decision = faults.before(&update);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(!watch.control.cut.is_cancelled());
    faults.after(&update, &decision, 200);
    assert!(watch.control.cut.is_cancelled());
    assert_eq!(faults.store.oldest("configmaps"), faults.store.revision());
    for _ in 0..3 {
        faults.before(&update);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    faults.clear();
    assert!(faults.before(&update).after.is_empty());
}
