//! The objects that an archive consists of.

use super::{agent_container, container_security, labels, read, volume_pod_security};
use crate::api::v1alpha1::{SampleDB, SampleDBArchive, SampleDBArchiveSpec};
use crate::archive::{ACCESS, CERTIFICATE, PORT, TOKEN, VOLUME};
use crate::settings::SOCKETS;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass::{Certificate, CertificateAuthority, Generate};

/// The label of everything that belongs to an archive. The database's label is not on it: the archive is not the database's.
const ARCHIVE_LABEL: &str = "db.windlass.dev/archive";
/// Its container, and its port.
const NAME: &str = "archive";

/// The archive of a database that runs an image, if it has one.
pub(crate) fn of(database: &SampleDB, image: &str) -> Option<SampleDBArchive> {
    let backup = database.spec.backup.as_ref()?;
    let spec = SampleDBArchiveSpec {
        database: database.name_any(),
        database_uid: database.uid().unwrap_or_default(),
        image: image.to_owned(),
        storage: backup.storage.clone(),
    };
    let mut archive = SampleDBArchive::new(&database.archive_name(), spec);
    archive.metadata.labels = Some(labels(database));
    Some(archive)
}

/// The name of an archive's Service, Deployment, Secret and claim.
pub(crate) fn name(archive: &str) -> String {
    format!("{archive}-archive")
}

fn authority_name(archive: &str) -> String {
    format!("{archive}-archive-ca")
}

fn certificate_name(archive: &str) -> String {
    format!("{archive}-archive-tls")
}

/// Where an archive is reached.
pub(crate) fn host(archive: &str, namespace: &str) -> String {
    format!("{}.{namespace}.svc", name(archive))
}

fn selector(archive: &SampleDBArchive) -> BTreeMap<String, String> {
    BTreeMap::from([(ARCHIVE_LABEL.to_owned(), archive.name_any())])
}

fn metadata(archive: &SampleDBArchive, name: String) -> ObjectMeta {
    let mut labels = selector(archive);
    labels.insert("app.kubernetes.io/name".to_owned(), "sampledb-archive".to_owned());
    labels.insert("app.kubernetes.io/instance".to_owned(), archive.name_any());
    ObjectMeta { name: Some(name), labels: Some(labels), ..Default::default() }
}

/// The token of those who may ask.
pub(crate) fn secret(archive: &SampleDBArchive) -> (Secret, Generate) {
    let secret = Secret { metadata: metadata(archive, name(&archive.name_any())), ..Default::default() };
    (secret, Generate::new().text(format!("/stringData/{TOKEN}"), 32))
}

/// The certificate authority that signs for the archive alone.
pub(crate) fn certificate_authority(archive: &SampleDBArchive) -> (Secret, Generate) {
    let generate = Generate::new().certificate_authority(CertificateAuthority::new());
    (tls_secret(archive, authority_name(&archive.name_any())), generate)
}

/// Its certificate, by every name under which it is reached.
pub(crate) fn certificate(archive: &SampleDBArchive) -> (Secret, Generate) {
    let (own, namespace) = (archive.name_any(), archive.namespace().unwrap_or_default());
    let names = [name(&own), host(&own, &namespace), format!("{}.cluster.local", host(&own, &namespace))];
    let generate = Generate::new().certificate(Certificate::server(names, authority_name(&own)));
    (tls_secret(archive, certificate_name(&own)), generate)
}

fn tls_secret(archive: &SampleDBArchive, name: String) -> Secret {
    let metadata = metadata(archive, name);
    Secret { metadata, type_: Some("kubernetes.io/tls".to_owned()), ..Default::default() }
}

/// Its volume.
pub(crate) fn claim(archive: &SampleDBArchive) -> PersistentVolumeClaim {
    let storage = &archive.spec.storage;
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage.class,
        "resources": { "requests": { "storage": storage.size } },
    });
    let metadata = metadata(archive, name(&archive.name_any()));
    PersistentVolumeClaim { metadata, spec: Some(read(spec)), ..Default::default() }
}

pub(crate) fn service(archive: &SampleDBArchive) -> Service {
    let spec = json!({
        "selector": selector(archive),
        "ports": [{ "name": NAME, "port": PORT, "targetPort": NAME }],
    });
    let metadata = metadata(archive, name(&archive.name_any()));
    Service { metadata, spec: Some(read(spec)), ..Default::default() }
}

/// What a pod mounts that asks an archive, as a volume of this name. Where the archive is gone, it starts without.
pub(crate) fn access(archive: &str, volume: &str) -> Value {
    let secret = |name: String, key: &str| json!({ "secret": { "name": name, "items": [{ "key": key, "path": key }], "optional": true } });
    let sources = [secret(name(archive), TOKEN), secret(certificate_name(archive), "ca.crt")];
    json!({ "name": volume, "projected": { "defaultMode": 0o440, "sources": sources } })
}

/// Its pod. One at a time, whose programs are those of the database: they verify what they take.
pub(crate) fn deployment(archive: &SampleDBArchive, agent_image: &str) -> Deployment {
    let own = archive.name_any();
    let spec = json!({
        "replicas": 1,
        "strategy": { "type": "Recreate" },
        "selector": { "matchLabels": selector(archive) },
        "template": {
            "metadata": { "labels": metadata(archive, own.clone()).labels },
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 10,
                "securityContext": volume_pod_security(),
                "initContainers": [agent_container(agent_image)],
                "containers": [{
                    "name": NAME,
                    "image": archive.spec.image,
                    "command": ["/agent/sampledb-agent", "archive"],
                    "env": [{ "name": "SAMPLEDB_ARCHIVE", "value": own }],
                    "ports": [{ "name": NAME, "containerPort": PORT }],
                    "readinessProbe": { "tcpSocket": { "port": NAME }, "periodSeconds": 2 },
                    "securityContext": container_security(),
                    "volumeMounts": [
                        { "name": "agent", "mountPath": "/agent", "readOnly": true },
                        { "name": "backups", "mountPath": VOLUME },
                        { "name": "scratch", "mountPath": SOCKETS },
                        { "name": "tls", "mountPath": CERTIFICATE, "readOnly": true },
                        { "name": "access", "mountPath": ACCESS, "readOnly": true },
                    ],
                }],
                "volumes": [
                    { "name": "agent", "emptyDir": {} },
                    // It holds a password for as long as a backup is taken.
                    { "name": "scratch", "emptyDir": { "medium": "Memory" } },
                    { "name": "backups", "persistentVolumeClaim": { "claimName": name(&own) } },
                    { "name": "tls", "secret": { "secretName": certificate_name(&own), "defaultMode": 0o440 } },
                    { "name": "access", "secret": {
                        "secretName": name(&own), "defaultMode": 0o440, "items": [{ "key": TOKEN, "path": TOKEN }],
                    } },
                ],
            },
        },
    });
    Deployment { metadata: metadata(archive, name(&own)), spec: Some(read(spec)), ..Default::default() }
}
