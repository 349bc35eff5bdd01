//! What the operator decides, without servers: plans as values, and what the API rejects.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod backup;
mod drain;
mod restore;
mod storage;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::Role;
use sampledb_operator::api::v1alpha1::{
    Role as ServerRole, SampleDB, SampleDBInstance, SampleDBInstanceStatus,
};
use sampledb_operator::controller::{failover, provisioning};
use sampledb_operator::leadership::Leadership;
use sampledb_operator::lsn::Lsn;
use sampledb_operator::{databases, failovers};
use serde_json::{Value, json};
use std::time::Duration;
use windlass::{Observed, Plan};
use windlass_testing::{TestCluster, named, object};

const IMAGE: &str = "sampledb-operator:test";

fn spec(changes: Value) -> Value {
    let mut spec = json!({"version": "15", "instances": 3, "storage": {"size": "1Gi"}});
    for (field, value) in changes.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec
}

fn database(changes: Value) -> SampleDB {
    SampleDB::new("db", serde_json::from_value(spec(changes)).expect("a spec as it is written"))
}

fn provision(database: &SampleDB, observed: &Observed) -> Plan {
    let plan = provisioning::decide(database, observed, IMAGE).expect("it can be carried out");
    databases(IMAGE).check(&plan).expect("it does what the controller declares");
    plan
}

fn elect(database: &SampleDB, observed: &Observed) -> Plan {
    let plan = failover::decide(database, observed).expect("it can be carried out");
    failovers().check(&plan).expect("it does what the controller declares");
    plan
}

fn lease(leadership: &Leadership) -> Lease {
    let mut lease: Lease = named("db");
    leadership.write(&mut lease);
    lease.spec.as_mut().unwrap().lease_duration_seconds = Some(10);
    lease
}

fn held() -> Leadership {
    let mut held = Leadership::first("db-0", 1);
    let holder = held.holder.as_mut().unwrap();
    holder.clone = Some("a".to_owned());
    holder.pod_uid = Some("pod-0".to_owned());
    holder.run = Some("run".to_owned());
    held.system_identifier = Some("7".to_owned());
    held.synchronous.clones = ["b".to_owned()].into();
    held
}

/// Whether the instances of a plan are told to insist on TLS.
fn insists_on_tls(plan: &Plan) -> bool {
    plan.applied::<SampleDBInstance>("db-1").unwrap().spec.tls
}

#[test]
fn replicas_insist_on_tls_unless_a_server_has_none() {
    let database = database(json!({}));
    let there = |tls: Option<bool>, role: ServerRole| {
        let status = |tls, role| SampleDBInstanceStatus { tls, role, ..Default::default() };
        let observed = Observed::empty()
            .with(instance("db-0", "a", status(Some(true), ServerRole::Primary)))
            .with(instance("db-1", "b", status(tls, role)));
        insists_on_tls(&provision(&database, &observed))
    };
    assert!(insists_on_tls(&provision(&database, &Observed::empty())), "from the beginning");
    assert!(there(Some(true), ServerRole::Replica));
    assert!(there(None, ServerRole::Stopped), "it has no server yet");
    assert!(!there(Some(false), ServerRole::Replica), "it was built without");
    assert!(!there(None, ServerRole::Replica), "an agent of an earlier version");
}

fn instance(name: &str, clone: &str, status: SampleDBInstanceStatus) -> SampleDBInstance {
    let mut instance: SampleDBInstance = object(
        name,
        json!({"metadata": {"labels": {"db.windlass.dev/database": "db"}}, "spec": {"database": "db", "instances": 3}}),
    );
    instance.status = Some(SampleDBInstanceStatus {
        clone: Some(clone.to_owned()),
        system_identifier: Some("7".to_owned()),
        ..status
    });
    instance
}

fn pod(name: &str, uid: &str, container: Value) -> Pod {
    let mut container = container;
    container["name"] = "postgres".into();
    for (field, value) in
        [("image", json!("i")), ("imageID", json!("i")), ("ready", json!(true)), ("restartCount", json!(0))]
    {
        container[field] = value;
    }
    object(
        name,
        json!({"metadata": {"uid": uid}, "status": {"podIP": "10.0.0.1", "containerStatuses": [container]}}),
    )
}

#[test]
fn a_new_database_waits_for_its_credentials_and_is_then_run() {
    let database = database(json!({}));
    let first = provision(&database, &Observed::empty());
    assert!(!first.is_complete() && first.applied::<StatefulSet>("db").is_none());
    assert!(first.applied::<Secret>("db-credentials").is_some());
    let secret: Secret = named("db-credentials");
    let plan = provision(&database, &Observed::empty().with(secret));
    let servers = plan.applied::<StatefulSet>("db").unwrap().spec.unwrap();
    assert_eq!(servers.replicas, Some(3));
    let pod = servers.template.spec.unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some("postgres:15"));
    assert_eq!(pod.init_containers.unwrap()[0].image.as_deref(), Some(IMAGE));
    assert!(plan.applied::<Service>("db-rw").unwrap().spec.unwrap().selector.is_none());
    assert!(plan.waits()[0].reason.to_string().contains("no primary yet"), "{plan}");
}

#[test]
fn agents_may_touch_their_own_objects_only() {
    let role: Role = provision(&database(json!({})), &Observed::empty()).applied("db").unwrap();
    for rule in role.rules.unwrap() {
        assert!(!rule.resource_names.clone().unwrap_or_default().is_empty(), "{rule:?}");
        assert!(
            !rule.verbs.iter().any(|verb| verb == "*" || verb == "create" || verb == "delete"),
            "{rule:?}"
        );
    }
}

/// A primary that takes writes, by its agent's word, by the kubelet's, and by the Service's endpoints.
fn open_primary() -> Observed {
    let status = SampleDBInstanceStatus {
        role: ServerRole::Primary,
        ready: true,
        pod_uid: Some("pod-0".to_owned()),
        ..Default::default()
    };
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    let pod: Pod =
        object("db-0", json!({"metadata": {"uid": "pod-0"}, "status": {"conditions": conditions}}));
    let endpoint = json!({"addresses": ["10.0.0.1"], "targetRef": {"uid": "pod-0"}});
    let slice: EndpointSlice = object("db-rw", json!({"addressType": "IPv4", "endpoints": [endpoint]}));
    Observed::empty()
        .with::<Secret>(named("db-credentials"))
        .with(lease(&held()))
        .with(instance("db-0", "a", status))
        .with(pod)
        .with(slice)
}

#[test]
fn the_schema_is_run_once_a_primary_is_there_and_never_again() {
    let mut database = database(json!({"initialSchema": {"name": "schema", "key": "a.sql"}}));
    let schema = |key: &str| -> ConfigMap { object("schema", json!({"data": {key: "SELECT 1"}})) };
    let observed = open_primary().with(schema("a.sql"));
    assert!(provision(&database, &observed).applied::<Job>("db-setup").is_some());
    let refusal = provisioning::decide(&database, &open_primary().with(schema("b.sql")), IMAGE).unwrap_err();
    assert!(refusal.to_string().contains("no key a.sql"), "{refusal}");
    database.status = Some(serde_json::from_value(json!({"setUp": true})).unwrap());
    assert!(provision(&database, &observed).applied::<Job>("db-setup").is_none());
}

#[test]
fn what_an_agent_said_before_it_ended_counts_no_more() {
    let status =
        |observed: &Observed| provision(&database(json!({"instances": 1})), observed).reported().cloned();
    let open = status(&open_primary()).unwrap();
    assert_eq!((&open["ready"], &open["primary"]), (&json!("1/1"), &json!("db-0")));
    let pod: Pod = object("db-0", json!({"metadata": {"uid": "another"}}));
    let report = SampleDBInstanceStatus {
        role: ServerRole::Primary,
        ready: true,
        pod_uid: Some("pod-0".to_owned()),
        ..Default::default()
    };
    let observed = Observed::empty()
        .with::<Secret>(named("db-credentials"))
        .with(lease(&held()))
        .with(instance("db-0", "a", report))
        .with(pod);
    let ended = status(&observed).unwrap();
    assert_eq!((&ended["ready"], &ended["primary"]), (&json!("0/1"), &Value::Null));
}

#[test]
fn the_first_instance_is_told_to_make_the_database() {
    let plan = elect(&database(json!({})), &Observed::empty());
    let leadership = Leadership::of(&plan.applied::<Lease>("db").unwrap()).unwrap();
    assert_eq!((leadership.epoch, leadership.synchronous.quorum), (1, 1));
    assert_eq!(leadership.holder.unwrap().instance, "db-0");
}

#[test]
fn a_primary_whose_container_ended_is_followed_by_a_replica_that_has_everything() {
    let database = database(json!({}));
    let ended = json!({"state": {"terminated": {"exitCode": 137, "message": "run"}}});
    let earlier = json!({"lastState": {"terminated": {"exitCode": 1, "message": "an earlier run"}}});
    let world = |leadership: &Leadership, container: &Value, status: SampleDBInstanceStatus| {
        Observed::empty()
            .with(lease(leadership))
            .with_unchanged_for::<Lease>("db", Duration::from_secs(1))
            .with(pod("db-0", "pod-0", container.clone()))
            .with(instance("db-1", "b", status))
    };
    let claimed = |plan: &Plan| plan.applied::<Lease>("db").map(|lease| Leadership::of(&lease).unwrap());
    // Another run's end, whatever times the kubelet's clock gave it.
    let quiet = elect(&database, &world(&held(), &earlier, SampleDBInstanceStatus::default()));
    assert!(claimed(&quiet).is_none(), "{quiet}");
    let vacant =
        claimed(&elect(&database, &world(&held(), &ended, SampleDBInstanceStatus::default()))).unwrap();
    assert_eq!((vacant.epoch, &vacant.holder), (2, &None));
    let answer =
        SampleDBInstanceStatus { epoch: 2, timeline: 1, flushed: Some(Lsn(9)), ..Default::default() };
    let elected = claimed(&elect(&database, &world(&vacant, &ended, answer))).unwrap();
    assert_eq!(elected.holder.unwrap().instance, "db-1");
}

#[test]
fn writes_go_to_a_primary_that_is_open_and_nowhere_else() {
    let database = database(json!({}));
    let running = json!({"state": {"running": {}}});
    let endpoints = |ready: bool, role: ServerRole| {
        let status = SampleDBInstanceStatus {
            ready,
            role,
            epoch: 1,
            pod_uid: Some("pod-0".to_owned()),
            ..Default::default()
        };
        let observed = Observed::empty()
            .with(lease(&held()))
            .with_unchanged_for::<Lease>("db", Duration::from_secs(1))
            .with(pod("db-0", "pod-0", running.clone()))
            .with(instance("db-0", "a", status));
        elect(&database, &observed)
            .applied::<EndpointSlice>("db-rw")
            .unwrap()
            .endpoints
            .unwrap_or_default()
            .len()
    };
    assert_eq!(endpoints(true, ServerRole::Primary), 1);
    assert_eq!(endpoints(false, ServerRole::Primary), 0);
    assert_eq!(endpoints(true, ServerRole::Replica), 0);
}

#[tokio::test]
async fn what_cannot_be_is_rejected_with_its_path() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install(sampledb_operator::crds()).await?;
    for (changes, path) in [
        (json!({"version": "latest"}), "spec.version"),
        (json!({"version": ""}), "spec.version"),
        (json!({"image": ""}), "spec.image"),
        (json!({"instances": 0}), "spec.instances"),
        (json!({"instances": 10}), "spec.instances"),
        (json!({"storage": {}}), "spec.storage.size"),
        (json!({"storage": {"size": "much"}}), "spec.storage.size"),
        (json!({"storage": {"size": "1Gi", "class": ""}}), "spec.storage.class"),
        (json!({"parameters": {"fsync": "off"}}), "spec.parameters"),
        (json!({"parameters": {"synchronous_commit": "off"}}), "spec.parameters"),
        (json!({"parameters": {"archive_command": "true"}}), "spec.parameters"),
        (json!({"parameters": {"ssl": "off"}}), "spec.parameters"),
        (json!({"parameters": {"Work_Mem": "1MB"}}), "spec.parameters"),
        (json!({"parameters": {"work_mem": "1\nfsync = off"}}), "spec.parameters.work_mem"),
        (json!({"database": "postgres"}), "spec.database"),
        (json!({"database": "a; drop"}), "spec.database"),
        (json!({"owner": "pg_admin"}), "spec.owner"),
        (json!({"owner": "replicator"}), "spec.owner"),
        (json!({"durability": "never"}), "spec.durability"),
        (json!({"initialSchema": {"name": "a"}}), "spec.initialSchema.key"),
        (json!({"leaseDurationSeconds": 1}), "spec.leaseDurationSeconds"),
    ] {
        let odd: Value = json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB", "metadata": {"name": "odd"}, "spec": spec(changes.clone()),
        });
        let kind = kube::core::ApiResource::erase::<SampleDB>(&());
        let api: kube::Api<kube::core::DynamicObject> =
            kube::Api::default_namespaced_with(cluster.client(), &kind);
        let refused = api.create(&Default::default(), &serde_json::from_value(odd)?).await;
        let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains(path), "{changes}: {refused:?}");
    }
    cluster
        .create(database(json!({"parameters": {"work_mem": "8MB", "auto_explain.log_min_duration": "1s"}})))
        .await?;
    for (change, message) in [
        (json!({"database": "other"}), "cannot be changed"),
        (json!({"owner": "other"}), "cannot be changed"),
        (
            json!({"storage": {"size": "512Mi"}}),
            "spec.storage.size: Invalid value: storage cannot be decreased",
        ),
    ] {
        let refused = cluster.patch::<SampleDB>("db", json!({ "spec": change })).await.unwrap_err();
        assert!(format!("{refused:#}").contains(message), "{change}: {refused:#}");
    }
    // A size that no claim has taken over can be taken back.
    cluster.patch::<SampleDB>("db", json!({"spec": {"storage": {"size": "2Gi"}}})).await?;
    cluster.patch_status::<SampleDB>("db", json!({"storage": {"requested": "1Gi"}})).await?;
    assert!(cluster.patch::<SampleDB>("db", json!({"spec": {"storage": {"size": "512Mi"}}})).await.is_err());
    cluster.patch::<SampleDB>("db", json!({"spec": {"storage": {"size": "1Gi"}}})).await?;
    Ok(())
}

/// Where a primary on node `a` goes, if it goes, with these replicas: their nodes, and whether they acknowledge commits.
fn goes_to(cordoned: &[&str], replicas: &[(&str, bool)], change: impl Fn(&mut Leadership)) -> Option<String> {
    let mut leadership = held();
    leadership.synchronous.clones.clear();
    let mut observed = Observed::empty();
    for node in ["a", "b", "c"] {
        let spec = json!({"unschedulable": cordoned.contains(&node)});
        observed = observed.with::<Node>(object(node, json!({ "spec": spec })));
    }
    let placed = |name: &str, node: &str| -> Pod {
        object(name, json!({"metadata": {"uid": name}, "spec": {"nodeName": node, "containers": []}}))
    };
    observed = observed.with(placed("db-0", "a"));
    for (index, (node, acknowledges)) in replicas.iter().enumerate() {
        let (name, clone) = (format!("db-{}", index + 1), format!("clone-{index}"));
        if *acknowledges {
            leadership.synchronous.clones.insert(clone.clone());
        }
        let status = SampleDBInstanceStatus {
            role: ServerRole::Replica,
            ready: true,
            pod_uid: Some(name.clone()),
            ..Default::default()
        };
        observed = observed.with(placed(&name, node)).with(instance(&name, &clone, status));
    }
    change(&mut leadership);
    let observed =
        observed.with(lease(&leadership)).with_unchanged_for::<Lease>("db", Duration::from_secs(1));
    let plan = elect(&database(json!({})), &observed);
    let stays =
        plan.stated().iter().any(|one| one.reason.name() == "StaysOnCordonedNode" && one.holds == Some(true));
    let target = plan.applied::<Lease>("db").and_then(|lease| Leadership::of(&lease).unwrap().switchover_to);
    let is_cordoned = cordoned.contains(&"a") && leadership.switchover_to.is_none();
    assert_eq!(stays, is_cordoned && target.is_none(), "{plan}");
    target
}

#[test]
fn a_primary_leaves_a_cordoned_node_for_a_replica_that_is_sure_to_follow_it() {
    let as_it_is = |_: &mut Leadership| ();
    let target = |cordoned: &[&str], replicas: &[(&str, bool)]| goes_to(cordoned, replicas, as_it_is);
    assert_eq!(target(&["a"], &[("b", true), ("c", true)]).as_deref(), Some("db-1"));
    assert_eq!(target(&["a"], &[("a", true), ("c", true)]).as_deref(), Some("db-2"));
    assert_eq!(target(&["a", "b"], &[("b", true), ("c", true)]).as_deref(), Some("db-2"));
    assert_eq!(target(&["a"], &[("b", false), ("c", true)]).as_deref(), Some("db-2"));
    // Nobody elsewhere could take over for sure: it stays.
    assert_eq!(target(&["a"], &[("a", true), ("a", true)]), None);
    assert_eq!(target(&["a", "b", "c"], &[("b", true), ("c", true)]), None);
    assert_eq!(target(&["a"], &[("b", false), ("unknown", true)]), None);
    assert_eq!(target(&["a"], &[]), None);
    // Where it may stay it does, whatever became of others.
    assert_eq!(target(&["b", "c"], &[("b", true), ("c", true)]), None);
    // Once is enough.
    let asked = |leadership: &mut Leadership| leadership.switchover_to = Some("db-2".to_owned());
    assert_eq!(goes_to(&["a"], &[("b", true), ("c", true)], asked), None);
}

#[test]
fn a_primary_leaves_a_full_volume_for_a_replica_with_room() {
    let status = |role: ServerRole, volume_full: bool| SampleDBInstanceStatus {
        role,
        ready: true,
        volume_full,
        ..Default::default()
    };
    let plan = |first: bool, second: bool| {
        let mut leadership = held();
        leadership.synchronous.clones = ["b".to_owned(), "c".to_owned()].into();
        let observed = Observed::empty()
            .with(instance("db-0", "a", status(ServerRole::Primary, true)))
            .with(instance("db-1", "b", status(ServerRole::Replica, first)))
            .with(instance("db-2", "c", status(ServerRole::Replica, second)))
            .with(lease(&leadership))
            .with_unchanged_for::<Lease>("db", Duration::from_secs(1));
        elect(&database(json!({})), &observed)
    };
    let target = |plan: &Plan| {
        plan.applied::<Lease>("db").and_then(|lease| Leadership::of(&lease).unwrap().switchover_to)
    };
    assert_eq!(target(&plan(false, false)).as_deref(), Some("db-1"));
    assert_eq!(target(&plan(true, false)).as_deref(), Some("db-2"));
    let stays = plan(true, true);
    assert_eq!(target(&stays), None);
    assert!(stays.stated().iter().any(|one| one.reason.name() == "StaysOnFullVolume"), "{stays}");
}
