//! Which requests a policy and its bindings are about.

use super::{Kind, about, map, only, writes};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// What policies or bindings match, about writes of ConfigMaps.
const CONSTRAINTS: &[(&str, &str)] = &[
    (
        "creations",
        r#"{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "updates",
        r#"{"resourceRules":[{"operations":["UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "deletions",
        r#"{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "everything",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]}],"excludeResourceRules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["leases"]}]}"#,
    ),
    (
        "another group",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "another version",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v2"],"resources":["configmaps"]}]}"#,
    ),
    (
        "another resource",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"]}]}"#,
    ),
    (
        "subresources only",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps/status"]}]}"#,
    ),
    (
        "what is in namespaces",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"scope":"Namespaced"}]}"#,
    ),
    (
        "what is in none",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"scope":"Cluster"}]}"#,
    ),
    (
        "some names",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"resourceNames":["a","before"]}]}"#,
    ),
    (
        "two rules",
        r#"{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"resourceNames":["bc"]},{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "all but creations",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],"excludeResourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "all but a name",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],"excludeResourceRules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"resourceNames":["a"]}]}"#,
    ),
    (
        "labels",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],"objectSelector":{"matchLabels":{"app":"web"}}}"#,
    ),
    (
        "no labels",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],"objectSelector":{"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}}"#,
    ),
    (
        "other namespaces",
        r#"{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}}}"#,
    ),
    (
        "what is exactly so",
        r#"{"matchPolicy":"Exact","resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
];

/// Constraints that are about the script's namespace alone, unless they name others.
fn here(script: &Script, constraints: &str) -> anyhow::Result<Value> {
    let mut constraints: Value = serde_json::from_str(constraints)?;
    if constraints.get("namespaceSelector").is_none() {
        constraints["namespaceSelector"] =
            json!({"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}});
    }
    Ok(constraints)
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, constraints) in CONSTRAINTS {
        all.push(Behaviour::new(format!("a policy matches {name}"), move |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            let spec = json!({"matchConstraints": here(&script, constraints)?});
            only(&mut script, Kind::Validating, spec, json!({})).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
        all.push(Behaviour::new(format!("a binding matches {name}"), move |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            let how = json!({"matchResources": here(&script, constraints)?});
            only(&mut script, Kind::Validating, json!({}), how).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new(
        "a binding without rules matches all that its policy does",
        |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            let how = json!({"matchResources": {"objectSelector": {"matchLabels": {"app": "web"}}}});
            only(&mut script, Kind::Validating, json!({}), how).await?;
            writes(&mut script).await?;
            Ok(script)
        },
    ));
    for (name, policy) in [("equivalent", "Equivalent"), ("exact", "Exact")] {
        all.push(Behaviour::new(format!("a policy about {name} versions"), move |mut script| async move {
            let rule = json!({"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
                "resources": ["horizontalpodautoscalers"]});
            let mut constraints = here(&script, "{}")?;
            constraints["resourceRules"] = json!([rule]);
            constraints["matchPolicy"] = json!(policy);
            let validations = json!([{"expression": "!has(object.spec.targetCPUUtilizationPercentage)",
                "messageExpression": "object.apiVersion + ' ' + request.kind.version + ' ' + request.requestKind.version + ' ' + request.resource.version"}]);
            let spec = json!({"matchConstraints": constraints, "validations": validations});
            only(&mut script, Kind::Validating, spec, json!({})).await?;
            let target = json!({"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"});
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
            let second = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
                "spec": {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]}});
            let path = script.path("/apis/autoscaling/v2", "horizontalpodautoscalers");
            script.post(&path, second).await?;
            let first = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "b"},
                "spec": {"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50}});
            let path = script.path("/apis/autoscaling/v1", "horizontalpodautoscalers");
            script.post(&path, first).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("a policy is about a subresource", |mut script| async move {
        let rule = json!({"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1"],
            "resources": ["deployments/scale", "deployments/status"]});
        let mut constraints = here(&script, "{}")?;
        constraints["resourceRules"] = json!([rule]);
        let validations = json!([{"expression": "request.subResource == 'status' || object.spec.replicas < 5",
            "messageExpression": "request.subResource + ' ' + object.kind + ' ' + request.kind.kind + ' ' + string(oldObject.spec.replicas)"}]);
        let spec = json!({"matchConstraints": constraints, "validations": validations});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}});
        let path = script.path("/apis/apps/v1", "deployments");
        script.post(&path, deployment).await?;
        script.merge(&format!("{path}/a/scale"), json!({"spec": {"replicas": 6}})).await?;
        script.merge(&format!("{path}/a/scale"), json!({"spec": {"replicas": 3}})).await?;
        script.merge(&format!("{path}/a"), json!({"spec": {"replicas": 7}})).await?;
        script.merge(&format!("{path}/a/status"), json!({"status": {"replicas": 7}})).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is about an eviction and a binding", |mut script| async move {
        let rule = json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["pods/eviction", "pods/binding", "serviceaccounts/token"]});
        let mut constraints = here(&script, "{}")?;
        constraints["resourceRules"] = json!([rule]);
        let validations = json!([{"expression": "false",
            "messageExpression": "request.subResource + ' ' + object.kind + ' ' + request.operation + ' ' + request.name"}]);
        let spec = json!({"matchConstraints": constraints, "validations": validations});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let pods = script.path("/api/v1", "pods");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        script.quiet(Request::new("POST", &pods).body(media::JSON, pod)).await?;
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
        script.post(&format!("{pods}/a/eviction"), eviction).await?;
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
        script.post(&format!("{pods}/a/binding"), binding).await?;
        let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let accounts = script.path("/api/v1", "serviceaccounts");
        script.quiet(Request::new("POST", &accounts).body(media::JSON, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}}))).await?;
        script.post(&format!("{accounts}/x/token"), token).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is about namespaces", |mut script| async move {
        let other = format!("{}-other", script.namespace());
        let mut rule = about("", "v1", "namespaces");
        rule["operations"] = json!(["*"]);
        rule["resourceNames"] = json!([other]);
        let validations = json!([{"expression": "namespaceObject != null && request.operation != 'CREATE'",
            "messageExpression": "request.operation + ' ' + (has(request.namespace) ? 'in one' : 'in none')"}]);
        let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}});
        script.post("/api/v1/namespaces", body).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is about no review and no policy", |mut script| async move {
        let rule = json!({"operations": ["CREATE"], "apiGroups": ["authorization.k8s.io", "authentication.k8s.io", "admissionregistration.k8s.io"],
            "apiVersions": ["*"], "resources": ["selfsubjectaccessreviews", "selfsubjectreviews", "tokenreviews",
                "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies"]});
        let spec = json!({"matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "a", "expression": "true"}]});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}});
        let answer = script.quiet(Request::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").body(media::JSON, review)).await?;
        anyhow::ensure!(answer.is_success(), "it was refused: {answer}");
        let policy = super::policy(&script, Kind::Validating, "more", &json!({}));
        super::store(&mut script, &Kind::Validating.policies(), policy).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is about webhook configurations", |mut script| async move {
        let name = super::name(&script, "hooks");
        let mut rule = about("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations");
        rule["resourceNames"] = json!([name]);
        only(&mut script, Kind::Validating, json!({"matchConstraints": {"resourceRules": [rule]}}), json!({})).await?;
        let body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name}});
        script.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", body).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is about custom resources", |mut script| async move {
        let spec = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 7}}});
        let defined = script.define(script.with_spec(spec)).await?;
        let mut rule = about(&defined.group, "v1", "widgets");
        rule["operations"] = json!(["*"]);
        let mut constraints = here(&script, "{}")?;
        constraints["resourceRules"] = json!([rule]);
        let validations = json!([{"expression": "object == null || object.spec.n < 5",
            "messageExpression": "'it is ' + string(object.spec.n)"}]);
        let spec = json!({"matchConstraints": constraints, "validations": validations});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let widget = |name: &str, spec: Value| {
            json!({"apiVersion": format!("{}/v1", defined.group), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
        };
        script.post(&defined.objects, widget("a", json!({}))).await?;
        script.post(&defined.objects, widget("b", json!({"n": 3}))).await?;
        script.merge(&format!("{}/b", defined.objects), json!({"spec": {"n": 9}})).await?;
        script.apply(&format!("{}/c", defined.objects), "me", widget("c", json!({"n": 8}))).await?;
        script.merge(&format!("{}/b/status", defined.objects), json!({"status": {"x": 1}})).await?;
        script.delete(&format!("{}/b", defined.objects), Value::Null).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is asked about every object of a collection that is deleted", |mut script| async move {
        script.map("one", json!({})).await?;
        script.map("two", json!({})).await?;
        let spec = json!({"validations": [{"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'two'"}]});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let maps = script.maps();
        script.delete(&maps, Value::Null).await?;
        script.get(format!("{maps}/two")).await?;
        Ok(script)
    }));
    for (name, method) in [("PUT", "PUT"), ("server-side apply", "APPLY"), ("a JSON patch", "JSON")] {
        all.push(Behaviour::new(format!("a policy is asked about {name}"), move |mut script| async move {
            script.map("before", json!({})).await?;
            let spec = json!({"validations": [{"expression": "!has(object.data) || object.data.x != 'no'",
                "messageExpression": "has(oldObject.data) ? 'it had' : 'it had none'"}]});
            only(&mut script, Kind::Validating, spec, json!({})).await?;
            let item = format!("{}/before", script.maps());
            for value in ["yes", "no"] {
                let body = map("before", json!({"data": {"x": value}}));
                match method {
                    "PUT" => script.put(&item, body).await?,
                    "APPLY" => script.apply(&item, "me", body).await?,
                    _ => {
                        script
                            .edit(&item, json!([{"op": "add", "path": "/data", "value": {"x": value}}]))
                            .await?
                    }
                };
            }
            Ok(script)
        }));
    }
    all
}
