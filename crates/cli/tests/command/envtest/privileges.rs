//! Containers that ask for privileges, wherever they are, of servers that grant them or do not.

use super::environment::{Environment, Programs};
use http::Method;
use serde_json::{Value, json};

fn container(privileged: bool) -> Value {
    json!({"name": "c", "image": "i", "securityContext": {"privileged": privileged}})
}

/// Objects that make pods: where they are created, and where the pod is in them.
fn objects() -> Vec<(&'static str, &'static str, Value)> {
    let labels = json!({"app": "a"});
    let template = |restarts: &str| json!({"metadata": {"labels": labels}, "spec": {"containers": [container(false)], "restartPolicy": restarts}});
    let (always, never) = (template("Always"), template("Never"));
    let selector = json!({"matchLabels": labels});
    let workload = json!({"selector": selector, "template": always});
    let (core, apps, batch) = (
        "/api/v1/namespaces/default",
        "/apis/apps/v1/namespaces/default",
        "/apis/batch/v1/namespaces/default",
    );
    let of = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "o"}, "spec": spec});
    let pods =
        json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "o"}, "template": always});
    let cron = json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": never}}});
    let place = |above: &'static str, plural: &str| -> &'static str {
        Box::leak(format!("{above}/{plural}").into_boxed_str())
    };
    vec![
        (place(core, "pods"), "/spec", of("v1", "Pod", never["spec"].clone())),
        (place(core, "podtemplates"), "/template/spec", pods),
        (place(apps, "deployments"), "/spec/template/spec", of("apps/v1", "Deployment", workload.clone())),
        (place(apps, "daemonsets"), "/spec/template/spec", of("apps/v1", "DaemonSet", workload)),
        (place(batch, "jobs"), "/spec/template/spec", of("batch/v1", "Job", json!({"template": never}))),
        (place(batch, "cronjobs"), "/spec/jobTemplate/spec/template/spec", of("batch/v1", "CronJob", cron)),
    ]
}

/// What each of them is told when it is created with privileges and when it gets them later.
pub(super) async fn answers(programs: &Programs, flag: &str) -> Vec<String> {
    let environment = Environment::start(programs, &[flag]).await;
    let admin = environment.admin();
    let mut answers = Vec::new();
    for (collection, pod, object) in objects() {
        let privileged = |object: &Value, field: &str| {
            let mut object = object.clone();
            let pod = object.pointer_mut(pod).unwrap();
            match field {
                "initContainers" => pod[field] = json!([container(true)]),
                _ => pod[field][0] = container(true),
            }
            if field == "initContainers" {
                pod[field][0]["name"] = json!("first");
            }
            object
        };
        for field in ["containers", "initContainers"] {
            let path = format!("{collection}?dryRun=All");
            let answer =
                environment.send(&admin, Method::POST, &path, Some(privileged(&object, field))).await;
            answers.push(format!("{collection} {field}: {} {}", answer.code, told(&answer.body)));
        }
        let made = environment.send(&admin, Method::POST, collection, Some(object)).await;
        assert_eq!(made.code, 201, "{made:?}");
        let path = format!("{collection}/o?dryRun=All");
        let changed = privileged(&made.body, "containers");
        let answer = environment.send(&admin, Method::PUT, &path, Some(changed)).await;
        answers.push(format!("{collection}, changed: {} {}", answer.code, told(&answer.body)));
        if collection.ends_with("/pods") {
            let mut changed = made.body.clone();
            let mut debugger = container(true);
            debugger["name"] = json!("debugger");
            changed["spec"]["ephemeralContainers"] = json!([debugger]);
            let path = format!("{collection}/o/ephemeralcontainers?dryRun=All");
            let answer = environment.send(&admin, Method::PUT, &path, Some(changed)).await;
            answers.push(format!("{collection}, debugged: {} {}", answer.code, told(&answer.body)));
        }
    }
    environment.stop();
    answers
}

/// The causes of a refusal, without the values and diffs that some of them show.
fn told(body: &Value) -> String {
    let causes = body.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
    let word = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    let line = |cause: &Value| {
        let message = word(cause, "message");
        let message = message.lines().next().unwrap_or_default();
        let shown = message.starts_with("Invalid value: {");
        format!("{}: {}", word(cause, "field"), if shown { "Invalid value" } else { message })
    };
    let mut lines: Vec<String> = causes.map(line).collect();
    lines.sort();
    lines.join("; ")
}
