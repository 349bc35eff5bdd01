//! Endpoints and EndpointSlices of Services.

use super::manual_pods;
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_harness::{Suite, Target};
use windlass_testing::{Building, TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("endpoints follow the readiness of pods", follow_readiness)
        .test("a service without pods has an empty EndpointSlice", is_empty)
        .test("a headless service's endpoints have hostnames and ports", headless)
        .test("publishNotReadyAddresses makes all endpoints ready", publishes_all)
        .test("manual Endpoints of a service without selector are mirrored", mirrors)
        .test("the endpoints of a deleted service are deleted", go_with_the_service)
}

fn service(name: &str, spec: Value) -> Service {
    let mut all = json!({
        "selector": { "app": name },
        "ports": [{ "name": "http", "port": 80, "targetPort": "web" }],
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    object(name, json!({ "spec": all }))
}

/// A node of this test, for pods that it runs by hand.
async fn node(cluster: &TestCluster) -> anyhow::Result<String> {
    let name = format!("{}-node", cluster.namespace());
    let node: Node = object(name.as_str(), json!({}));
    cluster.create(node.labelled("topology.kubernetes.io/zone", "z1")).await?;
    Ok(name)
}

async fn pod(cluster: &TestCluster, name: &str, node: &str, ip: &str, ready: bool) -> anyhow::Result<Pod> {
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    let app = name.rsplit_once('-').map_or(name, |(app, _)| app);
    let port = json!([{ "name": "web", "containerPort": 8080 }]);
    let made: Pod = object(name, manual_pods::template(app, "nginx"));
    // Nobody schedules it: it says itself where it is.
    let made = made.set("spec.nodeName", node);
    let made = made.set("spec.containers.0.ports", port);
    cluster.create(made.set("spec.hostname", name).set("spec.subdomain", app)).await?;
    let ready = if ready { "True" } else { "False" };
    let status = json!({
        "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }],
        "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    });
    cluster.patch_status::<Pod>(name, status).await
}

async fn slices(cluster: &TestCluster, name: &str) -> anyhow::Result<Vec<EndpointSlice>> {
    let mut slices = cluster.list::<EndpointSlice>().await?;
    slices.retain(|slice| slice.labels().get("kubernetes.io/service-name").is_some_and(|of| of == name));
    Ok(slices)
}

/// Addresses and whether they are ready, serve and end, in order.
type Shown = Vec<(String, bool, bool, bool)>;

fn shown(slices: &[EndpointSlice]) -> Shown {
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let mut shown: Shown = endpoints
        .map(|endpoint| {
            let told = endpoint.conditions.clone().unwrap_or_default();
            let is = |condition: Option<bool>| condition.unwrap_or_default();
            (endpoint.addresses[0].clone(), is(told.ready), is(told.serving), is(told.terminating))
        })
        .collect();
    shown.sort();
    shown
}

async fn shows(
    cluster: &TestCluster,
    name: &str,
    wanted: &[(&str, bool, bool, bool)],
) -> anyhow::Result<Vec<EndpointSlice>> {
    let wanted: Shown =
        wanted.iter().map(|(ip, ready, serves, ends)| (ip.to_string(), *ready, *serves, *ends)).collect();
    let what = format!("the slices show {wanted:?}");
    cluster
        .until(&what, || slices(cluster, name), |slices| shown(slices) == wanted && !slices.is_empty())
        .await
}

/// Ready and not ready addresses of the Endpoints.
async fn addresses(
    cluster: &TestCluster,
    name: &str,
    ready: &[&str],
    not_ready: &[&str],
) -> anyhow::Result<Endpoints> {
    let ips = |all: &Option<Vec<k8s_openapi::api::core::v1::EndpointAddress>>| {
        let mut ips: Vec<String> = all.iter().flatten().map(|address| address.ip.clone()).collect();
        ips.sort();
        ips
    };
    let fits = |endpoints: &Endpoints| {
        let subsets = || endpoints.subsets.iter().flatten();
        let found = subsets().flat_map(|subset| ips(&subset.addresses)).collect::<Vec<_>>();
        let others = subsets().flat_map(|subset| ips(&subset.not_ready_addresses)).collect::<Vec<_>>();
        found == ready && others == not_ready
    };
    cluster.eventually::<Endpoints>(name).is(&format!("has {ready:?} and {not_ready:?}"), fits).await
}

async fn follow_readiness(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let node = node(&cluster).await?;
    let made = cluster.create(service("web", json!({})).labelled("tier", "front")).await?;
    pod(&cluster, "web-a", &node, "10.1.0.1", true).await?;
    pod(&cluster, "web-b", &node, "10.1.0.2", false).await?;
    pod(&cluster, "other-a", &node, "10.1.0.9", true).await?;
    let found =
        shows(&cluster, "web", &[("10.1.0.1", true, true, false), ("10.1.0.2", false, false, false)]).await?;
    let [slice] = &found[..] else { anyhow::bail!("one slice: {found:?}") };
    ensure!(slice.name_any().starts_with("web-") && slice.address_type == "IPv4", "{slice:?}");
    let labels: Vec<_> = slice.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
    ensure!(
        labels
            == [
                "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io",
                "kubernetes.io/service-name=web",
                "tier=front"
            ],
        "{labels:?}"
    );
    let owner = &slice.owner_references()[0];
    ensure!(
        owner.kind == "Service"
            && Some(&owner.uid) == made.metadata.uid.as_ref()
            && owner.controller == Some(true),
        "{owner:?}"
    );
    let first: &Endpoint =
        slice.endpoints.iter().flatten().find(|one| one.addresses[0] == "10.1.0.1").context("it")?;
    ensure!(first.node_name.as_deref() == Some(&node) && first.zone.as_deref() == Some("z1"), "{first:?}");
    let target = first.target_ref.clone().context("a target")?;
    ensure!((target.kind.as_deref(), target.name.as_deref()) == (Some("Pod"), Some("web-a")), "{target:?}");
    let port = slice.ports.iter().flatten().next().context("a port")?;
    ensure!((port.name.as_deref(), port.port) == (Some("http"), Some(8080)), "{port:?}");
    let endpoints = addresses(&cluster, "web", &["10.1.0.1"], &["10.1.0.2"]).await?;
    ensure!(endpoints.labels().get("tier").is_some_and(|tier| tier == "front"), "{:?}", endpoints.labels());

    let condition = |status: &str| {
        json!({ "conditions": [
        { "type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:01:00Z" }
    ] })
    };
    cluster.patch_status::<Pod>("web-b", condition("True")).await?;
    cluster.patch_status::<Pod>("web-a", condition("False")).await?;
    shows(&cluster, "web", &[("10.1.0.1", false, false, false), ("10.1.0.2", true, true, false)]).await?;
    addresses(&cluster, "web", &["10.1.0.2"], &["10.1.0.1"]).await?;

    // One that ends is still shown in the slice, as ending, and not in the Endpoints.
    let held = json!({ "metadata": { "finalizers": ["windlass.dev/held"] } });
    cluster.patch::<Pod>("web-b", held).await?;
    cluster.delete::<Pod>("web-b").await?;
    shows(&cluster, "web", &[("10.1.0.1", false, false, false), ("10.1.0.2", false, true, true)]).await?;
    addresses(&cluster, "web", &[], &["10.1.0.1"]).await?;
    cluster.patch::<Pod>("web-b", json!({ "metadata": { "finalizers": null } })).await?;
    shows(&cluster, "web", &[("10.1.0.1", false, false, false)]).await?;
    cluster.patch_status::<Pod>("web-a", condition("True")).await?;
    shows(&cluster, "web", &[("10.1.0.1", true, true, false)]).await?;
    addresses(&cluster, "web", &["10.1.0.1"], &[]).await?;
    let mut failed = condition("False");
    failed["phase"] = "Failed".into();
    cluster.patch_status::<Pod>("web-a", failed).await?;
    shows(&cluster, "web", &[]).await?;
    addresses(&cluster, "web", &[], &[]).await?;
    cluster.delete::<Node>(&node).await
}

async fn is_empty(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(service("web", json!({}))).await?;
    let found = shows(&cluster, "web", &[]).await?;
    ensure!(found.len() == 1 && found[0].ports.as_ref().is_none_or(Vec::is_empty), "{found:?}");
    addresses(&cluster, "web", &[], &[]).await?;
    cluster
        .create(object::<Service>(
            "outside",
            json!({ "spec": { "type": "ExternalName", "externalName": "x.org" } }),
        ))
        .await?;
    cluster.create(service("last", json!({}))).await?;
    shows(&cluster, "last", &[]).await?;
    ensure!(slices(&cluster, "outside").await?.is_empty(), "what is elsewhere has none");
    Ok(())
}

async fn headless(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let node = node(&cluster).await?;
    cluster.create(service("db", json!({ "clusterIP": "None" }))).await?;
    pod(&cluster, "db-0", &node, "10.1.0.1", true).await?;
    let found = shows(&cluster, "db", &[("10.1.0.1", true, true, false)]).await?;
    ensure!(
        found[0].labels().get("service.kubernetes.io/headless").is_some_and(String::is_empty),
        "{found:?}"
    );
    let endpoint = found[0].endpoints.iter().flatten().next().context("it")?;
    ensure!(endpoint.hostname.as_deref() == Some("db-0"), "{endpoint:?}");
    let endpoints = addresses(&cluster, "db", &["10.1.0.1"], &[]).await?;
    let address =
        endpoints.subsets.iter().flatten().flat_map(|subset| subset.addresses.iter().flatten()).next();
    ensure!(address.is_some_and(|address| address.hostname.as_deref() == Some("db-0")), "{endpoints:?}");
    cluster.delete::<Node>(&node).await
}

async fn publishes_all(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let node = node(&cluster).await?;
    cluster.create(service("web", json!({ "publishNotReadyAddresses": true }))).await?;
    pod(&cluster, "web-a", &node, "10.1.0.1", false).await?;
    shows(&cluster, "web", &[("10.1.0.1", true, false, false)]).await?;
    addresses(&cluster, "web", &["10.1.0.1"], &[]).await?;
    cluster.delete::<Node>(&node).await
}

async fn mirrors(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(service("db", json!({ "selector": null }))).await?;
    let manual_pods: Endpoints = object(
        "db",
        json!({ "subsets": [{
            "addresses": [{ "ip": "10.9.0.1" }], "notReadyAddresses": [{ "ip": "10.9.0.2" }],
            "ports": [{ "name": "sql", "port": 5432 }],
        }] }),
    );
    cluster.create(manual_pods.labelled("by", "hand")).await?;
    let found = cluster
        .until(
            "it is mirrored",
            || slices(&cluster, "db"),
            |slices| slices.iter().any(|slice| slice.endpoints.as_ref().is_some_and(|all| all.len() == 2)),
        )
        .await?;
    let slice = &found[0];
    let manager = slice.labels().get("endpointslice.kubernetes.io/managed-by").cloned().unwrap_or_default();
    ensure!(manager == "endpointslicemirroring-controller.k8s.io", "{manager}");
    ensure!(slice.labels().get("by").is_some_and(|by| by == "hand"), "{:?}", slice.labels());
    ensure!(slice.owner_references()[0].kind == "Endpoints", "{:?}", slice.owner_references());
    let ready: Vec<_> = shown(&found).into_iter().map(|(ip, ready, ..)| (ip, ready)).collect();
    ensure!(ready == [("10.9.0.1".to_owned(), true), ("10.9.0.2".to_owned(), false)], "{ready:?}");
    cluster.patch::<Endpoints>("db", json!({ "subsets": null })).await?;
    cluster.until("nothing is mirrored", || slices(&cluster, "db"), Vec::is_empty).await?;
    Ok(())
}

async fn go_with_the_service(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(service("web", json!({}))).await?;
    cluster.eventually::<Endpoints>("web").exists().await?;
    cluster.delete::<Service>("web").await?;
    cluster.eventually::<Endpoints>("web").is_deleted().await
}
