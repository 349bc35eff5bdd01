//! Configuration files that no server starts with, and what it says of them.

use super::environment::Programs;
use super::{issuers, webhooks};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: webhook
clusters: [{name: webhook, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: webhook, context: {cluster: webhook, user: ''}}]
";

/// A configuration with one thing changed, by the path to it.
fn with(mut configuration: Value, path: &str, value: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let parent = configuration.pointer_mut(parent).unwrap();
    match (value, name.parse::<usize>()) {
        (Value::Null, _) => _ = parent.as_object_mut().unwrap().remove(name),
        (value, Ok(index)) => parent[index] = value,
        (value, Err(_)) => parent[name] = value,
    }
    configuration
}

fn authorizations(kubeconfig: &str) -> Vec<String> {
    let webhook = json!({"type": "Webhook", "name": "one", "webhook": {
        "timeout": "3s", "failurePolicy": "Deny", "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1", "matchConditions": [{"expression": "request.user != 'a'"}],
        "authorizedTTL": "1h", "unauthorizedTTL": "1h",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
    }});
    let node = json!({"type": "Node", "name": "node"});
    let mut all = vec![
        vec![],
        vec![json!({"name": "node"})],
        vec![json!({"type": "Nodes", "name": "node"})],
        vec![node.clone(), node.clone()],
        vec![json!({"type": "Node"})],
        vec![json!({"type": "Node", "name": "Node"})],
        vec![json!({"type": "Node", "name": "other"})],
        vec![with(node, "/webhook", webhook["webhook"].clone())],
        vec![json!({"type": "Webhook", "name": "one"})],
        vec![webhook.clone(), webhook.clone()],
    ];
    let changes = [
        ("/name", json!("Not a name")),
        ("/webhook/timeout", Value::Null),
        ("/webhook/timeout", json!("31s")),
        ("/webhook/timeout", json!("-1.5s")),
        ("/webhook/authorizedTTL", json!("-1h1m1s")),
        ("/webhook/unauthorizedTTL", json!("-10ms")),
        ("/webhook/subjectAccessReviewVersion", Value::Null),
        ("/webhook/subjectAccessReviewVersion", json!("v2")),
        ("/webhook/matchConditionSubjectAccessReviewVersion", Value::Null),
        ("/webhook/matchConditionSubjectAccessReviewVersion", json!("v1beta1")),
        ("/webhook/failurePolicy", Value::Null),
        ("/webhook/failurePolicy", json!("Ignore")),
        ("/webhook/connectionInfo", json!({})),
        ("/webhook/connectionInfo/kubeConfigFile", Value::Null),
        ("/webhook/connectionInfo/kubeConfigFile", json!("")),
        ("/webhook/connectionInfo/kubeConfigFile", json!("relative")),
        ("/webhook/connectionInfo/kubeConfigFile", json!("/nowhere/at/all")),
        ("/webhook/connectionInfo/kubeConfigFile", json!("/")),
        ("/webhook/connectionInfo/type", json!("InClusterConfig")),
        ("/webhook/matchConditions/0/expression", json!(" ")),
        ("/webhook/matchConditions/0/expression", json!("request.user")),
        ("/webhook/matchConditions/0/expression", json!("request.users == 'a'")),
        ("/webhook/matchConditions", json!([{"expression": "true"}, {"expression": "true"}])),
        (
            "/webhook/matchConditions",
            json!((0..65).map(|n| json!({"expression": format!("{n} > 0")})).collect::<Vec<_>>()),
        ),
    ];
    all.extend(changes.map(|(path, value)| vec![with(webhook.clone(), path, value)]));
    all.iter().map(|authorizers| webhooks::configuration(authorizers)).collect()
}

fn authentications() -> Vec<String> {
    let jwt = json!({
        "issuer": {"url": "https://issuer.invalid", "audiences": ["us"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    });
    let rule = |fields: Value| json!([fields]);
    let changes = [
        ("/issuer/url", Value::Null),
        ("/issuer/url", json!("http://issuer.invalid")),
        ("/issuer/url", json!("https://a:b@issuer.invalid/?x=y#z")),
        ("/issuer/discoveryURL", json!("https://issuer.invalid/")),
        ("/issuer/discoveryURL", json!("http://elsewhere.invalid/")),
        ("/issuer/audiences", json!([])),
        ("/issuer/audiences", json!(["", "us", "us"])),
        ("/issuer/audienceMatchPolicy", json!("MatchAll")),
        ("/issuer/certificateAuthority", json!("nothing")),
        ("/issuer/egressSelectorType", json!("elsewhere")),
        ("/claimMappings", json!({})),
        ("/claimMappings/username", json!({"claim": "sub"})),
        ("/claimMappings/username", json!({"claim": "sub", "prefix": "", "expression": "claims.sub"})),
        ("/claimMappings/username", json!({"prefix": "a", "expression": "claims.sub"})),
        ("/claimMappings/username", json!({"expression": "other.sub"})),
        ("/claimMappings/username", json!({"expression": "claims.email"})),
        ("/claimMappings/username", json!({"expression": "claims.?email.orValue('x')"})),
        ("/claimMappings/groups", json!({"claim": "groups"})),
        ("/claimMappings/groups", json!({"claim": "groups", "prefix": "", "expression": "claims.groups"})),
        ("/claimMappings/uid", json!({"claim": "id", "expression": "claims.id"})),
        ("/claimMappings/extra", json!([{"key": "", "valueExpression": "'a'"}])),
        ("/claimMappings/extra", json!([{"key": "plain", "valueExpression": "'a'"}])),
        ("/claimMappings/extra", json!([{"key": "Example.com/Name", "valueExpression": "'a'"}])),
        ("/claimMappings/extra", json!([{"key": "a.k8s.io/name", "valueExpression": "'a'"}])),
        (
            "/claimMappings/extra",
            json!([{"key": "a.b/c", "valueExpression": "'a'"}, {"key": "a.b/c", "valueExpression": "'b'"}]),
        ),
        ("/claimMappings/extra", json!([{"key": "a.b/c"}])),
        ("/claimValidationRules", rule(json!({}))),
        ("/claimValidationRules", rule(json!({"claim": "a", "expression": "true"}))),
        ("/claimValidationRules", rule(json!({"claim": "a", "message": "m"}))),
        ("/claimValidationRules", json!([{"claim": "a"}, {"claim": "a"}])),
        ("/claimValidationRules", rule(json!({"expression": "true", "requiredValue": "a"}))),
        ("/claimValidationRules", rule(json!({"expression": "claims.a"}))),
        ("/claimValidationRules", json!([{"expression": "true"}, {"expression": "true"}])),
        ("/userValidationRules", rule(json!({}))),
        ("/userValidationRules", rule(json!({"expression": "user.username"}))),
        ("/userValidationRules", rule(json!({"expression": "user.name == 'a'"}))),
        ("/userValidationRules", json!([{"expression": "true"}, {"expression": "true"}])),
    ];
    let mut all: Vec<String> = changes
        .into_iter()
        .map(|(path, value)| issuers::configuration(&[with(jwt.clone(), path, value)], None))
        .collect();
    all.push(issuers::configuration(&[jwt.clone(), jwt], None));
    let anonymous = json!({"enabled": false, "conditions": [{"path": "/healthz"}]});
    all.push(issuers::configuration(&[], Some(anonymous)));
    all
}

/// What a server says of each file, before it ends.
pub(super) fn told(programs: &Programs) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let key = folder.path().join("sa.key");
    std::fs::write(&key, include_str!("rsa.key")).unwrap();
    let key = key.display();
    let file = folder.path().join("configuration.json");
    let authorizations =
        authorizations(kubeconfig.to_str().unwrap()).into_iter().map(|one| ("authorization", one));
    let authentications = authentications().into_iter().map(|one| ("authentication", one));
    let mut all = Vec::new();
    for (kind, configuration) in authorizations.chain(authentications) {
        std::fs::write(&file, &configuration).unwrap();
        let said = Command::new(programs.0.join("kube-apiserver"))
            .arg(format!("--{kind}-config={}", file.display()))
            .args([
                "--etcd-servers=http://127.0.0.1:1",
                "--service-account-issuer=https://issuer.example.com",
            ])
            .arg(format!("--cert-dir={}", folder.path().join("certificates").display()))
            .arg(format!("--service-account-key-file={key}"))
            .arg(format!("--service-account-signing-key-file={key}"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!said.status.success(), "{configuration}");
        let text =
            plain(&String::from_utf8(said.stderr).unwrap()).replace(folder.path().to_str().unwrap(), "DIR");
        all.push((configuration.replace(folder.path().to_str().unwrap(), "DIR"), text));
    }
    all
}

/// What is wrong, without the log around it.
fn plain(said: &str) -> String {
    if let Some((_, wrong)) = said.split_once("configuration.json: ") {
        return wrong.trim().to_owned();
    }
    let (_, wrong) = said.split_once("\"command failed\" err=").unwrap_or_else(|| panic!("{said}"));
    let wrong: String = match wrong.strip_prefix("<\n") {
        Some(lines) => lines.split("\n >").next().unwrap_or_default().replace("\n\t", "\n").trim().to_owned(),
        None => serde_json::from_str(wrong.lines().next().unwrap_or_default()).unwrap(),
    };
    wrong.replacen("invalid authentication configuration: ", "", 1)
}
