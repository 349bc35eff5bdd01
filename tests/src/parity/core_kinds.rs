//! Validation and field selectors of ConfigMaps, Secrets, Leases, Events and other kinds.

use super::admission::with_account;
use super::{Behaviour, Script};
use serde_json::{Value, json};

/// Objects that are created: the kind's name here, and the fields.
const OBJECTS: &[(&str, &str, &str)] = &[
    ("a key with a slash", "ConfigMap", r#"{"data":{"a/b":""}}"#),
    ("an empty key", "ConfigMap", r#"{"data":{"":"x"}}"#),
    ("a key of two dots", "ConfigMap", r#"{"data":{"..":"x"}}"#),
    ("a key that begins with two dots", "ConfigMap", r#"{"data":{"..a":"x"}}"#),
    ("a key in both maps", "ConfigMap", r#"{"data":{"a":"x"},"binaryData":{"a":"eA=="}}"#),
    ("binary data", "ConfigMap", r#"{"binaryData":{"a":"eA=="}}"#),
    ("binary data that is not base64", "ConfigMap", r#"{"binaryData":{"a":"?"}}"#),
    ("data that is null", "ConfigMap", r#"{"data":{"a":null}}"#),
    ("immutable from the start", "ConfigMap", r#"{"immutable":true,"data":{"a":"x"}}"#),
    ("string data wins over data", "Secret", r#"{"data":{"a":"eA=="},"stringData":{"a":"y"}}"#),
    ("data that is not base64", "Secret", r#"{"data":{"a":"?"}}"#),
    ("a key with a space", "Secret", r#"{"data":{"a b":"eA=="}}"#),
    ("a type of one's own", "Secret", r#"{"type":"example.com/mine"}"#),
    ("TLS without its keys", "Secret", r#"{"type":"kubernetes.io/tls"}"#),
    (
        "TLS with empty keys",
        "Secret",
        r#"{"type":"kubernetes.io/tls","stringData":{"tls.crt":"","tls.key":""}}"#,
    ),
    (
        "TLS with a key for a certificate",
        "Secret",
        r#"{"type":"kubernetes.io/tls","stringData":{"tls.crt":"-----BEGIN PRIVATE KEY-----\naGk=\n-----END PRIVATE KEY-----\n","tls.key":""}}"#,
    ),
    (
        "TLS with something else for a certificate",
        "Secret",
        r#"{"type":"kubernetes.io/tls","stringData":{"tls.crt":"-----BEGIN A-----\naGk=\n-----END A-----\n-----BEGIN B-----\naGk=\n-----END B-----\n","tls.key":""}}"#,
    ),
    ("basic auth without anything", "Secret", r#"{"type":"kubernetes.io/basic-auth"}"#),
    (
        "basic auth with a name",
        "Secret",
        r#"{"type":"kubernetes.io/basic-auth","stringData":{"username":"a"}}"#,
    ),
    ("ssh auth without its key", "Secret", r#"{"type":"kubernetes.io/ssh-auth"}"#),
    (
        "a docker config that is no JSON",
        "Secret",
        r#"{"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"x"}}"#,
    ),
    ("a docker config that is missing", "Secret", r#"{"type":"kubernetes.io/dockerconfigjson"}"#),
    (
        "an old docker config",
        "Secret",
        r#"{"type":"kubernetes.io/dockercfg","stringData":{".dockercfg":"{}"}}"#,
    ),
    ("a token of nobody", "Secret", r#"{"type":"kubernetes.io/service-account-token"}"#),
    ("a duration of zero", "Lease", r#"{"spec":{"leaseDurationSeconds":0}}"#),
    ("transitions below zero", "Lease", r#"{"spec":{"leaseTransitions":-1}}"#),
    ("an empty holder", "Lease", r#"{"spec":{"holderIdentity":""}}"#),
    ("a time without parts of a second", "Lease", r#"{"spec":{"renewTime":"2020-01-01T00:00:00Z"}}"#),
    ("a time with nanoseconds", "Lease", r#"{"spec":{"renewTime":"2020-01-01T00:00:00.123456789Z"}}"#),
    ("a time that is none", "Lease", r#"{"spec":{"renewTime":"soon"}}"#),
    ("a duration that is a string", "Lease", r#"{"spec":{"leaseDurationSeconds":"15"}}"#),
    ("a duration that is too large", "Lease", r#"{"spec":{"leaseDurationSeconds":4294967296}}"#),
    ("a strategy of election", "Lease", r#"{"spec":{"strategy":"OldestEmulationVersion"}}"#),
    ("a preferred holder without a strategy", "Lease", r#"{"spec":{"preferredHolder":"a"}}"#),
    ("about nothing", "Event", "{}"),
    (
        "about an object elsewhere",
        "Event",
        r#"{"involvedObject":{"kind":"ConfigMap","namespace":"elsewhere","name":"a"}}"#,
    ),
    ("about the cluster, in a namespace", "Event", r#"{"involvedObject":{"kind":"Node","name":"a"}}"#),
    (
        "with a time and no reporter",
        "Event",
        r#"{"eventTime":"2020-01-01T00:00:00.000000Z","involvedObject":{"kind":"Node","name":"a"}}"#,
    ),
    ("of a type that there is not", "Event", r#"{"type":"Loud"}"#),
];

/// Changes of an object, as merge patches.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    (
        "what is immutable stays",
        "ConfigMap",
        r#"{"immutable":true,"data":{"a":"x"}}"#,
        r#"{"data":{"a":"y"}}"#,
    ),
    ("immutable stays set", "ConfigMap", r#"{"immutable":true}"#, r#"{"immutable":false}"#),
    ("immutable can be set", "ConfigMap", r#"{"data":{"a":"x"}}"#, r#"{"immutable":true}"#),
    (
        "labels of what is immutable change",
        "ConfigMap",
        r#"{"immutable":true}"#,
        r#"{"metadata":{"labels":{"a":"b"}}}"#,
    ),
    ("the type stays", "Secret", r#"{"type":"example.com/a"}"#, r#"{"type":"example.com/b"}"#),
    ("the type left out stays", "Secret", r#"{"type":"example.com/a"}"#, r#"{"type":null}"#),
    ("string data by patch", "Secret", r#"{"stringData":{"a":"x"}}"#, r#"{"stringData":{"a":"y","b":"z"}}"#),
    (
        "what is immutable stays",
        "Secret",
        r#"{"immutable":true,"stringData":{"a":"x"}}"#,
        r#"{"stringData":{"a":"y"}}"#,
    ),
    (
        "the holder changes",
        "Lease",
        r#"{"spec":{"holderIdentity":"a"}}"#,
        r#"{"spec":{"holderIdentity":"b","leaseTransitions":1}}"#,
    ),
    (
        "a duration below one",
        "Lease",
        r#"{"spec":{"leaseDurationSeconds":5}}"#,
        r#"{"spec":{"leaseDurationSeconds":-5}}"#,
    ),
];

/// A group, a kind of it, an object, and selectors that fit it, that do not, and that nobody knows.
const SELECTED: &[(&str, &str, &str, &[&str])] = &[
    (
        "/api/v1",
        "secrets",
        r#"{"type":"example.com/a"}"#,
        &["type=example.com/a", "type=Opaque", "type!=Opaque,metadata.name=a", "data=x"],
    ),
    (
        "/api/v1",
        "pods",
        r#"{"spec":{"containers":[{"name":"a","image":"a"}]}}"#,
        &[
            "spec.hostNetwork=false",
            "spec.hostNetwork=",
            "spec.restartPolicy=Always,spec.nodeName=",
            "spec.host!=",
            "status.podIPs=",
            "status.podIPs=1",
            "status.phase!=Pending",
            "spec.nothing=1",
        ],
    ),
    (
        "/api/v1",
        "replicationcontrollers",
        r#"{"spec":{"replicas":0,"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}"#,
        &["status.replicas=0", "status.replicas=", "status.replicas=1", "spec.replicas=0"],
    ),
    (
        "/apis/apps/v1",
        "replicasets",
        r#"{"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}"#,
        &["metadata.name=a", "status.replicas=0"],
    ),
    (
        "/apis/batch/v1",
        "jobs",
        r#"{"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}"#,
        &["status.successful=0", "status.successful=", "status.successful!=0", "status.succeeded=0"],
    ),
    (
        "/api/v1",
        "events",
        r#"{"involvedObject":{"kind":"Pod","namespace":"*"},"reportingComponent":"me","reason":"R"}"#,
        &["source=me", "source=", "reportingComponent=me", "involvedObject.kind=Pod", "regarding.kind=Pod"],
    ),
    (
        "/api/v1",
        "services",
        r#"{"spec":{"clusterIP":"None"}}"#,
        &["spec.clusterIP=None", "spec.type=ClusterIP", "spec.type=", "spec.ports=1"],
    ),
];

/// The same for kinds that are in no namespace: there is always one of them, and maybe others of theirs.
const SELECTORS: &[(&str, &[&str])] = &[
    (
        "/api/v1/namespaces",
        &["metadata.name=default", "metadata.namespace=", "status.phase!=Active,metadata.name=default"],
    ),
    ("/api/v1/nodes", &["spec.unschedulable=nobody", "metadata.namespace=", "status.phase="]),
    (
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        &["spec.signerName=nobody", "metadata.namespace=", "spec.username="],
    ),
    (
        "/apis/resource.k8s.io/v1/resourceslices",
        &["spec.driver=nobody", "spec.nodeName=nobody", "spec.pool=", "metadata.namespace="],
    ),
    (
        "/apis/events.k8s.io/v1/events",
        &[
            "regarding.kind=Nothing",
            "reportingController=nobody",
            "source=",
            "reportingComponent=",
            "involvedObject.kind=",
        ],
    ),
];

fn kind_of(script: &Script, kind: &str, fields: &str) -> anyhow::Result<(String, Value)> {
    let (version, path) = match kind {
        "ConfigMap" => ("v1", script.maps()),
        "Secret" => ("v1", script.path("/api/v1", "secrets")),
        "Event" => ("v1", script.path("/api/v1", "events")),
        _ => ("coordination.k8s.io/v1", script.path("/apis/coordination.k8s.io/v1", "leases")),
    };
    let mut object: Value = serde_json::from_str(fields)?;
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": "a"});
    Ok((path, object))
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, kind, fields) in OBJECTS {
        all.push(Behaviour::new(format!("{kind}: {name}"), move |mut script: Script| async move {
            let (path, object) = kind_of(&script, kind, fields)?;
            script.post(&path, object).await?;
            Ok(script)
        }));
    }
    for (name, kind, fields, change) in CHANGES {
        all.push(Behaviour::new(format!("{kind}, changed: {name}"), move |mut script: Script| async move {
            let (path, object) = kind_of(&script, kind, fields)?;
            script.post(&path, object).await?;
            script.merge(&format!("{path}/a"), serde_json::from_str(change)?).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("Lease: created by an update", |mut script: Script| async move {
        let (path, object) = kind_of(&script, "Lease", r#"{"spec":{"holderIdentity":"a"}}"#)?;
        script.put(&format!("{path}/a"), object).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("Lease: an update needs a version", |mut script: Script| async move {
        let (path, object) = kind_of(&script, "Lease", r#"{"spec":{"holderIdentity":"a"}}"#)?;
        script.post(&path, object.clone()).await?;
        script.put(&format!("{path}/a"), object).await?;
        Ok(script)
    }));
    for &(group, plural, object, selectors) in SELECTED {
        let name = format!("{plural} of {group}: selected by fields");
        all.push(Behaviour::new(name, move |mut script: Script| async move {
            let path = script.path(group, plural);
            with_account(&mut script).await?;
            let mut object: Value = serde_json::from_str(&object.replace('*', &script.namespace))?;
            object["metadata"] = json!({"name": "a"});
            script.post(&path, object).await?;
            for &selector in selectors {
                script
                    .send(crate::compare::Request::new("GET", &path).with("fieldSelector", selector))
                    .await?;
            }
            Ok(script)
        }));
    }
    for &(path, selectors) in SELECTORS {
        all.push(Behaviour::new(
            format!("{path}: selected by fields"),
            move |mut script: Script| async move {
                for &selector in selectors {
                    script
                        .send(crate::compare::Request::new("GET", path).with("fieldSelector", selector))
                        .await?;
                }
                Ok(script)
            },
        ));
    }
    all.push(Behaviour::new("Pod: what its own paths may change", |mut script: Script| async move {
        let path = script.path("/api/v1", "pods");
        with_account(&mut script).await?;
        let container = json!({"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}});
        script.post(&path, json!({"metadata": {"name": "a"}, "spec": {"containers": [container]}})).await?;
        let more = json!({"name": "e", "image": "e"});
        let change = json!({"metadata": {"labels": {"new": "label"}}, "spec": {
            "activeDeadlineSeconds": 5,
            "containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "2"}}}],
            "ephemeralContainers": [more],
        }});
        script.strategic(&format!("{path}/a/ephemeralcontainers"), change.clone()).await?;
        script.strategic(&format!("{path}/a/resize"), change).await?;
        let without = json!({"spec": {"ephemeralContainers": null}});
        script.merge(&format!("{path}/a/ephemeralcontainers"), without).await?;
        Ok(script)
    }));
    all
}
