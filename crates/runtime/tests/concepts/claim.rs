//! A claim: intent that cannot be observed, written by compare-and-swap before anything follows from it.

use crate::support::{Fixture, HERE, Thing, Why, entry, map, of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal};
use windlass_apiserver::faults::{Act, Effect, Pattern, Which};

/// The first that is asked for is elected, and stays so while it is within the size; whoever is elected is announced.
fn decide(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let name = of(thing, "elected");
    let wanted = thing.spec.size;
    let plan = Plan::new();
    let elected = match observed.get::<ConfigMap>(&name)? {
        None => {
            return Ok(plan
                .claim(map(name, "is", wanted), Why::Needed)
                .apply(announced(thing, wanted), Why::Needed));
        }
        Some(elected) => elected,
    };
    let is: i32 = entry(&elected, "is").and_then(|is| is.parse().ok()).unwrap_or_default();
    let mut next = (*elected).clone();
    if is > wanted {
        next.data = Some([("is".to_owned(), wanted.to_string())].into());
    }
    Ok(plan.claim(next, Why::Needed).apply(announced(thing, is.min(wanted)), Why::Needed))
}

fn announced(thing: &Thing, who: i32) -> ConfigMap {
    map(of(thing, "announced"), "is", who)
}

fn controller() -> Controller<Thing> {
    Controller::deciding(decide).owns::<ConfigMap>().claims::<ConfigMap>()
}

async fn says(fixture: &Fixture, name: &str) -> Option<String> {
    let map = fixture.here::<ConfigMap>().get_opt(name).await.unwrap()?;
    entry(&map, "is")
}

#[tokio::test]
async fn a_claim_is_made_before_what_follows_from_it_and_once() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 3).await;
    let operator = fixture.run(controller());
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    fixture.until_silent().await;
    let writes = fixture.writes();
    assert_eq!(writes[0], "create configmaps/ a-elected", "{writes:?}");
    assert_eq!(writes[1], "patch configmaps/ a-announced", "{writes:?}");
    assert_eq!(writes.len(), 3, "and the status: {writes:?}");
    fixture.resize("a", 5).await;
    fixture.until_silent().await;
    assert_eq!(says(&fixture, "a-elected").await.unwrap(), "3", "who is elected stays so");
    fixture.resize("a", 2).await;
    fixture
        .until("another is announced", || async {
            says(&fixture, "a-announced").await.as_deref() == Some("2")
        })
        .await;
    assert_eq!(says(&fixture, "a-elected").await.unwrap(), "2");
    let elected = fixture.here::<ConfigMap>().get("a-elected").await.unwrap();
    assert_eq!(elected.owner_references()[0].name, "a", "it belongs to the thing");
    operator.stop().await;
}

#[tokio::test]
async fn who_was_slower_decides_again_on_what_the_other_wrote() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 3).await;
    // Just before the operator's claim arrives, another made the same one.
    let another = fixture.here::<ConfigMap>();
    let owner = fixture.here::<Thing>().get("a").await.unwrap();
    let mut faster = map("a-elected", "is", 1);
    faster.metadata.namespace = Some(HERE.into());
    faster.metadata.owner_references = Some(vec![
        serde_json::from_value(json!({"apiVersion": "test.windlass.dev/v1", "kind": "Thing", "name": "a",
                                      "uid": owner.uid().unwrap()}))
        .unwrap(),
    ]);
    let handle = tokio::runtime::Handle::current();
    let created = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let done = created.clone();
    let call = Effect::Call(std::sync::Arc::new(move |_| {
        let (another, faster, done) = (another.clone(), faster.clone(), done.clone());
        handle.spawn(async move {
            another.create(&Default::default(), &faster).await.unwrap();
            done.add_permits(1);
        });
    }));
    let claims = Pattern::writes().verbs(&["create"]).resource("configmaps").user(crate::support::OPERATOR);
    let faults = fixture.api.faults();
    faults.add(claims.clone().then(Which::Nth(1), Act::Before(call)));
    faults.add(claims.then(Which::Nth(1), Act::Delay(std::time::Duration::from_millis(100))));
    let _operator = fixture.run(controller());
    fixture
        .until("the other's is announced", || async {
            says(&fixture, "a-announced").await.as_deref() == Some("1")
        })
        .await;
    assert_eq!(created.available_permits(), 1);
    assert_eq!(says(&fixture, "a-elected").await.unwrap(), "1", "what the other wrote stands");
}
