//! CertificateSigningRequests: what may be asked for, and who may approve and sign it.

use super::{allow_user, user};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

const JANE: &str = include_str!("requests/jane.csr");
const MASTERS: &str = include_str!("requests/masters.csr");
const NODE: &str = include_str!("requests/node.csr");
const SERVING: &str = include_str!("requests/serving.csr");
const MIXED: &str = include_str!("requests/mixed.csr");
const CERTIFICATE: &str = include_str!("requests/certificate.pem");

/// Changes of a valid spec, as merge patches.
const SPECS: &[(&str, &str)] = &[
    ("as it is", "{}"),
    ("with all usages of a client", r#"{"usages":["digital signature","key encipherment","client auth"]}"#),
    ("without usages", r#"{"usages":null}"#),
    ("with no usages", r#"{"usages":[]}"#),
    ("with an unknown usage", r#"{"usages":["client auth","mining"]}"#),
    ("with a usage twice", r#"{"usages":["client auth","signing","client auth","signing"]}"#),
    ("with an empty usage", r#"{"usages":[""]}"#),
    ("without a signer", r#"{"signerName":null}"#),
    ("with an empty signer", r#"{"signerName":""}"#),
    ("with a signer without a path", r#"{"signerName":"example.com"}"#),
    ("with a signer of two slashes", r#"{"signerName":"example.com/a/b"}"#),
    ("with a signer of one label", r#"{"signerName":"example/a"}"#),
    ("with a signer in capitals", r#"{"signerName":"Example.COM/A"}"#),
    ("with a signer of an empty label", r#"{"signerName":"example..com/a..b"}"#),
    ("with a signer of an empty path", r#"{"signerName":"example.com/"}"#),
    ("with a signer of an empty domain", r#"{"signerName":"/a"}"#),
    ("with a signer whose path has dots", r#"{"signerName":"example.com/a.b-c.d"}"#),
    ("with the signer of old", r#"{"signerName":"kubernetes.io/legacy-unknown"}"#),
    ("with an unknown signer of Kubernetes", r#"{"signerName":"kubernetes.io/other"}"#),
    ("for ten minutes", r#"{"expirationSeconds":600}"#),
    ("for less than ten minutes", r#"{"expirationSeconds":599}"#),
    ("for less than nothing", r#"{"expirationSeconds":-1}"#),
    ("without a request", r#"{"request":null}"#),
    ("with an empty request", r#"{"request":""}"#),
    ("with a request that is no PEM", r#"{"request":"eA=="}"#),
    ("with a request that is no base64", r#"{"request":"?"}"#),
    ("in the name of somebody else", r#"{"username":"eve","uid":"u","groups":["g"],"extra":{"a":["b"]}}"#),
];

/// What is written to which subresource, as a status; and what was there before.
const STATUSES: &[(&str, &str, &str, &str)] = &[
    ("is approved", "{}", "approval", r#"{"conditions":[APPROVED]}"#),
    ("is denied", "{}", "approval", r#"{"conditions":[DENIED]}"#),
    ("is approved and denied", "{}", "approval", r#"{"conditions":[APPROVED,DENIED]}"#),
    ("is denied after it was approved", "A", "approval", r#"{"conditions":[APPROVED,DENIED]}"#),
    ("is no longer approved", "A", "approval", r#"{"conditions":[]}"#),
    ("is denied instead of approved", "A", "approval", r#"{"conditions":[DENIED]}"#),
    (
        "is approved for another reason",
        "A",
        "approval",
        r#"{"conditions":[{"type":"Approved","status":"True","reason":"Other","message":"m"}]}"#,
    ),
    ("is approved twice", "{}", "approval", r#"{"conditions":[APPROVED,APPROVED]}"#),
    ("is not approved", "{}", "approval", r#"{"conditions":[{"type":"Approved","status":"False"}]}"#),
    ("is approved without a status", "{}", "approval", r#"{"conditions":[{"type":"Approved"}]}"#),
    ("has a condition without a type", "{}", "approval", r#"{"conditions":[{"status":"True"}]}"#),
    ("fails through its approval", "{}", "approval", r#"{"conditions":[{"type":"Failed","status":"True"}]}"#),
    (
        "has another condition through its approval",
        "{}",
        "approval",
        r#"{"conditions":[{"type":"Seen","status":"Unknown"}]}"#,
    ),
    (
        "is signed through its approval",
        "{}",
        "approval",
        r#"{"conditions":[APPROVED],"certificate":"CERTIFICATE"}"#,
    ),
    ("is approved through its status", "{}", "status", r#"{"conditions":[APPROVED]}"#),
    (
        "is approved otherwise through its status",
        "A",
        "status",
        r#"{"conditions":[{"type":"Approved","status":"True","reason":"Other"}]}"#,
    ),
    ("loses its approval through its status", "A", "status", r#"{"conditions":[]}"#),
    ("is signed", "A", "status", r#"{"conditions":[APPROVED],"certificate":"CERTIFICATE"}"#),
    ("is signed before it is approved", "{}", "status", r#"{"certificate":"CERTIFICATE"}"#),
    ("is signed with nothing", "A", "status", r#"{"conditions":[APPROVED],"certificate":""}"#),
    ("is signed with what is no PEM", "A", "status", r#"{"conditions":[APPROVED],"certificate":"eA=="}"#),
    ("is signed with a request", "A", "status", r#"{"conditions":[APPROVED],"certificate":"REQUEST"}"#),
    ("is signed again", "S", "status", r#"{"conditions":[APPROVED],"certificate":"TWICE"}"#),
    ("loses its certificate", "S", "status", r#"{"conditions":[APPROVED],"certificate":null}"#),
    (
        "fails",
        "A",
        "status",
        r#"{"conditions":[APPROVED,{"type":"Failed","status":"True","reason":"R","message":"m"}]}"#,
    ),
    ("does not fail", "A", "status", r#"{"conditions":[APPROVED,{"type":"Failed","status":"False"}]}"#),
    (
        "has a condition of its signer",
        "A",
        "status",
        r#"{"conditions":[APPROVED,{"type":"Seen","status":"False"}]}"#,
    ),
];

/// Who may approve and sign: the names of signers, which count for `example.com/s` or not.
const SIGNERS: &[(&str, &[&str])] = &[
    ("its signer", &["example.com/s"]),
    ("all signers of the domain", &["example.com/*"]),
    ("another signer of the domain", &["example.com/other"]),
    ("all signers of another domain", &["example.org/*"]),
    ("a signer like a pattern", &["*"]),
    ("no signer", &[]),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, patch) in SPECS {
        all.push(Behaviour::new(format!("a certificate is asked for {name}"), move |script| {
            asked(script, patch)
        }));
    }
    let requests = [
        ("two organizations", JANE),
        ("a node's client", NODE),
        ("a node's server", SERVING),
        ("odd names", MIXED),
    ];
    for (name, request) in requests {
        let name = format!("a certificate is asked for {name}");
        all.push(Behaviour::new(name, move |script| asked_by(script, request, "example.com/s")));
    }
    for signer in ["kubernetes.io/kube-apiserver-client", "example.com/s"] {
        let name = format!("a certificate of system:masters is asked of {signer}");
        all.push(Behaviour::new(name, move |script| asked_by(script, MASTERS, signer)));
    }
    for (name, before, subresource, status) in STATUSES {
        let name = format!("a request for a certificate {name}");
        all.push(Behaviour::new(name, move |script| written(script, before, subresource, status)));
    }
    for (name, signers) in SIGNERS {
        for (verb, subresource) in [("approve", "approval"), ("sign", "status")] {
            let name = format!("who may {verb} for {name} does so");
            all.push(Behaviour::new(name, move |script| permitted(script, verb, subresource, signers)));
        }
    }
    all.push(Behaviour::new("a request for a certificate changes", changed));
    all.push(Behaviour::new("requests for certificates may have any name", named));
    all
}

fn encoded(pem: &str) -> String {
    STANDARD.encode(pem)
}

fn request(name: &str, pem: &str, signer: &str) -> Value {
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": encoded(pem), "signerName": signer, "usages": ["client auth"]}})
}

async fn asked(mut script: Script, patch: &str) -> anyhow::Result<Script> {
    let mut wanted = request(script.namespace(), JANE, "example.com/s");
    merge(&mut wanted["spec"], &serde_json::from_str(patch)?);
    create(&mut script, wanted).await?;
    Ok(script)
}

async fn asked_by(mut script: Script, pem: &str, signer: &str) -> anyhow::Result<Script> {
    let wanted = request(script.namespace(), pem, signer);
    create(&mut script, wanted).await?;
    Ok(script)
}

async fn create(script: &mut Script, wanted: Value) -> anyhow::Result<()> {
    script.leave(format!("{PATH}/{}", script.namespace()));
    send(script, Request::new("POST", PATH).body(media::JSON, wanted)).await
}

/// Sends a request, and notes the answer but for who asks: the administrators differ.
async fn send(script: &mut Script, request: Request) -> anyhow::Result<()> {
    let mut answer = script.quiet(request).await?;
    if let Some(spec) = answer.body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|field, _| !["username", "groups", "uid", "extra"].contains(&field.as_str()));
    }
    script.note(&answer);
    Ok(())
}

/// The null of a merge patch takes a field away.
fn merge(object: &mut Value, patch: &Value) {
    let (Some(object), Some(patch)) = (object.as_object_mut(), patch.as_object()) else { return };
    for (name, value) in patch {
        match value {
            Value::Null => drop(object.remove(name)),
            value => drop(object.insert(name.clone(), value.clone())),
        }
    }
}

/// A status as it is written above, with its words filled in.
fn status(text: &str) -> anyhow::Result<Value> {
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "reason": "Because", "message": "so"});
    let text = text
        .replace("APPROVED", &condition("Approved").to_string())
        .replace("DENIED", &condition("Denied").to_string())
        .replace("CERTIFICATE", &encoded(CERTIFICATE))
        .replace("TWICE", &encoded(&CERTIFICATE.repeat(2)))
        .replace("REQUEST", &encoded(JANE));
    Ok(serde_json::from_str(&text)?)
}

async fn write(script: &mut Script, subresource: &str, status: Value) -> anyhow::Result<()> {
    let path = format!("{PATH}/{}/{subresource}", script.namespace());
    let request = Request::new("PATCH", path).body(media::MERGE_PATCH, json!({"status": status}));
    send(script, request).await
}

async fn written(mut script: Script, before: &str, subresource: &str, after: &str) -> anyhow::Result<Script> {
    let wanted = request(script.namespace(), JANE, "example.com/s");
    create(&mut script, wanted).await?;
    if matches!(before, "A" | "S") {
        write(&mut script, "approval", status(r#"{"conditions":[APPROVED]}"#)?).await?;
    }
    if before == "S" {
        write(&mut script, "status", status(r#"{"certificate":"CERTIFICATE"}"#)?).await?;
    }
    write(&mut script, subresource, status(after)?).await?;
    let path = format!("{PATH}/{}", script.namespace());
    send(&mut script, Request::new("GET", path)).await?;
    Ok(script)
}

async fn permitted(
    mut script: Script,
    verb: &str,
    subresource: &str,
    signers: &[&str],
) -> anyhow::Result<Script> {
    let jane = user(&script);
    let mut rules = vec![json!({"apiGroups": ["certificates.k8s.io"], "verbs": ["get", "patch", "update"],
        "resources": ["certificatesigningrequests", format!("certificatesigningrequests/{subresource}")]})];
    if !signers.is_empty() {
        rules.push(json!({"apiGroups": ["certificates.k8s.io"], "verbs": [verb], "resources": ["signers"],
            "resourceNames": signers}));
    }
    allow_user(&mut script, &jane, rules, true).await?;
    let wanted = request(script.namespace(), JANE, "example.com/s");
    create(&mut script, wanted).await?;
    let path = format!("{PATH}/{}/{subresource}", script.namespace());
    // Nothing that a signer answers for, and then something.
    for text in [r#"{}"#, r#"{"conditions":[{"type":"Seen","status":"True","reason":"R","message":"m"}]}"#] {
        let request = Request::new("PATCH", &path).header("impersonate-user", &jane);
        send(&mut script, request.body(media::MERGE_PATCH, json!({"status": status(text)?}))).await?;
    }
    Ok(script)
}

/// Neither the request nor its status changes by its own path.
async fn changed(mut script: Script) -> anyhow::Result<Script> {
    let wanted = request(script.namespace(), JANE, "example.com/s");
    create(&mut script, wanted).await?;
    let path = format!("{PATH}/{}", script.namespace());
    for patch in [
        json!({"spec": {"signerName": "example.com/other", "usages": ["server auth"]}}),
        json!({"status": status(r#"{"conditions":[APPROVED],"certificate":"CERTIFICATE"}"#)?}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"spec": null}),
    ] {
        send(&mut script, Request::new("PATCH", &path).body(media::MERGE_PATCH, patch)).await?;
    }
    for subresource in ["status", "approval"] {
        let patch =
            json!({"spec": {"signerName": "example.com/other"}, "metadata": {"labels": {"c": subresource}}});
        let path = format!("{path}/{subresource}");
        send(&mut script, Request::new("PATCH", &path).body(media::MERGE_PATCH, patch)).await?;
        send(&mut script, Request::new("GET", path)).await?;
    }
    Ok(script)
}

async fn named(mut script: Script) -> anyhow::Result<Script> {
    for name in ["a:b", "A_b", "system:node:x", "ä", "a/b", "..", "a%b"] {
        let request = request(name, JANE, "example.com/s");
        send(&mut script, Request::new("POST", format!("{PATH}?dryRun=All")).body(media::JSON, request))
            .await?;
    }
    Ok(script)
}
