//! The objects that a database consists of, as YAML would have them.
//!
//! - `archive`: those of its archive; `backup`: those by which a backup is taken; `upgrade`: those of an upgrade

pub(crate) mod archive;
pub(crate) mod backup;
pub(crate) mod upgrade;

use crate::agent::metrics;
use crate::api::v1alpha1::{ConfigMapKey, SampleDB, SampleDBInstance, SampleDBInstanceSpec};
use crate::archive::ACCESS;
use crate::settings::{
    CREDENTIALS, OWNER_PASSWORD, PORT, REPLICATION_PASSWORD, SOCKETS, TLS, VOLUME, variables,
};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass::{Certificate, CertificateAuthority, Generate};

/// The label of everything that belongs to a database.
pub(crate) const DATABASE_LABEL: &str = "db.windlass.dev/database";
/// The label of pods that says what their servers are.
pub(crate) const ROLE_LABEL: &str = "db.windlass.dev/role";
/// The user of the official image.
const USER: i64 = 999;
/// The container with the server.
pub(crate) const CONTAINER: &str = "postgres";
/// The volume with the data.
const DATA: &str = "data";
/// Longer than the agent gives its server.
const GRACE_SECONDS: i64 = 90;

/// What selects the pods and the instances of a database.
pub(crate) fn selector(database: &str) -> [(String, String); 1] {
    [(DATABASE_LABEL.to_owned(), database.to_owned())]
}

fn labels(database: &SampleDB) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from(selector(&database.name_any()));
    labels.insert("app.kubernetes.io/name".to_owned(), "sampledb".to_owned());
    labels.insert("app.kubernetes.io/instance".to_owned(), database.name_any());
    labels
}

fn metadata(database: &SampleDB, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels(database)), ..Default::default() }
}

/// The name of an instance, which is that of its pod.
pub(crate) fn instance_name(database: &SampleDB, ordinal: i32) -> String {
    format!("{}-{ordinal}", database.name_any())
}

/// The ordinal of an instance.
pub(crate) fn ordinal(database: &str, instance: &str) -> Option<i32> {
    instance.strip_prefix(database)?.strip_prefix('-')?.parse().ok()
}

/// The claim of an instance.
pub(crate) fn claim_name(database: &SampleDB, ordinal: i32) -> String {
    format!("{DATA}-{}", instance_name(database, ordinal))
}

pub(crate) fn secret_name(database: &SampleDB) -> String {
    format!("{}-credentials", database.name_any())
}

pub(crate) fn read_write_name(database: &SampleDB) -> String {
    format!("{}-rw", database.name_any())
}

fn instances_service_name(database: &SampleDB) -> String {
    format!("{}-instances", database.name_any())
}

/// The owner's credentials, and those of the replicas.
pub(crate) fn secret(database: &SampleDB) -> (Secret, Generate) {
    let data = json!({
        "username": database.spec.owner,
        "database": database.spec.database,
        "host": read_write_name(database),
        "port": PORT.to_string(),
    });
    let metadata = metadata(database, &secret_name(database));
    let secret = Secret { metadata, string_data: Some(read(data)), ..Default::default() };
    let generate = Generate::new()
        .text(format!("/stringData/{OWNER_PASSWORD}"), 32)
        .text(format!("/stringData/{REPLICATION_PASSWORD}"), 32);
    (secret, generate)
}

/// The certificate authority that signs for the instances alone.
pub(crate) fn certificate_authority(database: &SampleDB) -> (Secret, Generate) {
    let generate = Generate::new().certificate_authority(CertificateAuthority::new());
    (tls_secret(database, &authority_name(database)), generate)
}

/// The certificate of the instances, by every name under which they are reached.
pub(crate) fn certificate(database: &SampleDB) -> (Secret, Generate) {
    let (name, namespace) = (database.name_any(), database.namespace().unwrap_or_default());
    let instances = format!("*.{}", instances_service_name(database));
    let services = [read_write_name(database), format!("{name}-ro"), instances];
    let names = services.iter().flat_map(|service| {
        let qualified = format!("{service}.{namespace}.svc");
        [service.clone(), format!("{service}.{namespace}"), format!("{qualified}.cluster.local"), qualified]
    });
    let names = names.chain(["localhost".to_owned()]);
    let generate = Generate::new().certificate(Certificate::server(names, authority_name(database)));
    (tls_secret(database, &certificate_name(database)), generate)
}

fn authority_name(database: &SampleDB) -> String {
    format!("{}-ca", database.name_any())
}

fn certificate_name(database: &SampleDB) -> String {
    format!("{}-tls", database.name_any())
}

fn tls_secret(database: &SampleDB, name: &str) -> Secret {
    let metadata = metadata(database, name);
    Secret { metadata, type_: Some("kubernetes.io/tls".to_owned()), ..Default::default() }
}

pub(crate) fn account(database: &SampleDB) -> ServiceAccount {
    ServiceAccount { metadata: metadata(database, &database.name_any()), ..Default::default() }
}

/// What the agents may do: read and write the database's Lease, and report.
pub(crate) fn role(database: &SampleDB, instances: &[String]) -> Role {
    let rules = json!([
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [database.name_any()],
            "verbs": ["get", "watch", "update"],
        },
        {
            "apiGroups": ["db.windlass.dev"],
            "resources": ["sampledbinstances"],
            "resourceNames": instances,
            "verbs": ["get", "watch"],
        },
        {
            "apiGroups": ["db.windlass.dev"],
            "resources": ["sampledbinstances/status"],
            "resourceNames": instances,
            "verbs": ["patch"],
        },
    ]);
    Role { metadata: metadata(database, &database.name_any()), rules: Some(read(rules)) }
}

pub(crate) fn role_binding(database: &SampleDB) -> RoleBinding {
    let name = database.name_any();
    let subject = json!({ "kind": "ServiceAccount", "name": name, "namespace": database.namespace() });
    RoleBinding {
        metadata: metadata(database, &name),
        role_ref: read(json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name })),
        subjects: Some(read(json!([subject]))),
    }
}

pub(crate) fn instance(database: &SampleDB, name: &str, spec: SampleDBInstanceSpec) -> SampleDBInstance {
    let mut instance = SampleDBInstance::new(name, spec);
    instance.metadata.labels = Some(labels(database));
    instance
}

/// The Services: for writes, for reads, and the names of the instances.
pub(crate) fn services(database: &SampleDB) -> [Service; 3] {
    let port = json!({ "name": CONTAINER, "port": PORT, "targetPort": CONTAINER });
    let mut replicas = BTreeMap::from(selector(&database.name_any()));
    replicas.insert(ROLE_LABEL.to_owned(), "replica".to_owned());
    let service = |name: &str, spec: Value| Service {
        metadata: metadata(database, name),
        spec: Some(read(spec)),
        ..Default::default()
    };
    [
        // Its endpoints are the operator's own: no label could be taken from one pod and given to another at once.
        service(
            &read_write_name(database),
            json!({ "ports": [{ "name": CONTAINER, "port": PORT, "targetPort": PORT }] }),
        ),
        service(&format!("{}-ro", database.name_any()), json!({ "selector": replicas, "ports": [port] })),
        service(
            &instances_service_name(database),
            json!({
                "clusterIP": "None",
                "selector": BTreeMap::from(selector(&database.name_any())),
                "ports": [port],
                // Replicas reach a primary that is not open for others yet.
                "publishNotReadyAddresses": true,
            }),
        ),
    ]
}

/// Where writes go: to one pod, or nowhere.
pub(crate) fn read_write_endpoints(database: &SampleDB, primary: Option<&Pod>) -> EndpointSlice {
    let mut metadata = metadata(database, &read_write_name(database));
    let labels = metadata.labels.get_or_insert_default();
    labels.insert("kubernetes.io/service-name".to_owned(), read_write_name(database));
    labels.insert("endpointslice.kubernetes.io/managed-by".to_owned(), "sampledb-operator".to_owned());
    let address = primary.and_then(|pod| Some((pod, pod.status.as_ref()?.pod_ip.clone()?)));
    let endpoints: Vec<Value> = address
        .iter()
        .map(|(pod, address)| {
            json!({
                "addresses": [address],
                "conditions": { "ready": true },
                "nodeName": pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
                "targetRef": {
                    "kind": Pod::kind(&()),
                    "name": pod.name_any(),
                    "namespace": pod.namespace(),
                    "uid": pod.uid(),
                },
            })
        })
        .collect();
    let is_ipv6 = address.as_ref().is_some_and(|(_, address)| address.contains(':'));
    EndpointSlice {
        metadata,
        address_type: if is_ipv6 { "IPv6" } else { "IPv4" }.to_owned(),
        endpoints: Some(read(endpoints.into())),
        ports: Some(read(json!([{ "name": CONTAINER, "port": PORT, "protocol": "TCP" }]))),
    }
}

pub(crate) fn disruption_budget(database: &SampleDB) -> PodDisruptionBudget {
    let spec = json!({
        "maxUnavailable": 1,
        "selector": { "matchLabels": BTreeMap::from(selector(&database.name_any())) },
    });
    let metadata = metadata(database, &database.name_any());
    PodDisruptionBudget { metadata, spec: Some(read(spec)), ..Default::default() }
}

pub(crate) fn image(database: &SampleDB) -> String {
    database.spec.image.clone().unwrap_or_else(|| format!("postgres:{}", database.spec.version))
}

/// The instances.
pub(crate) fn servers(
    database: &SampleDB,
    replicas: i32,
    image: &str,
    agent_image: &str,
    restored_from: Option<&str>,
) -> StatefulSet {
    let storage = &database.spec.storage;
    let claim = json!({
        "metadata": { "name": DATA },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage.class,
            "resources": { "requests": { "storage": storage.size } },
        },
    });
    let spec = json!({
        "replicas": replicas,
        "serviceName": instances_service_name(database),
        "podManagementPolicy": "Parallel",
        // The operator deletes pods itself, in its own order.
        "updateStrategy": { "type": "OnDelete" },
        "selector": { "matchLabels": BTreeMap::from(selector(&database.name_any())) },
        "template": {
            "metadata": {
                "labels": labels(database),
                "annotations": { "kubectl.kubernetes.io/default-container": CONTAINER },
            },
            "spec": pod(database, image, agent_image, restored_from),
        },
        "volumeClaimTemplates": [claim],
    });
    StatefulSet {
        metadata: metadata(database, &database.name_any()),
        spec: Some(read(spec)),
        ..Default::default()
    }
}

/// The pod of an instance; `restored_from` is the archive that its data may come from.
fn pod(database: &SampleDB, image: &str, agent_image: &str, restored_from: Option<&str>) -> Value {
    let mut pod = plain_pod(database, image, agent_image);
    if let Some(archive) = restored_from {
        let mount = json!({ "name": "archive", "mountPath": ACCESS, "readOnly": true });
        add(&mut pod["containers"][0]["volumeMounts"], mount);
        add(&mut pod["volumes"], archive::access(archive, "archive"));
    }
    pod
}

fn add(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

/// What an agent is told by its environment; of the instance that its pod is named after, or of another.
fn instance_variables(database: &SampleDB, instance: Option<&str>) -> Vec<Value> {
    let field =
        |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let value = |name: &str, value: &str| json!({ "name": name, "value": value });
    vec![
        value(variables::DATABASE, &database.name_any()),
        field(variables::NAMESPACE, "metadata.namespace"),
        match instance {
            Some(instance) => value(variables::INSTANCE, instance),
            None => field(variables::INSTANCE, "metadata.name"),
        },
        field(variables::POD_UID, "metadata.uid"),
        value(variables::SERVICE, &instances_service_name(database)),
        value(variables::CREATE, &database.spec.database),
        value(variables::OWNER, &database.spec.owner),
    ]
}

fn plain_pod(database: &SampleDB, image: &str, agent_image: &str) -> Value {
    let probe = |question: &str| json!({ "command": ["/agent/sampledb-agent", "probe", question] });
    let memory = database
        .spec
        .resources
        .as_ref()
        .and_then(|resources| resources.limits.as_ref().and_then(|limits| limits.get("memory")).cloned());
    json!({
        "serviceAccountName": database.name_any(),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": volume_pod_security(),
        "affinity": affinity(database),
        "initContainers": [agent_container(agent_image)],
        "containers": [{
            "name": CONTAINER,
            "image": image,
            "command": ["/agent/sampledb-agent", "run"],
            "env": instance_variables(database, None),
            "ports": [
                { "name": CONTAINER, "containerPort": PORT },
                { "name": "metrics", "containerPort": metrics::PORT },
            ],
            "resources": database.spec.resources,
            "readinessProbe": { "exec": probe("ready"), "periodSeconds": 1, "timeoutSeconds": 5 },
            // It asks the agent, not the server: a recovery takes its time.
            "livenessProbe": { "exec": probe("live"), "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3 },
            "securityContext": container_security(),
            "volumeMounts": [
                { "name": DATA, "mountPath": VOLUME },
                { "name": "agent", "mountPath": "/agent", "readOnly": true },
                { "name": "sockets", "mountPath": SOCKETS },
                { "name": "credentials", "mountPath": CREDENTIALS, "readOnly": true },
                { "name": "tls", "mountPath": TLS, "readOnly": true },
                { "name": "shared-memory", "mountPath": "/dev/shm" },
            ],
        }],
        "volumes": [
            { "name": "agent", "emptyDir": {} },
            { "name": "sockets", "emptyDir": {} },
            { "name": "credentials", "secret": { "secretName": secret_name(database), "defaultMode": 0o440 } },
            { "name": "tls", "secret": { "secretName": certificate_name(database), "defaultMode": 0o440 } },
            // A runtime's own has 64 MiB, which parallel queries exceed.
            { "name": "shared-memory", "emptyDir": { "medium": "Memory", "sizeLimit": memory } },
        ],
    })
}

/// Of the pods that mount a volume with data.
fn volume_pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// Brings the agent into a pod whose other containers are of the server's image.
fn agent_container(image: &str) -> Value {
    json!({
        "name": "agent",
        "image": image,
        "command": ["sampledb-agent", "install", "/agent"],
        "securityContext": container_security(),
        "volumeMounts": [{ "name": "agent", "mountPath": "/agent" }],
    })
}

fn container_security() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

/// By default each instance is on a node of its own if there are enough.
fn affinity(database: &SampleDB) -> Value {
    match &database.spec.affinity {
        Some(affinity) => json!(affinity),
        None => json!({
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": { "matchLabels": BTreeMap::from(selector(&database.name_any())) },
                    },
                }],
            },
        }),
    }
}

/// Runs the initial schema and a mark that it was run, in one transaction. With the mark it does nothing.
const SETUP: &str = r#"
SELECT pg_advisory_xact_lock(7300736);
CREATE SCHEMA IF NOT EXISTS sampledb_setup;
CREATE TABLE IF NOT EXISTS sampledb_setup.done (at timestamptz NOT NULL DEFAULT now());
SELECT NOT EXISTS (SELECT FROM sampledb_setup.done) AS todo \gset
\if :todo
\i '/schema/schema.sql'
INSERT INTO sampledb_setup.done DEFAULT VALUES;
\endif
"#;

pub(crate) fn setup(database: &SampleDB, schema: &ConfigMapKey) -> Job {
    let from = |name: &str, key: &str| {
        json!({
            "name": name,
            "valueFrom": { "secretKeyRef": { "name": secret_name(database), "key": key } },
        })
    };
    let name = format!("{}-setup", database.name_any());
    let spec = json!({
        "backoffLimit": 6,
        "template": {
            "metadata": { "labels": { "app.kubernetes.io/name": "sampledb-setup" } },
            "spec": {
                "restartPolicy": "OnFailure",
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": USER,
                    "runAsGroup": USER,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "setup",
                    "image": image(database),
                    "command": [
                        "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--single-transaction",
                        "--set", "ON_ERROR_STOP=1", "--file", "/setup/setup.sql",
                    ],
                    "env": [
                        from("PGHOST", "host"),
                        from("PGPORT", "port"),
                        from("PGUSER", "username"),
                        from("PGDATABASE", "database"),
                        from("PGPASSWORD", OWNER_PASSWORD),
                        { "name": "PGCONNECT_TIMEOUT", "value": "10" },
                    ],
                    "securityContext": container_security(),
                    "volumeMounts": [
                        { "name": "schema", "mountPath": "/schema", "readOnly": true },
                        { "name": "setup", "mountPath": "/setup", "readOnly": true },
                    ],
                }],
                "volumes": [
                    {
                        "name": "schema",
                        "configMap": {
                            "name": schema.name,
                            "items": [{ "key": schema.key, "path": "schema.sql" }],
                        },
                    },
                    { "name": "setup", "configMap": { "name": setup_name(database) } },
                ],
            },
        },
    });
    Job { metadata: metadata(database, &name), spec: Some(read(spec)), ..Default::default() }
}

fn setup_name(database: &SampleDB) -> String {
    format!("{}-setup", database.name_any())
}

/// The script of the setup Job.
pub(crate) fn setup_script(database: &SampleDB) -> k8s_openapi::api::core::v1::ConfigMap {
    k8s_openapi::api::core::v1::ConfigMap {
        metadata: metadata(database, &setup_name(database)),
        data: Some(BTreeMap::from([("setup.sql".to_owned(), SETUP.to_owned())])),
        ..Default::default()
    }
}

/// What is written above, as its type; the tests read every object.
fn read<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).expect("objects written in this file are of their types")
}
