//! Says of every FlowSchema whether its PriorityLevelConfiguration exists, in the condition `Dangling`. In Kubernetes the
//! API server itself does so.

use jiff::Timestamp;
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, FlowSchemaCondition, FlowSchemaSpec, PriorityLevelConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue};

const DANGLING: &str = "Dangling";

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("api-priority-and-fairness-config-consumer")
        .watches::<PriorityLevelConfiguration>(|schema: &FlowSchema| match level_of(schema) {
        "" => Relation::nothing(),
        level => Relation::named(level),
    });
    manager.controller(controller)
}

fn level_of(schema: &FlowSchema) -> &str {
    schema.spec.as_ref().map_or("", |spec: &FlowSchemaSpec| &spec.priority_level_configuration.name)
}

async fn reconcile(schema: Arc<FlowSchema>, ctx: Reconcile<FlowSchema>) -> Result<Requeue, ReconcileError> {
    let level = ctx.observed().get::<PriorityLevelConfiguration>(level_of(&schema));
    let exists = level.map_err(ReconcileError::terminal)?.is_some();
    if let Some(condition) = changed(&schema, exists, ctx.clock().now()) {
        let mut told = (*schema).clone();
        let conditions = told.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|other| other.type_.as_deref() != Some(DANGLING));
        conditions.push(condition);
        ctx.replace_status(&told).await?;
    }
    Ok(Requeue::on_change())
}

/// The condition, if it is not there already.
fn changed(schema: &FlowSchema, exists: bool, now: Timestamp) -> Option<FlowSchemaCondition> {
    let level = level_of(schema);
    let named = format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    let (status, reason, message) = match exists {
        true => ("False", "Found", format!("{named} and it exists")),
        false => ("True", "NotFound", format!("{named} but there is no such object")),
    };
    let conditions = schema.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let before = conditions.into_iter().find(|condition| condition.type_.as_deref() == Some(DANGLING));
    let same_status = before.filter(|before| before.status.as_deref() == Some(status));
    if same_status.is_some_and(|before| {
        before.reason.as_deref() == Some(reason) && before.message.as_deref() == Some(message.as_str())
    }) {
        return None;
    }
    Some(FlowSchemaCondition {
        type_: Some(DANGLING.to_owned()),
        status: Some(status.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: same_status
            .and_then(|before| before.last_transition_time.clone())
            .or(Some(Time(now))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_told_once_whether_its_level_exists() {
        let spec = json!({"priorityLevelConfiguration": {"name": "high"}});
        let mut schema: FlowSchema = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let missing = changed(&schema, false, now).unwrap();
        assert_eq!((missing.status.as_deref(), missing.reason.as_deref()), (Some("True"), Some("NotFound")));
        schema.status.get_or_insert_default().conditions = Some(vec![missing]);
        assert_eq!(changed(&schema, false, now), None);
        let found = changed(&schema, true, now).unwrap();
        let message =
            r#"This FlowSchema references the PriorityLevelConfiguration object named "high" and it exists"#;
        assert_eq!((found.status.as_deref(), found.message.as_deref()), (Some("False"), Some(message)));
    }
}
