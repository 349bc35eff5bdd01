//! What an answer does to a request: lets it pass, refuses it, warns, or is no answer at all.

use super::server::Reply;
use super::{Kind, configure, hook, map, serve};
use crate::parity::Behaviour;
use serde_json::{Value, json};

/// Answers of webhooks that say what they should.
const RESPONSES: &[(&str, &str)] = &[
    ("it may pass", r#"{"allowed":true}"#),
    ("it may pass, with a status", r#"{"allowed":true,"status":{"code":500,"message":"unread"}}"#),
    ("it may not, without explanation", r#"{"allowed":false}"#),
    ("it may not, with an empty status", r#"{"allowed":false,"status":{}}"#),
    ("it may not, with a message", r#"{"allowed":false,"status":{"message":"not today"}}"#),
    ("it may not, with a reason", r#"{"allowed":false,"status":{"reason":"Because"}}"#),
    (
        "it may not, with a code",
        r#"{"allowed":false,"status":{"code":403,"reason":"Forbidden","message":"not you"}}"#,
    ),
    ("it may not, with the code of a success", r#"{"allowed":false,"status":{"code":200,"message":"fine"}}"#),
    ("it may not, with a code of its own", r#"{"allowed":false,"status":{"code":499,"message":"odd"}}"#),
    ("it may not, and says that it succeeded", r#"{"allowed":false,"status":{"status":"Success"}}"#),
    (
        "it may not, with details",
        r#"{"allowed":false,"status":{"code":422,"reason":"Invalid","message":"m","details":{"name":"n","kind":"k","group":"g","causes":[{"reason":"FieldValueInvalid","message":"no","field":"spec.x"}]}}}"#,
    ),
    (
        "it may not, for a while",
        r#"{"allowed":false,"status":{"code":409,"reason":"Conflict","details":{"retryAfterSeconds":3}}}"#,
    ),
    ("it may pass, with warnings", r#"{"allowed":true,"warnings":["one","two \"quoted\"","one"]}"#),
    ("it may not, with warnings", r#"{"allowed":false,"warnings":["careful"],"status":{"message":"m"}}"#),
    ("it may pass, with annotations", r#"{"allowed":true,"auditAnnotations":{"key":"value"}}"#),
    ("the UID is another", r#"{"allowed":true,"uid":"another"}"#),
    ("the UID is empty", r#"{"allowed":true,"uid":""}"#),
    ("nothing is said", r#"{}"#),
];

/// Answers that are none: status, media type and body.
const RAW: &[(&str, u16, &str, &str)] = &[
    (
        "there is no response",
        200,
        "application/json",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#,
    ),
    (
        "the response is null",
        200,
        "application/json",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":null}"#,
    ),
    ("the kind is not told", 200, "application/json", r#"{"response":{"uid":"<uid>","allowed":true}}"#),
    (
        "the kind is told and no version",
        200,
        "application/json",
        r#"{"kind":"AdmissionReview","response":{"uid":"<uid>","allowed":true}}"#,
    ),
    ("the answer is text", 200, "text/plain", "hello"),
    ("the answer is cut off", 200, "application/json", r#"{"kind":"AdmissionReview","#),
    ("the answer is empty", 200, "application/json", ""),
    (
        "the answer is JSON of another media type",
        200,
        "text/html",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"<uid>","allowed":true}}"#,
    ),
    (
        "the answer is created",
        201,
        "application/json",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"<uid>","allowed":true}}"#,
    ),
    ("the status is 400", 400, "text/plain", "bad"),
    ("the status is 401", 401, "text/plain", "who?"),
    ("the status is 403", 403, "text/plain", "not you"),
    ("the status is 404", 404, "text/plain", "404 page not found"),
    ("the status is 405", 405, "text/plain", ""),
    ("the status is 409", 409, "text/plain", "conflict"),
    ("the status is 422", 422, "text/plain", "no"),
    ("the status is 429", 429, "text/plain", "slowly"),
    ("the status is 500", 500, "text/plain", "it broke\n"),
    ("the status is 500 with JSON", 500, "application/json", "{}"),
    ("the status is 502", 502, "text/html", "<html>bad gateway</html>"),
    ("the status is 503", 503, "text/plain", "later"),
    ("the status is 504", 504, "text/plain", "too late"),
    ("the status is 418", 418, "text/plain", "a teapot"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for kind in [Kind::Validating, Kind::Mutating] {
        let word = if kind == Kind::Validating { "validating" } else { "mutating" };
        for (name, response) in RESPONSES {
            let response: Value = serde_json::from_str(response).unwrap_or_default();
            let reply = Reply::Response(response);
            all.push(answered(&format!("a {word} webhook's answer: {name}"), kind, reply, json!({})));
        }
    }
    for (name, status, media, body) in RAW {
        let reply = Reply::Raw(*status, media, body.as_bytes().to_vec());
        let name = format!("a webhook's answer: {name}");
        all.push(answered(&name, Kind::Validating, reply.clone(), json!({})));
        all.push(answered(
            &format!("{name}, and it is ignored"),
            Kind::Mutating,
            reply,
            json!({"failurePolicy": "Ignore"}),
        ));
    }
    for (name, response) in [
        ("a UID is not needed", json!({"allowed": true, "uid": "another"})),
        ("it may not", json!({"allowed": false, "status": {"message": "no"}})),
        (
            "a patch without a type",
            json!({"allowed": true, "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEiLCJ2YWx1ZSI6eyJhIjoiYiJ9fV0="}),
        ),
    ] {
        let fields = json!({"admissionReviewVersions": ["v2", "v1beta1", "v1"]});
        let name = format!("the older review: {name}");
        all.push(answered(&name, Kind::Mutating, Reply::Response(response), fields));
    }
    for (name, response) in [
        ("a patch", json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch"})),
        ("a type of patch", json!({"allowed": true, "patchType": "JSONPatch"})),
    ] {
        let name = format!("a validating webhook answers with {name}");
        all.push(answered(&name, Kind::Validating, Reply::Response(response), json!({})));
    }
    all
}

/// A ConfigMap is made, changed and deleted; a webhook answers the same each time.
fn answered(name: &str, kind: Kind, reply: Reply, fields: Value) -> Behaviour {
    Behaviour::new(name, move |mut script| {
        let (reply, fields) = (reply.clone(), fields.clone());
        async move {
            let maps = script.maps();
            script.map("before", json!({})).await?;
            let server = serve(move |_, _| reply.clone()).await?;
            let hooks = vec![hook(&script, &server, "hook", fields)];
            configure(&mut script, &server, kind, "it", hooks).await?;
            script.post(&maps, map("a", json!({"data": {"x": "y"}}))).await?;
            script.merge(&format!("{maps}/before"), json!({"data": {"k": "v"}})).await?;
            script.delete(&format!("{maps}/before"), Value::Null).await?;
            script.get(&maps).await?;
            Ok(script)
        }
    })
}
