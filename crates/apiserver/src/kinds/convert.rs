//! Built-in kinds that are served in shapes other than the one they are stored in: Events of two groups, and autoscalers
//! of two versions.

use crate::facts::FACTS;
use crate::resource::Resource;
use crate::typed;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// A shape of a kind that is stored in another.
#[derive(Debug)]
pub(crate) struct Shape {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    /// Where its objects are in the store.
    pub(crate) key: &'static str,
    /// The `apiVersion` and the definition of the stored shape.
    pub(crate) stored_as: &'static str,
    definition: &'static str,
    to_stored: fn(&mut Object),
    from_stored: fn(&mut Object),
}

static SHAPES: [Shape; 2] = [
    Shape {
        group: "events.k8s.io",
        version: "v1",
        plural: "events",
        key: "events",
        stored_as: "v1",
        definition: "io.k8s.api.core.v1.Event",
        to_stored: |event| rename(event, |(theirs, stored)| (*theirs, *stored)),
        from_stored: |event| rename(event, |(theirs, stored)| (*stored, *theirs)),
    },
    Shape {
        group: "autoscaling",
        version: "v1",
        plural: "horizontalpodautoscalers",
        key: "autoscaling/horizontalpodautoscalers",
        stored_as: "autoscaling/v2",
        definition: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        to_stored: scaler_to_stored,
        from_stored: scaler_from_stored,
    },
];

/// The shape that a resource has if that is not the stored one.
pub(crate) fn shape(group: &str, version: &str, plural: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| (shape.group, shape.version, shape.plural) == (group, version, plural))
}

/// An object of this shape, as it is stored.
pub(crate) fn to_stored(shape: &Shape, object: &Value) -> Value {
    settle(object.clone(), shape.to_stored, shape.definition, shape.stored_as)
}

/// A stored object in the shape of a resource.
pub(crate) fn from_stored(shape: &Shape, resource: &Resource, object: Value) -> Value {
    settle(object, shape.from_stored, &resource.definition, &resource.api_version())
}

/// An object of one version of a kind in another version, if both are shapes of the same.
pub(crate) fn between(plural: &str, object: &Value, api_version: &str) -> Option<Value> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if from == api_version {
        return Some(object.clone());
    }
    let (from_group, from_version) = from.split_once('/').unwrap_or(("", from));
    let stored = match shape(from_group, from_version, plural) {
        Some(shape) => to_stored(shape, object),
        None => object.clone(),
    };
    if stored.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
        return Some(stored);
    }
    let shape = shape(group, version, plural)?;
    let row = FACTS.row(group, version, plural)?;
    Some(settle(stored, shape.from_stored, &row.definition, api_version))
}

/// Is this kind served in several shapes?
pub(crate) fn has_shapes(plural: &str) -> bool {
    SHAPES.iter().any(|shape| shape.plural == plural)
}

fn settle(mut object: Value, change: fn(&mut Object), definition: &str, api_version: &str) -> Value {
    if let Some(object) = object.as_object_mut() {
        change(object);
        object.insert("apiVersion".to_owned(), json!(api_version));
    }
    // Both shapes are of types that fit each other, so that there is nothing to refuse.
    typed::convert(&FACTS.structs, definition, object.clone(), "", &mut Vec::new()).unwrap_or(object)
}

/// What the fields of an Event are called in its own group, and in the core group.
const EVENT: [(&str, &str); 7] = [
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

fn rename(object: &mut Object, direction: fn(&(&'static str, &'static str)) -> (&'static str, &'static str)) {
    for (from, to) in EVENT.iter().map(direction) {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

/// Where the old shape keeps the metrics that it has no field for.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

fn part<'a>(object: &'a mut Object, field: &str) -> &'a mut Object {
    let slot = object.entry(field).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("it was made one")
}

fn scaler_to_stored(scaler: &mut Object) {
    let annotations = part(part(scaler, "metadata"), "annotations");
    let mut kept = |name: &str| {
        annotations.remove(name).and_then(|text| serde_json::from_str::<Value>(text.as_str()?).ok())
    };
    let (metrics, behavior) = (kept(METRICS), kept(BEHAVIOR));
    if annotations.is_empty() {
        part(scaler, "metadata").remove("annotations");
    }
    let spec = part(scaler, "spec");
    let mut all = match metrics {
        Some(Value::Array(metrics)) => metrics,
        _ => Vec::new(),
    };
    if let Some(percentage) = spec.remove("targetCPUUtilizationPercentage") {
        let target = json!({"type": "Utilization", "averageUtilization": percentage});
        all.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    if !all.is_empty() {
        spec.insert("metrics".to_owned(), Value::Array(all));
    }
    if let Some(behavior) = behavior {
        spec.insert("behavior".to_owned(), behavior);
    }
    let status = part(scaler, "status");
    if let Some(percentage) = status.remove("currentCPUUtilizationPercentage") {
        let current = json!({"averageUtilization": percentage, "averageValue": "0"});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": current}});
        status.insert("currentMetrics".to_owned(), json!([metric]));
    }
}

/// Is it about the CPU's utilization, for which the old shape has a field?
fn cpu<'a>(metric: &'a Value, pointer: &str) -> Option<&'a Value> {
    let is_cpu = metric.pointer("/resource/name").and_then(Value::as_str) == Some("cpu");
    metric.pointer(pointer).filter(|_| is_cpu)
}

fn scaler_from_stored(scaler: &mut Object) {
    let spec = part(scaler, "spec");
    let (mut rest, mut percentage) = (Vec::new(), None);
    if let Some(Value::Array(metrics)) = spec.remove("metrics") {
        for metric in metrics {
            match cpu(&metric, "/resource/target/averageUtilization") {
                Some(value) if percentage.is_none() => percentage = Some(value.clone()),
                _ => rest.push(metric),
            }
        }
    }
    if let Some(percentage) = percentage {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percentage);
    }
    let behavior = spec.remove("behavior");
    let status = part(scaler, "status");
    if let Some(Value::Array(metrics)) = status.remove("currentMetrics") {
        let current = metrics.iter().find_map(|metric| cpu(metric, "/resource/current/averageUtilization"));
        if let Some(current) = current {
            status.insert("currentCPUUtilizationPercentage".to_owned(), current.clone());
        }
    }
    let rest = (!rest.is_empty()).then_some(Value::Array(rest));
    for (name, value) in [(METRICS, rest), (BEHAVIOR, behavior)] {
        if let Some(value) = value {
            let annotations = part(part(scaler, "metadata"), "annotations");
            annotations.insert(name.to_owned(), json!(value.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_keeps_what_its_old_shape_has_no_field_for() {
        let shape = shape("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
        let stored = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}},
            ]},
            "status": {"currentMetrics": null, "desiredReplicas": 0},
        });
        let mut old = stored.clone();
        (shape.from_stored)(old.as_object_mut().unwrap());
        assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(to_stored(shape, &old), stored);
    }
}
