//! Authorization webhooks: what they are asked, what comes of their answers, and of their failures.

use super::credentials::Credential;
use super::environment::{Answer, Environment, Programs};
use super::https_server::{Answering, HttpsServer};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// What a webhook was asked, by the path at which it was.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// Who asks decides what is answered.
fn answering(asked: Asked) -> Answering {
    Arc::new(move |path, review| {
        let user = review["spec"]["user"].as_str().unwrap_or_default().to_owned();
        let verdict = match (path, user.split('-').next().unwrap_or_default()) {
            ("/first", "allowed") => json!({"allowed": true, "reason": "because <it> & I say so"}),
            ("/first", "denied") => json!({"allowed": false, "denied": true, "reason": "never"}),
            ("/first", "both") => json!({"allowed": true, "denied": true, "reason": "who knows"}),
            ("/last", "late") => json!({"allowed": true}),
            (_, "silent") => json!({}),
            _ => json!({"allowed": false, "reason": format!("nothing known at {path}")}),
        };
        let answer = match user.split('-').next().unwrap_or_default() {
            "broken" if path == "/first" => (400, "no".to_owned()),
            "garbled" if path == "/last" => (200, "<html>".to_owned()),
            "typed" if path == "/first" => (200, json!({"kind": "Pod", "apiVersion": "v1"}).to_string()),
            _ => {
                let (kind, version) = (&review["kind"], &review["apiVersion"]);
                (200, json!({"kind": kind, "apiVersion": version, "status": verdict}).to_string())
            }
        };
        asked.lock().push((path.to_owned(), review));
        answer
    })
}

fn kubeconfig(server: &HttpsServer, path: &str, folder: &Path) -> String {
    let file = folder.join(format!("{}.kubeconfig", &path[1..]));
    std::fs::write(folder.join("webhook-ca.crt"), &server.authority).unwrap();
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "webhook",
        "clusters": [{"name": "webhook", "cluster": {
            "server": format!("{}{path}", server.url), "certificate-authority": "webhook-ca.crt"}}],
        "users": [{"name": "server", "user": {"token": "secret"}}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "server"}}],
    });
    std::fs::write(&file, text.to_string()).unwrap();
    file.display().to_string()
}

fn webhook(name: &str, kubeconfig: &str, failure_policy: &str, version: &str, conditions: &[&str]) -> Value {
    let conditions: Vec<Value> = conditions.iter().map(|one| json!({"expression": one})).collect();
    json!({"type": "Webhook", "name": name, "webhook": {
        "timeout": "3s", "failurePolicy": failure_policy, "subjectAccessReviewVersion": version,
        "matchConditionSubjectAccessReviewVersion": "v1", "matchConditions": conditions,
        "authorizedTTL": "1h", "unauthorizedTTL": "1h",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
    }})
}

pub(super) fn configuration(authorizers: &[Value]) -> String {
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers})
        .to_string()
}

/// What is asked for, each by everybody.
const PATHS: [(&str, &str); 8] = [
    ("GET", "/api/v1/namespaces/default/configmaps/one"),
    (
        "GET",
        "/api/v1/configmaps?labelSelector=a%3Db%2Cc+notin+(x%2Cy)%2Ce%2C!f%2Cg%3E3&fieldSelector=metadata.name%3Done%2Cmetadata.namespace!%3Dtwo",
    ),
    ("GET", "/api/v1/configmaps?labelSelector=%3D%3D&fieldSelector=a"),
    ("GET", "/api/v1/watch/configmaps?fieldSelector=metadata.name%3Done&labelSelector=a&timeoutSeconds=1"),
    (
        "DELETE",
        "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dnone&labelSelector=none%3Dhere",
    ),
    ("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale"),
    ("GET", "/metrics"),
    ("GET", "/version"),
];

const USERS: [&str; 11] = [
    "allowed-1",
    "denied-1",
    "both-1",
    "broken-1",
    "typed-1",
    "garbled-1",
    "silent-1",
    "late-1",
    "skipped-1",
    "failing-1",
    "other-1",
];

fn acting_as(user: &str) -> Credential {
    let extra = Credential::header("impersonate-extra-example.com%2fteam", "blue");
    let groups = Credential::header("impersonate-group", "testers").and(extra);
    Credential::token("admin-token").and(Credential::header("impersonate-user", user)).and(groups)
}

/// Codes and messages, and then what the webhooks were asked. Errors that name this machine's ports are left out.
pub(super) async fn answers(programs: &Programs) -> Vec<String> {
    let asked = Asked::default();
    let server = HttpsServer::start(|_| answering(asked.clone())).await;
    let folder = tempfile::tempdir().unwrap();
    let (first, last) =
        (kubeconfig(&server, "/first", folder.path()), kubeconfig(&server, "/last", folder.path()));
    let conditions = [
        "request.user != 'skipped-1'",
        "request.user != 'failing-1' || request.resourceAttributes.namespace == 'default'",
        "!has(request.resourceAttributes) || request.resourceAttributes.verb != 'get' || request.groups.size() > 0",
        "!has(request.resourceAttributes) || !has(request.resourceAttributes.labelSelector) || \
         request.resourceAttributes.labelSelector.requirements.all(r, r.key != 'nobody')",
    ];
    let authorizers = [
        json!({"type": "Node", "name": "node"}),
        webhook("first.example.com", &first, "NoOpinion", "v1", &conditions),
        json!({"type": "RBAC", "name": "rbac"}),
        webhook("last.example.com", &last, "Deny", "v1beta1", &[]),
    ];
    let file = folder.path().join("authorization.yaml");
    std::fs::write(&file, configuration(&authorizers)).unwrap();
    let flag = format!("--authorization-config={}", file.display());
    let environment = Environment::start(programs, &[flag.as_str()]).await;
    // Whoever asked until it was ready.
    asked.lock().clear();
    let mut all = Vec::new();
    for user in USERS {
        let who = acting_as(user);
        for (method, path) in PATHS {
            let answer = environment.send(&who, method.parse::<Method>().unwrap(), path, None).await;
            all.push(format!("{user} {method} {path}: {}", outcome(&answer)));
        }
        let spec = json!({"user": user, "groups": ["testers"], "resourceAttributes": {"verb": "list", "resource": "pods",
            "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
            "fieldSelector": {"rawSelector": "spec.nodeName=n"}}});
        for (who, kind, spec) in [
            (&environment.admin(), "SubjectAccessReview", spec.clone()),
            (
                &who,
                "SelfSubjectAccessReview",
                json!({"nonResourceAttributes": {"path": "/version", "verb": "get"}}),
            ),
            (&who, "SelfSubjectRulesReview", json!({"namespace": "default"})),
        ] {
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
            let path = format!("/apis/authorization.k8s.io/v1/{}s", kind.to_lowercase());
            let answer = environment.send(who, Method::POST, &path, Some(review)).await;
            all.push(format!("{user} {kind}: {}", outcome(&answer)));
        }
    }
    for (path, review) in asked.lock().iter() {
        all.push(format!("{path} is asked {review}"));
    }
    environment.stop();
    all
}

fn outcome(answer: &Answer) -> String {
    let body = &answer.body;
    let mut status = body["status"].clone();
    // In any order, and compared elsewhere.
    if let Some(status) = status.as_object_mut() {
        status.retain(|name, _| !name.ends_with("Rules"));
    }
    // Of several bindings any may be named.
    if let Some(reason) = status.get_mut("reason")
        && reason.as_str().is_some_and(|reason| reason.starts_with("RBAC: allowed by"))
    {
        *reason = json!("RBAC");
    }
    if let Some(status) = status.as_object_mut()
        && let Some(error) = status.get_mut("evaluationError")
    {
        let told = error.as_str().unwrap_or_default();
        let same = ["does not support", "both allow and deny", "no such key"]
            .iter()
            .any(|known| told.contains(known));
        if !same {
            *error = json!("something");
        }
    }
    let message = match (&body["message"], body) {
        (Value::String(message), _) => message.clone(),
        (_, Value::String(text)) if answer.code == 500 => {
            let same = ["both allow and deny", "no such key"].iter().find(|known| text.contains(**known));
            format!("{} … {}", text.split(": ").take(2).collect::<Vec<_>>().join(": "), same.unwrap_or(&""))
        }
        (_, Value::Object(_)) if status.is_object() => status.to_string(),
        _ => String::new(),
    };
    format!("{} {message}", answer.code)
}
