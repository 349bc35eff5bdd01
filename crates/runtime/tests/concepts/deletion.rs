//! An object that is deleted while its reconcile writes.

use crate::support::{Fixture, OPERATOR, Thing};
use kube::api::DeleteParams;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass::{Controller, Observed, Plan, Refusal};
use windlass_apiserver::faults::{Act, Effect, Pattern, Which};
use windlass_apiserver::read::Hold;

/// The answer to the status that is written shows the deletion, before the watch tells of it: what it tells then is no news.
#[tokio::test]
async fn a_deletion_that_came_with_the_answer_to_a_write_is_noticed() {
    let fixture = Fixture::new().await;
    let decide = |thing: &Thing, _: &Observed| -> Result<Plan, Refusal> {
        Ok(Plan::new().status(json!({ "phase": thing.spec.size.to_string() })))
    };
    fixture.thing("t", 1).await;
    let _operator = fixture.run(Controller::deciding(decide).finalizer(|_, _| Ok(Plan::new())));
    let things = fixture.here::<Thing>();
    fixture.until_condition("t", "Ready", "True", "AsDeclared").await;

    let faults = fixture.api.faults();
    let late = Hold { delay: Duration::from_millis(300), ..Hold::default() };
    faults.hold_watches(&Pattern::watches().user(OPERATOR), late);
    let (handle, deleting) = (tokio::runtime::Handle::current(), things.clone());
    let deletes = Effect::Call(Arc::new(move |_| {
        let things = deleting.clone();
        handle.spawn(async move { things.delete("t", &DeleteParams::default()).await.unwrap() });
    }));
    let statuses =
        Pattern::writes().resource("test.windlass.dev/things").subresource("status").user(OPERATOR);
    faults.add(statuses.clone().then(Which::Nth(1), Act::Before(deletes)));
    faults.add(statuses.then(Which::Nth(1), Act::Delay(Duration::from_millis(100))));
    fixture.resize("t", 2).await;
    let is_gone = || async { things.get_opt("t").await.unwrap().is_none() };
    fixture.until("the thing is gone", is_gone).await;
}
