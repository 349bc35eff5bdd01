//! Which flow schema and priority level requests belong to, and what becomes of those that are too many.

use super::credentials::Credential;
use super::environment::{Answer, Environment, Programs};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// Users, with the groups that they are in.
const USERS: &[(&str, &[&str])] = &[
    ("jane", &["devs", "system:authenticated"]),
    ("system:anonymous", &["system:unauthenticated"]),
    ("system:kube-controller-manager", &["system:authenticated"]),
    ("system:kube-scheduler", &["system:authenticated"]),
    ("system:serviceaccount:default:robot", &["system:serviceaccounts", "system:authenticated"]),
    (
        "system:serviceaccount:kube-system:robot",
        &["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
    ),
    ("system:node:n", &["system:nodes", "system:authenticated"]),
    ("root", &["system:masters"]),
];

const REQUESTS: &[(Method, &str)] = &[
    (Method::GET, "/api/v1/pods"),
    (Method::GET, "/api/v1/namespaces/default/pods"),
    (Method::GET, "/api/v1/nodes/n"),
    (Method::PUT, "/api/v1/nodes/n/status"),
    (Method::GET, "/api/v1/namespaces/default/pods/p/log"),
    (Method::GET, "/api/v1/namespaces/kube-system/endpoints/e"),
    (Method::GET, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"),
    (Method::GET, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"),
    (Method::GET, "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"),
    (Method::GET, "/apis/example.com/v1/things"),
    (Method::GET, "/healthz"),
    (Method::GET, "/livez/ping"),
    (Method::GET, "/version"),
    (Method::GET, "/apis"),
    (Method::POST, "/nowhere"),
];

/// A flow schema and its level of one's own, for the group `devs`.
fn own_objects() -> [(&'static str, Value); 2] {
    let limited = json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"}});
    let rules = json!([{
        "subjects": [{"kind": "Group", "group": {"name": "devs"}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version", "/livez/*"]}],
    }]);
    let meta = |kind: &str, name: &str| json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    let mut level = meta("PriorityLevelConfiguration", "one-by-one");
    level["spec"] = json!({"type": "Limited", "limited": limited});
    let mut schema = meta("FlowSchema", "developers");
    schema["spec"] = json!({"matchingPrecedence": 100, "rules": rules,
        "priorityLevelConfiguration": {"name": "one-by-one"}});
    [("prioritylevelconfigurations", level), ("flowschemas", schema)]
}

/// The names behind the UIDs of a response.
struct Names(BTreeMap<String, String>);

impl Names {
    async fn read(environment: &Environment) -> Self {
        let mut names = BTreeMap::new();
        for plural in ["flowschemas", "prioritylevelconfigurations"] {
            let list =
                environment.send(&environment.admin(), Method::GET, &format!("{GROUP}/{plural}"), None).await;
            for item in list.body["items"].as_array().unwrap() {
                let text = |field: &str| item["metadata"][field].as_str().unwrap().to_owned();
                names.insert(text("uid"), text("name"));
            }
        }
        Self(names)
    }

    fn of(&self, answer: &Answer) -> String {
        let name = |header: &str| {
            let uid = answer.headers.get(header).map(|value| value.to_str().unwrap().to_owned());
            uid.map_or_else(|| "-".to_owned(), |uid| self.0.get(&uid).cloned().unwrap_or(uid))
        };
        let (schema, level) =
            (name("x-kubernetes-pf-flowschema-uid"), name("x-kubernetes-pf-prioritylevel-uid"));
        format!("{schema} {level}")
    }
}

fn acting_as(user: &str, groups: &[&str]) -> Credential {
    let mut credential = Credential::token("admin-token").and(Credential::header("impersonate-user", user));
    for group in groups {
        credential = credential.and(Credential::header("impersonate-group", *group));
    }
    credential
}

/// Where every request of every user belongs, before and after there is a schema of one's own.
pub(super) async fn classified(programs: &Programs) -> Vec<String> {
    let environment = Environment::start(programs, &[]).await;
    let mut all = Vec::new();
    for own in [false, true] {
        if own {
            make_own(&environment).await;
        }
        let names = Names::read(&environment).await;
        for (user, groups) in USERS {
            let who = acting_as(user, groups);
            for (method, path) in REQUESTS {
                let answer = environment.send(&who, method.clone(), path, None).await;
                all.push(format!("{user} {method} {path}: {} {}", answer.code, names.of(&answer)));
            }
        }
    }
    environment.stop();
    all
}

/// Makes the objects, and waits until they count.
async fn make_own(environment: &Environment) {
    for (plural, object) in own_objects() {
        let made = environment
            .send(&environment.admin(), Method::POST, &format!("{GROUP}/{plural}"), Some(object))
            .await;
        assert_eq!(made.code, 201, "{made:?}");
    }
    let names = Names::read(environment).await;
    let jane = acting_as("jane", &["devs", "system:authenticated"]);
    environment.until(&jane, "/version", |answer| names.of(answer) == "developers one-by-one").await;
}

/// What becomes of many requests of one client that all take long, by their codes; and of another's meanwhile.
pub(super) async fn crowded(programs: &Programs) -> (Vec<u16>, u16) {
    // Without a controller there is no service account: a new pod waits for it.
    let environment = Environment::start(programs, &["--enable-admission-plugins=ServiceAccount"]).await;
    make_own(&environment).await;
    let jane = acting_as("jane", &["devs", "system:authenticated"]);
    allow_pods(&environment, &jane).await;
    let pod = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{number}")},
            "spec": {"containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    let waiting = (0..40).map(|number| environment.send(&jane, Method::POST, pods, Some(pod(number))));
    let admin = environment.admin();
    let other = environment.send(&admin, Method::GET, pods, None);
    let (answers, other) = tokio::join!(futures::future::join_all(waiting), other);
    for answer in answers.iter().filter(|answer| answer.code == 429) {
        assert_eq!(answer.body, "Too many requests, please try again later.\n");
        assert_eq!(answer.headers.get("retry-after").unwrap(), "1");
    }
    let metrics = environment.send(&admin, Method::GET, "/metrics", None).await;
    let text = metrics.body.as_str().unwrap_or_default();
    let rejected = "apiserver_flowcontrol_rejected_requests_total{flow_schema=\"developers\",priority_level=\"one-by-one\",\
                    reason=\"concurrency-limit\"}";
    assert!(text.contains(rejected), "{text}");
    environment.stop();
    (answers.iter().map(|answer| answer.code).collect(), other.code)
}

async fn allow_pods(environment: &Environment, jane: &Credential) {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "jane"}, "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let made = environment.send(&environment.admin(), Method::POST, path, Some(binding)).await;
    assert_eq!(made.code, 201, "{made:?}");
    environment.until(jane, "/api/v1/namespaces/default/pods", |answer| answer.code == 200).await;
}
