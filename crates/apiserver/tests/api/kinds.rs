//! What is special about built-in kinds.

use crate::support::Client;
use serde_json::{Value, json};
use windlass_apiserver::{Api, Config};
use windlass_clock::Clock;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(selected: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": selected}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

fn pod(name: &str) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn no_two_services_have_the_same_address_or_port() {
    let client = Client::new();
    let service = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let asked =
        json!({"type": "NodePort", "clusterIP": "10.96.0.9", "ports": [{"port": 80, "nodePort": 30009}]});
    client.post(SERVICES, service("one", asked)).await.expect(201);
    let same_address = json!({"clusterIP": "10.96.0.9", "ports": [{"port": 80}]});
    client.post(SERVICES, service("two", same_address)).await.expect(422);
    let same_port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30009}]});
    client.post(SERVICES, service("two", same_port.clone())).await.expect(422);
    client.delete(&format!("{SERVICES}/one")).await.expect(200);
    client.post(SERVICES, service("two", same_port)).await.expect(201);
}

#[tokio::test]
async fn a_pod_needs_an_account_and_gets_what_it_left_out() {
    let client = Client::new();
    client.post(PODS, pod("p")).await.expect(403);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    client.post(ACCOUNTS, account).await.expect(201);
    let pod = client.post(PODS, pod("p")).await.expect(201);
    assert_eq!(pod["spec"]["serviceAccountName"], "default");
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    let gone = client.delete(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(gone["kind"], "Pod");
}

#[tokio::test]
async fn a_pod_waits_for_the_account_that_a_controller_is_about_to_make() {
    let (clock, _still) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    let client = Client { api: Api::new(Config { clock, ..Config::default() }) };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let made_late = async {
        // The pod is under way by then, and another account than its own changes nothing.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let other = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other"}});
        client.post(ACCOUNTS, other).await.expect(201);
        client.post(ACCOUNTS, account).await.expect(201);
    };
    let (pod, ()) = tokio::join!(client.post(PODS, pod("p")), made_late);
    assert_eq!(pod.expect(201)["spec"]["serviceAccountName"], "default");
}

#[tokio::test]
async fn a_pod_waits_for_no_account_where_none_will_be_made() {
    let client = Client::new();
    let mut of_another = pod("p");
    of_another["spec"]["serviceAccountName"] = json!("another");
    let start = Clock::real().moment();
    client.post(PODS, of_another).await.expect(403);
    client.post("/api/v1/namespaces/nowhere/pods", pod("p")).await.expect(404);
    assert!(
        Clock::real().moment() - start < std::time::Duration::from_secs(1),
        "that is for the default one"
    );
}

#[tokio::test]
async fn a_deployment_must_select_its_own_pods_for_good() {
    let client = Client::new();
    client.post(DEPLOYMENTS, deployment("b")).await.expect(422);
    let made = client.post(DEPLOYMENTS, deployment("a")).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    let scale = client.get(&format!("{DEPLOYMENTS}/d/scale")).await.expect(200);
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(1), &json!("app=a")));
    client.put(&format!("{DEPLOYMENTS}/d"), deployment("c")).await.expect(422);
}

#[tokio::test]
async fn events_are_the_same_in_both_groups() {
    let client = Client::new();
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "hello",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    });
    client.post("/api/v1/namespaces/default/events", event).await.expect(201);
    let same = client.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.expect(200);
    assert_eq!((&same["note"], &same["regarding"]["name"]), (&json!("hello"), &json!("p")));
    let list = client.get("/apis/events.k8s.io/v1/namespaces/default/events").await.expect(200);
    assert_eq!(list["items"][0]["note"], "hello");
}

#[tokio::test]
async fn what_is_only_a_question_is_not_stored() {
    let client = Client::new();
    client.get("/apis/authentication.k8s.io/v1/tokenreviews").await.expect(405);
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let answer =
        client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await.expect(201);
    assert_eq!(answer["status"]["allowed"], true);
}
