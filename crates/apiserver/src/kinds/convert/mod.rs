//! Built-in kinds that are served in shapes other than the one they are stored in: Events of two groups, and autoscalers
//! of two versions.

mod scaler;

use crate::facts::FACTS;
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

impl Shape {
    /// The group of the stored shape.
    pub(crate) fn stored_group(&self) -> &'static str {
        self.stored_as.split_once('/').map_or("", |(group, _)| group)
    }
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
        to_stored: scaler::to_stored,
        from_stored: scaler::from_stored,
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

/// A stored object in this shape, which has its own definition and `apiVersion`.
pub(crate) fn from_stored(shape: &Shape, definition: &str, api_version: &str, object: Value) -> Value {
    settle(object, shape.from_stored, definition, api_version)
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

/// The other versions of a kind within its group.
pub(crate) fn versions(group: &str, plural: &str) -> Vec<String> {
    let shapes = SHAPES.iter().filter(|shape| (shape.group, shape.plural) == (group, plural));
    let both =
        shapes.flat_map(|shape| [format!("{}/{}", shape.group, shape.version), shape.stored_as.to_owned()]);
    both.filter(|version| version.split_once('/').is_some_and(|(own, _)| own == group)).collect()
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

fn part<'a>(object: &'a mut Object, field: &str) -> &'a mut Object {
    let slot = object.entry(field).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("it was made one")
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
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            ]},
            "status": {"currentMetrics": null, "desiredReplicas": 0},
        });
        let mut old = stored.clone();
        (shape.from_stored)(old.as_object_mut().unwrap());
        assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(to_stored(shape, &old), stored);
    }
}
