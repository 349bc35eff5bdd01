//! The Jobs that bring data from one major version to the next, and back.

use super::{
    CONTAINER, DATA, agent_container, container_security, instance_variables, metadata, read,
    volume_pod_security,
};
use crate::api::v1alpha1::SampleDB;
use crate::data_version::{ACCEPT_COLLATIONS, Upgrade};
use crate::settings::{OLD_PROGRAMS, SOCKETS, VOLUME, upgrade_variables};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::{Value, json};

/// How often the pod of a Job is tried again: what pg_upgrade refuses, it refuses again.
const RETRIES: i32 = 1;
/// The longest that a Job may take.
const LONGEST_SECONDS: i64 = 48 * 3600;
/// How long a Job that has ended can be looked at.
const KEPT_SECONDS: i32 = 24 * 3600;

/// The name of the Job of an attempt.
pub(crate) fn name(database: &SampleDB, attempt: i32) -> String {
    format!("{}-upgrade-{attempt}", database.name_any())
}

/// Makes data of the next version beside that of the last, and puts it into its place.
pub(crate) fn upgrade(
    database: &SampleDB,
    from: (&str, &str),
    upgrade: &Upgrade,
    instance: &str,
    attempt: i32,
    agent_image: &str,
) -> Job {
    let (from, from_image) = from;
    let accepts = database.annotations().get(ACCEPT_COLLATIONS).is_some_and(|value| value == "true");
    let mut job =
        job(database, instance, attempt, agent_image, &upgrade.image, "upgrade", (from, &upgrade.to));
    let pod = &mut job["template"]["spec"];
    let mount = json!({ "name": "old-programs", "mountPath": OLD_PROGRAMS });
    super::add(&mut pod["volumes"], json!({ "name": "old-programs", "emptyDir": {} }));
    super::add(&mut pod["containers"][0]["volumeMounts"], mount.clone());
    super::add(
        &mut pod["containers"][0]["env"],
        json!({ "name": upgrade_variables::ACCEPT_COLLATIONS, "value": accepts.to_string() }),
    );
    // pg_upgrade needs the programs of both versions, and an image has one.
    super::add(
        &mut pod["initContainers"],
        json!({
            "name": "old-programs",
            "image": from_image,
            "command": ["/agent/sampledb-agent", "collect-programs", OLD_PROGRAMS],
            "securityContext": container_security(),
            "volumeMounts": [{ "name": "agent", "mountPath": "/agent", "readOnly": true }, mount],
        }),
    );
    written(database, attempt, job)
}

/// Puts the data of the last version back into its place.
pub(crate) fn revert(
    database: &SampleDB,
    from: (&str, &str),
    upgrade: &Upgrade,
    instance: &str,
    attempt: i32,
    agent_image: &str,
) -> Job {
    let (from, from_image) = from;
    written(
        database,
        attempt,
        job(database, instance, attempt, agent_image, from_image, "revert-upgrade", (from, &upgrade.to)),
    )
}

fn written(database: &SampleDB, attempt: i32, spec: Value) -> Job {
    Job {
        metadata: metadata(database, &name(database, attempt)),
        spec: Some(read(spec)),
        ..Default::default()
    }
}

fn job(
    database: &SampleDB,
    instance: &str,
    attempt: i32,
    agent_image: &str,
    image: &str,
    command: &str,
    (from, to): (&str, &str),
) -> Value {
    let value = |name: &str, value: String| json!({ "name": name, "value": value });
    let mut environment = instance_variables(database, Some(instance));
    environment.extend([
        value(upgrade_variables::FROM, from.to_owned()),
        value(upgrade_variables::TO, to.to_owned()),
        value(upgrade_variables::ATTEMPT, attempt.to_string()),
    ]);
    json!({
        "backoffLimit": RETRIES,
        "activeDeadlineSeconds": LONGEST_SECONDS,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "template": {
            "metadata": { "labels": { "app.kubernetes.io/name": "sampledb-upgrade" } },
            "spec": {
                "restartPolicy": "Never",
                // It reports as the instance's agent does.
                "serviceAccountName": database.name_any(),
                "securityContext": volume_pod_security(),
                "initContainers": [agent_container(agent_image)],
                "containers": [{
                    "name": CONTAINER,
                    "image": image,
                    "command": ["/agent/sampledb-agent", command],
                    "env": environment,
                    "resources": database.spec.resources,
                    "securityContext": container_security(),
                    "volumeMounts": [
                        { "name": DATA, "mountPath": VOLUME },
                        { "name": "agent", "mountPath": "/agent", "readOnly": true },
                        { "name": "sockets", "mountPath": SOCKETS },
                    ],
                }],
                "volumes": [
                    { "name": DATA, "persistentVolumeClaim": { "claimName": format!("{DATA}-{instance}") } },
                    { "name": "agent", "emptyDir": {} },
                    { "name": "sockets", "emptyDir": {} },
                ],
            },
        },
    })
}
