//! Evictions, with budgets whose status is said by hand.

use crate::support::{Client, MERGE};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Pods that run, and a budget that allows so many of them to be evicted.
async fn fixture(pods: usize, allowed: usize) -> Client {
    let client = Client::new();
    let account = json!({"metadata": {"name": "default"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", account).await;
    for number in 0..pods {
        let pod = json!({"metadata": {"name": format!("p{number}"), "labels": {"app": "web"}}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}});
        client.post(PODS, pod).await.expect(201);
        let status =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        client.merge(&format!("{PODS}/p{number}/status"), status).await.expect(200);
    }
    let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": pods - allowed,
        "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}}});
    client.post(BUDGETS, budget).await.expect(201);
    let status = json!({"status": {"observedGeneration": 1, "expectedPods": pods, "currentHealthy": pods,
        "desiredHealthy": pods - allowed, "disruptionsAllowed": allowed}});
    client.send("PATCH", &format!("{BUDGETS}/web/status"), MERGE, status.to_string()).await.expect(200);
    client
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}})
}

#[tokio::test]
async fn many_evictions_at_once_take_what_is_allowed_and_no_more() {
    let client = fixture(20, 3).await;
    let evict = |number: usize| {
        let (name, client) = (format!("p{number}"), &client);
        async move { client.post(&format!("{PODS}/{name}/eviction"), eviction(&name)).await.code }
    };
    let codes = futures::future::join_all((0..20).map(evict)).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 3, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 429).count(), 17, "{codes:?}");
    let left = client.get(PODS).await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 17);
    let budget = client.get(&format!("{BUDGETS}/web")).await.expect(200);
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(budget["status"]["disruptedPods"].as_object().unwrap().len(), 3);
    assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
}

#[tokio::test]
async fn a_budget_that_was_changed_is_waited_for() {
    let client = fixture(2, 1).await;
    client.merge(&format!("{BUDGETS}/web"), json!({"spec": {"minAvailable": 2}})).await.expect(200);
    let refused = client.post(&format!("{PODS}/p0/eviction"), eviction("p0")).await.expect(429);
    assert_eq!(refused["details"]["retryAfterSeconds"], 10);
    let why = "The disruption budget web is still being processed by the server.";
    assert_eq!(refused["details"]["causes"], json!([{"reason": "DisruptionBudget", "message": why}]));
}

#[tokio::test]
async fn an_eviction_says_whom_it_means() {
    let client = fixture(1, 1).await;
    let wrong = client.post(&format!("{PODS}/p0/eviction"), eviction("other")).await;
    wrong.refused(400, "name in URL does not match name in Eviction object");
    let mut another = eviction("p0");
    another["deleteOptions"] = json!({"preconditions": {"uid": "6f0b8a1e-8d6f-4ab1-8e54-1c1b1f4c2d3e"}});
    client.merge(&format!("{PODS}/p0/status"), json!({"status": {"phase": "Pending"}})).await.expect(200);
    client.post(&format!("{PODS}/p0/eviction"), another).await.expect(409);
    client.get(&format!("{PODS}/p0")).await.expect(200);
}
