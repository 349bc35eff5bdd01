//! Flow schemas and the levels that they name.

use crate::targets::whole_cluster;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use serde_json::json;
use windlass_harness::{Suite, Target};
use windlass_testing::object;

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite.test("a flow schema tells whether its priority level exists", tells_of_its_level)
}

async fn tells_of_its_level(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = format!("{}-level", cluster.namespace());
    let spec = json!({"matchingPrecedence": 9000, "priorityLevelConfiguration": {"name": name}});
    cluster.create(object::<FlowSchema>(&name, json!({"spec": spec}))).await?;
    let waits = || cluster.eventually::<FlowSchema>(&name);
    waits().has_condition_because("Dangling", "NotFound").await?;
    let limited = json!({"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}});
    let level =
        object::<PriorityLevelConfiguration>(&name, json!({"spec": {"type": "Limited", "limited": limited}}));
    cluster.create(level).await?;
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {name:?} and it exists"
    );
    let condition = json!({"type": "Dangling", "status": "False", "reason": "Found", "message": message});
    waits().has(json!({"status": {"conditions": [condition]}})).await?;
    cluster.delete::<PriorityLevelConfiguration>(&name).await?;
    waits().has_condition_because("Dangling", "NotFound").await?;
    cluster.delete::<FlowSchema>(&name).await
}
