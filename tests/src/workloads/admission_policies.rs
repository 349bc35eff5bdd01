//! What a cluster says of the expressions of admission policies.

use crate::targets::whole_cluster;
use anyhow::ensure;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};
use windlass_harness::{Suite, Target};
use windlass_testing::object;

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite.test("the status of a policy tells which expressions do not fit the types", type_checking)
}

async fn type_checking(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = format!("{}-typed", cluster.namespace());
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]});
    let spec = |expression: &str| json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]});
    // Without a binding it has no effect on others.
    let policy =
        object::<ValidatingAdmissionPolicy>(&name, json!({"spec": spec("object.spec.replicas > '1'")}));
    cluster.create(policy).await?;
    let waits = || cluster.eventually::<ValidatingAdmissionPolicy>(&name);
    waits().has(json!({"status": {"observedGeneration": 1}})).await?;
    let warnings = || async {
        let policy = cluster.get::<ValidatingAdmissionPolicy>(&name).await?;
        let checked = policy.status.and_then(|status| status.type_checking);
        Ok::<Value, anyhow::Error>(json!(
            checked.and_then(|checked| checked.expression_warnings).unwrap_or_default()
        ))
    };
    let found = warnings().await?;
    ensure!(found[0]["fieldRef"] == "spec.validations[0].expression", "{found}");
    let text = found[0]["warning"].as_str().unwrap_or_default();
    let why = "found no matching overload for '_>_' applied to '(int, string)'";
    ensure!(text.starts_with("apps/v1, Kind=Deployment: ERROR: ") && text.contains(why), "{found}");
    cluster
        .patch::<ValidatingAdmissionPolicy>(&name, json!({"spec": spec("object.spec.replicas > 1")}))
        .await?;
    waits().has(json!({"status": {"observedGeneration": 2}})).await?;
    let found = warnings().await?;
    ensure!(found == json!([]), "{found}");
    cluster.delete::<ValidatingAdmissionPolicy>(&name).await
}
