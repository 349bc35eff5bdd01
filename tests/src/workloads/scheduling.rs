//! The scheduler: filters, scores and preemption.

use super::test_nodes::{Own, asks, node_of, pod};
use crate::targets::whole_cluster;
use anyhow::ensure;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::{Value, json};
use windlass_harness::{Suite, Target};
use windlass_testing::{Building, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("an unschedulable pod says why, and is scheduled once there is room", waits_for_room)
        .test("a node is never overcommitted by concurrent pods", is_never_overfilled)
        .test("a pod is bound once by pods/binding", is_bound_by_hand)
        .test("nodeSelector, affinity and taints are respected", goes_where_it_may)
        .test("pod anti-affinity puts pods on different nodes", keeps_apart)
        .test("topologySpreadConstraints are respected", is_spread)
        .test("a pod of higher priority preempts one of lower priority", takes_a_place)
        .test("a pod with scheduling gates waits until they are removed", is_gated)
        .test("a cordoned node gets no new pods", is_cordoned)
        .test("preemption prefers victims without a violated disruption budget", spares_budgets)
}

async fn waits_for_room(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    own.join("a", |options| options.capacity("cpu", "2")).await?;
    cluster.create(pod("first", json!({}), own.here(json!({"containers": asks("1500m")})))).await?;
    cluster.eventually::<Pod>("first").has_condition("Ready", true).await?;
    cluster.create(pod("second", json!({}), own.here(json!({"containers": asks("1")})))).await?;
    let waiting =
        cluster.eventually::<Pod>("second").has_condition_because("PodScheduled", "Unschedulable").await?;
    let conditions = waiting.status.unwrap_or_default().conditions.unwrap_or_default();
    let message = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled");
    let message = message.and_then(|condition| condition.message).unwrap_or_default();
    ensure!(message.starts_with("0/") && message.contains(" nodes are available: "), "{message}");
    ensure!(message.contains("1 Insufficient cpu"), "{message}");
    ensure!(message.ends_with("."), "{message}");
    cluster.eventually::<Pod>("second").has_event("FailedScheduling").await?;
    cluster.delete::<Pod>("first").await?;
    cluster.eventually::<Pod>("second").has_condition("Ready", true).await?;
    own.leave().await
}

async fn is_never_overfilled(target: Target) -> anyhow::Result<()> {
    const PODS: usize = 24;
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    own.join("a", |options| options.capacity("cpu", "10")).await?;
    for number in 0..PODS {
        let name = format!("web-{number}");
        cluster.create(pod(&name, json!({}), own.here(json!({"containers": asks("1")})))).await?;
    }
    let is = |pod: &Pod, of: &str, status: &str| {
        let conditions =
            pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == of && condition.status == status)
    };
    let count = |pods: &[Pod], of: &str, status: &str| pods.iter().filter(|pod| is(pod, of, status)).count();
    let settled =
        |pods: &Vec<Pod>| count(pods, "Ready", "True") + count(pods, "PodScheduled", "False") == PODS;
    let pods = cluster.until("each runs or waits", || cluster.list::<Pod>(), settled).await?;
    ensure!(count(&pods, "Ready", "True") == 10, "{} run", count(&pods, "Ready", "True"));
    own.leave().await
}

async fn is_bound_by_hand(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    let node = own.join("a", |options| options.label("topology.kubernetes.io/zone", "here")).await?;
    cluster.create(pod("web", json!({}), json!({"schedulerName": "nobody"}))).await?;
    let bind = |name: &str, binding: Value| {
        let path = format!("/api/v1/namespaces/{}/pods/{name}/binding", cluster.namespace());
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(binding.to_string().into_bytes());
        let client = cluster.client();
        async move { anyhow::Ok(client.request::<Value>(request?).await) }
    };
    let binding = |name: &str, node: &str| {
        let target = json!({"kind": "Node", "name": node});
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target})
    };
    let refused = |outcome: Result<Value, kube::Error>| match outcome {
        Err(kube::Error::Api(status)) => Ok((status.code, status.message.clone())),
        other => Err(anyhow::anyhow!("it is refused, and not {other:?}")),
    };
    let other = refused(bind("web", binding("db", &node)).await?)?;
    ensure!(other == (400, "name in URL does not match name in Binding object".to_owned()), "{other:?}");
    let no_node = refused(bind("web", binding("web", "")).await?)?;
    ensure!(no_node == (500, "target.name: Required value".to_owned()), "{no_node:?}");
    let absent = refused(bind("db", binding("db", &node)).await?)?;
    ensure!(absent == (404, "pods \"db\" not found".to_owned()), "{absent:?}");
    let done = bind("web", binding("web", &node)).await??;
    ensure!(done["kind"] == "Status" && done["status"] == "Success" && done["code"] == 201, "{done}");
    let running = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let zone = running.metadata.labels.as_ref().and_then(|labels| labels.get("topology.kubernetes.io/zone"));
    ensure!(node_of(&running) == node && zone.map(String::as_str) == Some("here"), "{:?}", running.metadata);
    let again = refused(bind("web", binding("web", "elsewhere")).await?)?;
    let message = format!(
        "Operation cannot be fulfilled on pods/binding \"web\": pod web is already assigned to node {node:?}"
    );
    ensure!(again == (409, message), "{again:?}");
    own.leave().await
}

async fn goes_where_it_may(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    let a = own.join("a", |options| options.label("disk", "fast")).await?;
    let b = own.join("b", |options| options.label("disk", "slow")).await?;
    let term = |operator: &str| json!({"matchExpressions": [{"key": "disk", "operator": operator, "values": ["fast"]}]});
    let required = |operator: &str| {
        let terms = json!({"nodeSelectorTerms": [term(operator)]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    };
    let preferred = json!({"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "preference": term("In")}],
    }}});
    cluster.create(pod("fast", json!({}), own.here(required("In")))).await?;
    cluster.create(pod("slow", json!({}), own.here(required("NotIn")))).await?;
    cluster.create(pod("rather", json!({}), own.here(preferred))).await?;
    for (name, node) in [("fast", &a), ("slow", &b), ("rather", &a)] {
        let placed = cluster.eventually::<Pod>(name).has_condition("Ready", true).await?;
        ensure!(node_of(&placed) == *node, "{name} is on {}", node_of(&placed));
    }
    // Without the toleration there is no place for it: the other nodes lack the label.
    let intolerant = json!({"nodeSelector": {"place": cluster.namespace()}});
    cluster.create(pod("intolerant", json!({}), intolerant)).await?;
    let waiting = cluster
        .eventually::<Pod>("intolerant")
        .has_condition_because("PodScheduled", "Unschedulable")
        .await?;
    let said = serde_json::to_string(&waiting.status)?;
    // On the reference there may be nodes of other tests.
    ensure!(said.contains(" node(s) had untolerated taint(s)"), "{said}");
    own.leave().await
}

async fn keeps_apart(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    own.join("a", |options| options).await?;
    own.join("b", |options| options).await?;
    let labels = json!({"matchLabels": {"app": "db"}});
    let term = json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": labels}]);
    let apart =
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
    let near = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
    let labelled = |name: &str, app: &str, spec: Value| {
        let mut pod = pod(name, json!({}), own.here(spec));
        pod.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
        pod
    };
    let mut places = Vec::new();
    for name in ["db-0", "db-1"] {
        cluster.create(labelled(name, "db", apart.clone())).await?;
        places.push(node_of(&cluster.eventually::<Pod>(name).has_condition("Ready", true).await?));
    }
    ensure!(places[0] != places[1], "{places:?}");
    cluster.create(labelled("db-2", "db", apart.clone())).await?;
    let waiting =
        cluster.eventually::<Pod>("db-2").has_condition_because("PodScheduled", "Unschedulable").await?;
    let said = serde_json::to_string(&waiting.status)?;
    ensure!(said.contains("2 node(s) didn't match pod anti-affinity rules"), "{said}");
    cluster.create(labelled("web", "web", near)).await?;
    let web = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    ensure!(places.contains(&node_of(&web)), "{places:?}");
    own.leave().await
}

async fn is_spread(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    own.join("a", |options| options.label("zone", "x")).await?;
    own.join("b", |options| options.label("zone", "y")).await?;
    let spread = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]});
    let mut counts = std::collections::BTreeMap::new();
    for number in 0..6 {
        let name = format!("web-{number}");
        let mut web = pod(&name, json!({}), own.here(spread.clone()));
        web.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        cluster.create(web).await?;
        let placed = cluster.eventually::<Pod>(&name).has_condition("Ready", true).await?;
        *counts.entry(node_of(&placed)).or_insert(0) += 1;
    }
    ensure!(counts.values().copied().collect::<Vec<i32>>() == [3, 3], "{counts:?}");
    own.leave().await
}

async fn takes_a_place(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    own.join("a", |options| options.capacity("cpu", "2")).await?;
    let class = own.name("urgent");
    cluster.create(object::<PriorityClass>(class.as_str(), json!({"value": 1000}))).await?;
    cluster.create(pod("humble", json!({}), own.here(json!({"containers": asks("1500m")})))).await?;
    cluster.eventually::<Pod>("humble").has_condition("Ready", true).await?;
    let urgent = own.here(json!({"containers": asks("1"), "priorityClassName": class}));
    cluster.create(pod("urgent", json!({}), urgent)).await?;
    cluster.eventually::<Pod>("humble").is_deleted().await?;
    cluster.eventually::<Pod>("urgent").has_condition("Ready", true).await?;
    cluster.delete::<PriorityClass>(&class).await?;
    own.leave().await
}

async fn is_gated(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster
        .create(pod("web", json!({}), json!({"schedulingGates": [{"name": "example.com/ready"}]})))
        .await?;
    cluster.eventually::<Pod>("web").has_condition_because("PodScheduled", "SchedulingGated").await?;
    cluster.patch::<Pod>("web", json!({"spec": {"schedulingGates": []}})).await?;
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    Ok(())
}

/// Two nodes with a pod each, of which the less important one is guarded: the other goes.
async fn spares_budgets(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    for name in ["a", "b"] {
        own.join(name, |options| options.capacity("cpu", "2")).await?;
    }
    let (some, urgent) = (own.name("some"), own.name("urgent"));
    cluster.create(object::<PriorityClass>(some.as_str(), json!({"value": 10}))).await?;
    cluster.create(object::<PriorityClass>(urgent.as_str(), json!({"value": 1000}))).await?;
    let guarded = own.here(json!({"containers": asks("1500m")}));
    cluster.create(pod("guarded", json!({}), guarded).labelled("guarded", "yes")).await?;
    let free = own.here(json!({"containers": asks("1500m"), "priorityClassName": some}));
    cluster.create(pod("free", json!({}), free)).await?;
    for name in ["guarded", "free"] {
        cluster.eventually::<Pod>(name).has_condition("Ready", true).await?;
    }
    let budget = json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}}});
    cluster.create(object::<PodDisruptionBudget>("one", budget)).await?;
    let counted = json!({"status": {"expectedPods": 1, "currentHealthy": 1, "disruptionsAllowed": 0}});
    cluster.eventually::<PodDisruptionBudget>("one").has(counted).await?;
    let first = own.here(json!({"containers": asks("1500m"), "priorityClassName": urgent}));
    cluster.create(pod("first", json!({}), first.clone())).await?;
    cluster.eventually::<Pod>("first").has_condition("Ready", true).await?;
    ensure!(cluster.find::<Pod>("free").await?.is_none(), "the more important one made room");
    ensure!(cluster.get::<Pod>("guarded").await?.metadata.deletion_timestamp.is_none());
    // Where there is nobody else, a budget does not help.
    cluster.create(pod("second", json!({}), first)).await?;
    cluster.eventually::<Pod>("guarded").is_deleted().await?;
    cluster.eventually::<Pod>("second").has_condition("Ready", true).await?;
    for class in [some, urgent] {
        cluster.delete::<PriorityClass>(&class).await?;
    }
    own.leave().await
}

async fn is_cordoned(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    let name = own.join("a", |options| options).await?;
    cluster.patch::<Node>(&name, json!({"spec": {"unschedulable": true}})).await?;
    let tainted = |node: &Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        taints
            .iter()
            .any(|taint| taint.key == "node.kubernetes.io/unschedulable" && taint.effect == "NoSchedule")
    };
    cluster.eventually::<Node>(&name).is("tainted", tainted).await?;
    cluster.create(pod("web", json!({}), own.here(json!({})))).await?;
    cluster.eventually::<Pod>("web").has_condition_because("PodScheduled", "Unschedulable").await?;
    cluster.patch::<Node>(&name, json!({"spec": {"unschedulable": null}})).await?;
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    own.leave().await
}
