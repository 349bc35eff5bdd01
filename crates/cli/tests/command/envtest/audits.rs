//! The same requests to any API server, and what its audit log says of them.

use super::credentials::Credential;
use super::environment::{Environment, Programs};
use http::Method;
use serde_json::{Value, json};

/// What every environment may be told to audit.
pub(super) const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, nonResourceURLs: ['/healthz*', '/readyz*', '/livez*']}
- {level: None, userGroups: ['system:masters'], users: ['system:apiserver']}
- {level: Metadata, verbs: [watch], resources: [{group: '', resources: [configmaps]}]}
- {level: RequestResponse, resources: [{group: '', resources: [configmaps]}]}
- {level: Request, resources: [{group: '', resources: [secrets]}], omitStages: [RequestReceived]}
- {level: Metadata, omitManagedFields: false}
";

/// The flags for it.
pub(super) const FLAGS: [&str; 2] = ["--audit-policy-file=DIR/policy.yaml", "--audit-log-path=DIR/audit.log"];

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Everything that people asked, in its order, without what changes from run to run.
pub(super) async fn events(programs: &Programs) -> Vec<Value> {
    let environment = Environment::start(programs, &FLAGS).await;
    let folder = environment.folder();
    let (admin, jane) = (environment.admin(), Credential::token("jane-token"));
    let as_jane = admin.clone().and(Credential::header("impersonate-user", "jane"));
    let patch = |media: &'static str| admin.clone().and(Credential::header("content-type", media));
    let object = |kind: &str, name: &str, data: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data});
    let map = |data: Value| Some(object("ConfigMap", "one", data));
    let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
    let one = format!("{MAPS}/one");
    let dry = format!("{MAPS}?dryRun=All");
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0");
    let requests: Vec<(&Credential, Method, &str, Option<Value>)> = vec![
        (&admin, post.clone(), MAPS, map(json!({"a": "1"}))),
        (&admin, post.clone(), MAPS, map(json!({"a": "1"}))),
        (&admin, post.clone(), &dry, Some(object("ConfigMap", "two", json!({"a": "1"})))),
        (&admin, post.clone(), MAPS, Some(object("ConfigMap", "Not A Name", json!({})))),
        (&admin, post.clone(), SECRETS, Some(object("Secret", "s", json!({"k": "dg=="})))),
        (&admin, get.clone(), &one, None),
        (&admin, put, &one, map(json!({"a": "2"}))),
        (&admin, get.clone(), "/api/v1/namespaces/default/configmaps/absent", None),
        (&admin, get.clone(), SECRETS, None),
        (&admin, get.clone(), &watch, None),
        (&admin, get.clone(), "/version", None),
        (&admin, get.clone(), "/api/v1/nodes?limit=5", None),
        (&admin, get.clone(), "/apis/example.com/v1/things", None),
        (&jane, get.clone(), MAPS, None),
        (&jane, get.clone(), "/api", None),
        (&as_jane, get.clone(), MAPS, None),
        (&as_jane, get, "/apis", None),
        (&admin, Method::DELETE, &one, None),
        (&admin, Method::DELETE, SECRETS, None),
    ];
    for (who, method, path, body) in requests {
        environment.send(who, method, path, body).await;
    }
    for (media, body) in [
        ("application/merge-patch+json", json!({"data": {"b": "1"}})),
        ("application/json-patch+json", json!([{"op": "add", "path": "/data/c", "value": "1"}])),
    ] {
        let who = patch(media);
        environment.send(&who, Method::PATCH, "/api/v1/namespaces/default/secrets/s", Some(body)).await;
    }
    environment.send(&Credential::token("wrong-token"), Method::GET, MAPS, None).await;
    environment.send(&Credential::default(), Method::GET, MAPS, None).await;
    environment.stop();
    let text = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let by_people = |event: &Value| {
        let user = event["user"]["username"].as_str().unwrap_or_default();
        ["", "admin", "jane", "system:anonymous"].contains(&user)
    };
    let mut events: Vec<Value> = events.filter(by_people).collect();
    events.iter_mut().for_each(mask);
    events
}

/// Takes out what changes from run to run.
pub(super) fn mask(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                let short = value.as_str().is_some_and(|text| text.len() < 8);
                match name.as_str() {
                    "uid" if short => {}
                    "auditID"
                    | "requestReceivedTimestamp"
                    | "stageTimestamp"
                    | "creationTimestamp"
                    | "uid"
                    | "resourceVersion"
                    | "time" => *value = json!("masked"),
                    _ => mask(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}
