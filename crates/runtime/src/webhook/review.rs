//! The answer to an AdmissionReview, v1 or v1beta1, by a webhook. Pure.

use super::answer::{Answer, Head};
use super::hook::{Asked, Webhook};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

const GROUP: &str = "admission.k8s.io";

#[derive(Deserialize)]
struct Review {
    #[serde(flatten)]
    head: Head,
    request: Option<Value>,
}

/// What a webhook answers. It may panic, as its handler may.
pub(super) fn answer(webhook: &Webhook, question: &[u8]) -> Answer {
    match decide(webhook, question) {
        Ok(answer) | Err(answer) => answer,
    }
}

fn decide(webhook: &Webhook, question: &[u8]) -> Result<Answer, Answer> {
    let review: Review = serde_json::from_slice(question)
        .map_err(|error| Answer::bad(format!("the body is no AdmissionReview: {error}")))?;
    let version = review.head.version(GROUP, "AdmissionReview")?;
    let request = review.request.ok_or_else(|| Answer::bad("the AdmissionReview has no request"))?;
    let asked = Asked::deserialize(request).map_err(|error| {
        Answer::bad(format!("the request of the AdmissionReview is not understood: {error}"))
    })?;
    if asked.uid.is_empty() {
        return Err(Answer::bad("the request of the AdmissionReview has no uid"));
    }
    let (said, patch) = webhook.decide(&asked).map_err(Answer::bad)?;
    let allowed = said.is_allowed();
    let mut response = said.into_response(&asked.uid);
    if allowed && !patch.is_empty() {
        let patch = serde_json::to_vec(&patch)
            .map_err(|error| Answer::Failed(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        response["patch"] = STANDARD.encode(patch).into();
        response["patchType"] = "JSONPatch".into();
    }
    Ok(Answer::Review(json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::{Admission, Operation, Request};
    use k8s_openapi::api::core::v1::ConfigMap;
    use std::collections::BTreeMap;

    fn map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}, "unknown": 1})
    }

    fn review(version: &str, request: Value) -> Vec<u8> {
        let review = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "AdmissionReview", "request": request});
        serde_json::to_vec(&review).unwrap()
    }

    fn says(answer: Answer) -> String {
        match answer {
            Answer::Failed(status, why) => format!("{} {why}", status.as_u16()),
            Answer::Review(review) => panic!("answered: {review}"),
        }
    }

    #[test]
    fn a_handler_is_told_who_asks_for_what() {
        let webhook = Webhook::validating(|new: &ConfigMap, request: &Request<ConfigMap>| {
            let old = request.old().unwrap();
            assert_eq!((&new.data, request.operation()), (&old.data, Operation::Update));
            assert_eq!(
                (request.namespace(), request.name(), request.subresource()),
                (Some("shop"), Some("m"), None)
            );
            assert_eq!((&*request.user().name, request.is_dry_run()), ("ann", true));
            Admission::deny("not you").warn("careful")
        });
        let request = json!({"uid": "1", "operation": "UPDATE", "object": map("m"), "oldObject": map("m"), "dryRun": true,
            "userInfo": {"username": "ann", "groups": ["g"]}, "namespace": "shop", "name": "m"});
        for version in ["v1", "v1beta1"] {
            let Answer::Review(answer) = answer(&webhook, &review(version, request.clone())) else {
                panic!()
            };
            assert_eq!(answer["apiVersion"], format!("{GROUP}/{version}"));
            let expected = json!({"uid": "1", "allowed": false, "warnings": ["careful"],
                "status": {"code": 403, "reason": "Forbidden", "message": "not you"}});
            assert_eq!(answer["response"], expected);
        }
    }

    #[test]
    fn defaults_come_as_a_patch() {
        let webhook = Webhook::defaulting(|map: &mut ConfigMap, _: &Request<ConfigMap>| {
            map.data.get_or_insert_with(BTreeMap::new).insert("c".into(), "d".into());
        });
        let asked =
            review("v1", json!({"uid": "1", "operation": "CREATE", "object": map("m"), "oldObject": null}));
        let Answer::Review(answer) = answer(&webhook, &asked) else { panic!() };
        let patch = STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
        let patch: Value = serde_json::from_slice(&patch).unwrap();
        assert_eq!(patch, json!([{"op": "add", "path": "/data/c", "value": "d"}]));
    }

    #[test]
    fn an_object_that_is_to_be_deleted_is_the_one_that_is_there() {
        let webhook = Webhook::validating(|map: &ConfigMap, _: &Request<ConfigMap>| {
            Admission::allow().require(
                map.metadata.name.as_deref() != Some("m"),
                "metadata.name",
                "is needed",
            )
        });
        let asked =
            review("v1", json!({"uid": "1", "operation": "DELETE", "object": null, "oldObject": map("m")}));
        let Answer::Review(answer) = answer(&webhook, &asked) else { panic!() };
        assert_eq!(answer["response"]["allowed"], false);
    }

    #[test]
    fn what_is_no_question_is_told_what_is_wrong() {
        let webhook = Webhook::validating(|_: &ConfigMap, _: &Request<ConfigMap>| ());
        let ask = |question: &[u8]| says(answer(&webhook, question));
        assert!(ask(b"").starts_with("400 the body is no AdmissionReview: "));
        assert!(ask(b"[]").starts_with("400 "));
        assert_eq!(
            ask(&review("v2", json!({}))),
            "400 expected AdmissionReview (admission.k8s.io/v1 or admission.k8s.io/v1beta1), found \"AdmissionReview\" \
             (\"admission.k8s.io/v2\")"
        );
        assert_eq!(ask(&review("v1", Value::Null)), "400 the AdmissionReview has no request");
        let request =
            |object: Value| review("v1", json!({"uid": "1", "operation": "CREATE", "object": object}));
        let secret = json!({"apiVersion": "v1", "kind": "Secret"});
        assert_eq!(
            ask(&request(secret)),
            "400 this webhook is for ConfigMap (v1), and the object is a \"Secret\" (\"v1\")"
        );
        let mut wrong = map("m");
        wrong["data"] = json!({"a": 1});
        assert!(ask(&request(wrong)).starts_with("400 the object is not understood as ConfigMap (v1): "));
        assert!(ask(&review("v1", json!({"uid": "1", "operation": "EXPLODE"}))).contains("EXPLODE"));
        let deep = "[".repeat(100_000);
        assert!(ask(deep.as_bytes()).starts_with("400 the body is no AdmissionReview: "));
    }
}
