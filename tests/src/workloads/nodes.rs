//! Nodes and what is on them: scheduling, the life of pods, and nodes that fall silent.

use crate::grounds::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_cluster::node::{Options, Simulated};
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a pod is scheduled, runs, is ready, and goes when it is deleted", runs_and_goes)
        .test("a pod that fits nowhere says why, and is scheduled once there is room", waits_for_room)
        .test("a node is never given more than it has, however many pods come at once", is_never_overfilled)
        .test("a pod is given to a node by hand, once", is_bound_by_hand)
        .test("pods go where labels and taints let them", goes_where_it_may)
        .test("pods that keep apart are on different nodes", keeps_apart)
        .test("pods are spread as strictly as they ask", is_spread)
        .test("a pod that matters more takes the place of one that matters less", takes_a_place)
        .test("a pod with gates waits until they are lifted", is_gated)
        .test("containers initialize in order, and those beside them go on", initializes)
        .test("a pod ends as its containers end", ends_as_its_containers_do)
        .test("a container that fails again and again is left alone for a while", crashes_in_a_loop)
        .test("a pod is ready when those it waits for say so", has_a_readiness_gate)
        .test("a pod that runs for too long fails", has_a_deadline)
        .test("a pod has its grace to end in", has_its_grace)
        .test("a cordoned node gets nothing new", is_cordoned)
        .test(
            "a node that falls silent is unknown, and its pods leave; one that is gone takes them along",
            falls_silent,
        )
}

fn pod(name: &str, annotations: Value, spec: Value) -> Pod {
    let annotations = annotations.as_object().into_iter().flatten();
    let annotations: serde_json::Map<String, Value> =
        annotations.map(|(key, value)| (format!("simulate.windlass.dev/{key}"), value.clone())).collect();
    let mut pod = json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
    });
    if let (Some(whole), Some(more)) = (pod["spec"].as_object_mut(), spec.as_object()) {
        whole.extend(more.clone());
    }
    object(name, pod)
}

/// Containers that ask for so much.
fn asks(cpu: &str) -> Value {
    json!([{"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu}}}])
}

/// A node of this test's own: nobody else's pods go there.
struct Own {
    cluster: TestCluster,
    nodes: Vec<Simulated>,
}

impl Own {
    fn new(cluster: &TestCluster) -> Self {
        Self { cluster: cluster.clone(), nodes: Vec::new() }
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.cluster.namespace())
    }

    async fn join(&mut self, name: &str, more: impl FnOnce(Options) -> Options) -> anyhow::Result<String> {
        let name = self.name(name);
        let place = self.cluster.namespace();
        let options = Options::named(&name).label("place", place).taint("place", place, "NoSchedule");
        let clock = self.cluster.clock().clone();
        self.nodes.push(Simulated::join(self.cluster.client(), clock, more(options)).await?);
        // It is open to pods once its taint for not being ready is gone.
        let open = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
            taints.len() == 1
        };
        self.cluster.eventually::<Node>(&name).is("open", open).await?;
        Ok(name)
    }

    /// What a pod says that is to go to one of them.
    fn here(&self, more: Value) -> Value {
        let mut spec = json!({
            "nodeSelector": {"place": self.cluster.namespace()},
            "tolerations": [{"key": "place", "operator": "Exists", "effect": "NoSchedule"}],
            "terminationGracePeriodSeconds": 1,
        });
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        spec
    }

    async fn leave(self) -> anyhow::Result<()> {
        for node in self.nodes {
            node.leave().await?;
        }
        Ok(())
    }
}

fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

async fn runs_and_goes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(pod("web", json!({}), json!({}))).await?;
    let running = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let status = running.status.unwrap_or_default();
    ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
    ensure!(status.pod_ip.is_some() && status.host_ip.is_some() && status.start_time.is_some(), "{status:?}");
    let conditions: Vec<(&str, &str)> =
        status.conditions.iter().flatten().map(|condition| (&*condition.type_, &*condition.status)).collect();
    for of in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        ensure!(conditions.contains(&(of, "True")), "{conditions:?}");
    }
    cluster.eventually::<Pod>("web").tells("Scheduled").await?;
    cluster.eventually::<Pod>("web").tells("Started").await?;
    cluster.delete::<Pod>("web").await?;
    cluster.eventually::<Pod>("web").is_gone().await
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
    cluster.eventually::<Pod>("second").tells("FailedScheduling").await?;
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
    cluster.eventually::<Pod>("humble").is_gone().await?;
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

async fn initializes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let init = json!([
        {"name": "side", "image": "example.com/side:1", "restartPolicy": "Always"},
        {"name": "init", "image": "example.com/init:1"},
    ]);
    let spec = json!({"initContainers": init, "terminationGracePeriodSeconds": 1});
    cluster.create(pod("web", json!({"exit-after.init": "2s"}), spec)).await?;
    let first = cluster
        .eventually::<Pod>("web")
        .has_condition_because("Initialized", "ContainersNotInitialized")
        .await?;
    let states = first.status.unwrap_or_default();
    ensure!(states.phase.as_deref() == Some("Pending"), "{states:?}");
    let main = states.container_statuses.unwrap_or_default();
    let reason = main.first().and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.clone());
    ensure!(reason.as_deref() == Some("PodInitializing"), "{reason:?}");
    let then = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let init = then.status.unwrap_or_default().init_container_statuses.unwrap_or_default();
    let code = init
        .get(1)
        .and_then(|status| status.state.as_ref()?.terminated.as_ref())
        .map(|ended| ended.exit_code);
    ensure!(init.first().is_some_and(|side| side.ready) && code == Some(0), "{init:?}");
    Ok(())
}

async fn ends_as_its_containers_do(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let never = json!({"restartPolicy": "Never"});
    for (name, code, phase, reason) in
        [("well", "0", "Succeeded", "PodCompleted"), ("badly", "3", "Failed", "PodFailed")]
    {
        cluster.create(pod(name, json!({"exit-code": code}), never.clone())).await?;
        let ended = cluster.eventually::<Pod>(name).has(json!({"status": {"phase": phase}})).await?;
        let status = ended.status.unwrap_or_default();
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
        ensure!(ready.and_then(|ready| ready.reason.as_deref()) == Some(reason), "{status:?}");
        let exit = status.container_statuses.iter().flatten().next();
        let exit =
            exit.and_then(|status| status.state.as_ref()?.terminated.as_ref()).map(|ended| ended.exit_code);
        ensure!(exit == code.parse().ok(), "{status:?}");
        cluster.delete::<Pod>(name).await?;
        cluster.eventually::<Pod>(name).is_gone().await?;
    }
    Ok(())
}

async fn crashes_in_a_loop(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let says = json!({"exit-code": "1", "exit-after": "0s"});
    cluster.create(pod("web", says, json!({"terminationGracePeriodSeconds": 1}))).await?;
    let waiting = |pod: &Pod| {
        let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
        let reason = status.and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
        reason == Some("CrashLoopBackOff") && status.is_some_and(|status| status.restart_count >= 1)
    };
    let crashed = cluster.eventually::<Pod>("web").is("left alone for a while", waiting).await?;
    ensure!(crashed.status.unwrap_or_default().phase.as_deref() == Some("Running"), "it is to run on");
    cluster.eventually::<Pod>("web").tells("BackOff").await?;
    if cluster.embedded().is_some() {
        // Each wait is longer than the one before; on the other ground it would take as long as it says.
        cluster.advance(Duration::from_secs(35)).await;
        let again = |pod: &Pod| {
            let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
            status.is_some_and(|status| status.restart_count == 3)
        };
        cluster.eventually::<Pod>("web").is("started again twice", again).await?;
    }
    Ok(())
}

async fn has_a_readiness_gate(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let gate = json!({"readinessGates": [{"conditionType": "example.com/listed"}]});
    cluster.create(pod("web", json!({}), gate)).await?;
    cluster.eventually::<Pod>("web").has_condition_because("Ready", "ReadinessGatesNotReady").await?;
    let listed = json!([{"type": "example.com/listed", "status": "True"}]);
    let patch = kube::api::Patch::Strategic(json!({"status": {"conditions": listed}}));
    let pods = kube::Api::<Pod>::namespaced(cluster.client(), cluster.namespace());
    pods.patch_status("web", &Default::default(), &patch).await?;
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    Ok(())
}

async fn has_a_deadline(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let spec = json!({"activeDeadlineSeconds": 2, "restartPolicy": "Never"});
    cluster.create(pod("web", json!({}), spec)).await?;
    let wanted = json!({"status": {"phase": "Failed", "reason": "DeadlineExceeded"}});
    cluster.eventually::<Pod>("web").has(wanted).await?;
    Ok(())
}

async fn has_its_grace(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let spec = json!({"terminationGracePeriodSeconds": 3});
    cluster.create(pod("web", json!({"stop-after": "never"}), spec)).await?;
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let before = cluster.clock().moment();
    cluster.delete::<Pod>("web").await?;
    let going = cluster.get::<Pod>("web").await.context("it is still there")?;
    ensure!(going.metadata.deletion_grace_period_seconds == Some(3));
    cluster.eventually::<Pod>("web").tells("Killing").await?;
    cluster.eventually::<Pod>("web").is_gone().await?;
    // In whole seconds, which begin before they are written.
    let took = cluster.clock().moment() - before;
    ensure!(took >= Duration::from_millis(1900), "it had {took:?}");
    Ok(())
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

/// Lets so much time pass as nodes are given before they are given up; on the other ground it really passes.
const GIVEN_UP: Duration = Duration::from_secs(100);

async fn falls_silent(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    let (silent, gone) =
        (own.join("silent", |options| options).await?, own.join("gone", |options| options).await?);
    let on = |node: &str, patience: Option<i64>| {
        let mut spec = own.here(json!({"nodeName": node}));
        if let Some(tolerations) = spec["tolerations"].as_array_mut() {
            let key = "node.kubernetes.io/unreachable";
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": patience}));
        }
        spec
    };
    cluster.create(pod("hasty", json!({}), on(&silent, Some(1)))).await?;
    cluster.create(pod("patient", json!({}), on(&silent, None))).await?;
    cluster.create(pod("lost", json!({}), on(&gone, None))).await?;
    for name in ["hasty", "patient", "lost"] {
        cluster.eventually::<Pod>(name).has_condition("Ready", true).await?;
    }
    let left = own.nodes.pop().context("two have joined")?;
    left.leave().await?;
    drop(own.nodes.pop());
    if cluster.embedded().is_some() {
        cluster.advance(GIVEN_UP).await;
    }
    let unknown = |node: &Node| {
        let conditions =
            node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        let tainted = |effect: &str| {
            taints.iter().any(|taint| taint.key == "node.kubernetes.io/unreachable" && taint.effect == effect)
        };
        ready.is_some_and(|ready| {
            ready.status == "Unknown" && ready.reason.as_deref() == Some("NodeStatusUnknown")
        }) && tainted("NoSchedule")
            && tainted("NoExecute")
    };
    cluster.eventually::<Node>(&silent).within(GIVEN_UP).is("unknown and tainted", unknown).await?;
    cluster.eventually::<Pod>("patient").has_condition("Ready", false).await?;
    // Nobody is there to end it, but it was asked to go.
    let going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    cluster.eventually::<Pod>("hasty").within(GIVEN_UP).is("asked to go", going).await?;
    cluster.eventually::<Pod>("lost").within(GIVEN_UP).is_gone().await?;
    ensure!(cluster.get::<Pod>("patient").await?.metadata.deletion_timestamp.is_none());
    cluster.delete::<Node>(&silent).await
}
