//! Tokens that are kept in Secrets: what their bearers are told, what the Secrets say of their use, and what the audit does.

use super::audits::{FLAGS, mask};
use super::credentials::Credential;
use super::environment::{Answer, Environment, Programs};
use super::service_account_tokens::signed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_clock::Clock;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// Secrets by name, with their labels: one that somebody created, one that the account names, one that is no longer valid, and
/// those that were used before.
fn secrets(today: &str, tomorrow: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("manual", json!({})),
        ("named", json!({})),
        ("invalid", json!({"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})),
        ("used-before", json!({LAST_USED: "2026-01-01", "other": "label"})),
        ("used-today", json!({LAST_USED: today})),
        ("used-tomorrow", json!({LAST_USED: tomorrow})),
        ("odd", json!({LAST_USED: "some-day"})),
    ]
}

fn token(uid: &str, secret: &str) -> String {
    let claim = |name: &str| format!("kubernetes.io/serviceaccount/{name}");
    signed(
        &json!({"alg": "RS256"}),
        &json!({
            "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:default",
            claim("namespace"): "default", claim("secret.name"): secret,
            claim("service-account.name"): "default", claim("service-account.uid"): uid,
        }),
    )
}

/// What came of the use of each token.
pub(super) async fn told(programs: &Programs) -> Vec<String> {
    let environment = Environment::start(programs, &FLAGS).await;
    let admin = environment.admin();
    let make = async |path: &str, object: Value| {
        let answer = environment.send(&admin, Method::POST, path, Some(object)).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.body["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
        "secrets": [{"name": "named"}]});
    let uid = make(ACCOUNTS, account).await;
    let day = |later: i64| {
        let time = Clock::real().now().as_second() + later * 24 * 60 * 60;
        windlass_clock::Timestamp::from_second(time).unwrap().strftime("%Y-%m-%d").to_string()
    };
    let (today, tomorrow) = (day(0), day(1));
    let all = secrets(&today, &tomorrow);
    for (name, labels) in &all {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": name, "labels": labels,
                "annotations": {"kubernetes.io/service-account.name": "default"},
            },
            "data": {"token": STANDARD.encode(token(&uid, name))},
        });
        make(SECRETS, secret).await;
    }
    let mut told = Vec::new();
    for (name, _) in &all {
        let (bearer, path) = (Credential::token(&token(&uid, name)), format!("{SECRETS}/{name}"));
        until_used(&environment, &bearer, &path).await;
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let answer = environment.send(&bearer, Method::POST, WHO_AM_I, Some(asked)).await;
        told.push(format!("{name}: {}", shown(answer)));
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token(&uid, name)}});
        let mut answer = environment.send(&admin, Method::POST, REVIEWS, Some(asked)).await;
        answer.body["spec"] = Value::Null;
        told.push(format!("{name}, reviewed: {}", shown(answer)));
        let mut answer = environment.send(&admin, Method::GET, &path, None).await;
        let told_of = &mut answer.body["metadata"];
        // They are in the order of their times, in whole seconds.
        let managers = told_of["managedFields"].as_array_mut().unwrap();
        managers.sort_by_key(|entry| entry["manager"].to_string());
        told.push(format!("{name}, its Secret: {} {}", told_of["labels"], masked(&told_of["managedFields"])));
    }
    let folder = environment.folder();
    environment.stop();
    told.extend(audited(&std::fs::read_to_string(folder.path().join("audit.log")).unwrap()));
    let day = |text: String| text.replace(&today, "<today>").replace(&tomorrow, "<tomorrow>");
    told.into_iter().map(|text| day(text.replace(&uid, "<uid>"))).collect()
}

/// Shows a token until the server knows its Secret: the reference hears of it a moment later.
async fn until_used(environment: &Environment, bearer: &Credential, path: &str) {
    for _ in 0..200 {
        environment.send(bearer, Method::GET, "/api", None).await;
        let secret = environment.send(&environment.admin(), Method::GET, path, None).await;
        let label = secret.body["metadata"]["labels"][LAST_USED].as_str().unwrap_or_default().to_owned();
        if label.starts_with("20") && label != "2026-01-01" {
            return;
        }
        Clock::real().sleep(Duration::from_millis(20)).await;
    }
    panic!("{path} was not used");
}

fn masked(value: &Value) -> Value {
    let mut value = value.clone();
    mask(&mut value);
    value
}

fn shown(mut answer: Answer) -> String {
    let warnings: Vec<&str> =
        answer.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok()).collect();
    mask(&mut answer.body);
    format!("{} {warnings:?} {}", answer.code, answer.body)
}

/// The events of the reviews, in their order, and of the other requests which ones there were.
fn audited(log: &str) -> Vec<String> {
    let mut events = Vec::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let uri = event["requestURI"].as_str().unwrap_or_default();
        if uri == WHO_AM_I || uri == REVIEWS {
            let of = |name: &str| masked(&event[name]);
            let said = ["stage", "verb", "user", "annotations", "responseStatus"].map(of);
            events.push(format!("{uri}: {}", json!(said)));
        }
    }
    events
}
