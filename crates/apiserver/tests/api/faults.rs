//! Faults, as far as the service carries them out.

use crate::support::{Client, JSON, MAPS};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tower::ServiceExt;
use windlass_apiserver::faults::{Act, Pattern, Rule, Which};
use windlass_apiserver::{Identity, Status};

fn rule(verb: &str, act: Act) -> Rule {
    Rule { pattern: Pattern { verbs: vec![verb.into()], ..Pattern::default() }, which: Which::Nth(1), act }
}

#[tokio::test]
async fn a_lost_answer_took_effect_and_a_lost_request_did_not() {
    let client = Client::new();
    let create = |name: &str| {
        let body = json!({"metadata": {"name": name}}).to_string();
        let request = Request::post(MAPS).body(Full::new(bytes::Bytes::from(body))).unwrap();
        client.api.service(Identity::admin()).oneshot(request)
    };
    client.api.faults().add(rule("create", Act::LoseResponse));
    assert!(create("a").await.is_err());
    client.get(&format!("{MAPS}/a")).await.expect(200);
    client.api.faults().clear();
    client.api.faults().add(rule("create", Act::LoseRequest));
    assert!(create("b").await.is_err());
    client.get(&format!("{MAPS}/b")).await.expect(404);
    assert_eq!(client.api.faults().audit().total(), 2, "both were asked for");
}

#[tokio::test]
async fn a_refusal_is_answered_and_a_cut_answer_breaks_off() {
    let client = Client::new();
    client.api.faults().add(rule("list", Act::Refuse(Box::new(Status::unavailable("not now")))));
    client.get(MAPS).await.refused(503, "not now");
    client.get(MAPS).await.expect(200);
    client.api.faults().add(rule("list", Act::CutResponse));
    let cut = client.raw("GET", MAPS, JSON, "").await;
    assert!(cut.into_body().collect().await.is_err());
}
