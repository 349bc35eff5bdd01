//! Autoscalers of version 1, which has no fields for most metrics, for behavior and for conditions: it keeps them in
//! annotations, in words of its own, and in the order of Go's structs.

use super::{Object, part};
use serde_json::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All that conversion takes away from an object, whether it understood it or not.
const KEPT: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The utilization of CPUs that is aimed at when nothing is said.
const DEFAULT_UTILIZATION: i64 = 80;

/// The order of the fields of all structs that are kept; none contradicts another.
const ORDER: [&str; 37] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "container",
    "selector",
    "averageValue",
    "matchLabels",
    "matchExpressions",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
    "key",
];

pub(super) fn to_stored(scaler: &mut Object) {
    let annotations = part(part(scaler, "metadata"), "annotations");
    let kept: Vec<Option<Value>> = KEPT
        .iter()
        .map(|name| annotations.remove(*name).and_then(|text| serde_json::from_str(text.as_str()?).ok()))
        .collect();
    if annotations.is_empty() {
        part(scaler, "metadata").remove("annotations");
    }
    let list = |index: usize| kept[index].as_ref().and_then(Value::as_array);
    let spec = part(scaler, "spec");
    let mut metrics: Vec<Value> =
        list(0).into_iter().flatten().map(|metric| metric_to_stored(metric, "target")).collect();
    let percentage = spec.remove("targetCPUUtilizationPercentage").filter(|value| !value.is_null());
    if let Some(percentage) = percentage.or_else(|| metrics.is_empty().then(|| json!(DEFAULT_UTILIZATION))) {
        let target = json!({"type": "Utilization", "averageUtilization": percentage});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    spec.insert("metrics".to_owned(), Value::Array(metrics));
    if let Some(behavior) = kept[3].as_ref().map(behavior_to_stored).filter(|value| *value != json!({})) {
        spec.insert("behavior".to_owned(), behavior);
    }
    let status = part(scaler, "status");
    let percentage = status.remove("currentCPUUtilizationPercentage").filter(|value| !value.is_null());
    if let Some(current) = list(1) {
        let current = current.iter().map(|metric| metric_to_stored(metric, "current"));
        status.insert("currentMetrics".to_owned(), current.collect());
    } else if let Some(percentage) = percentage {
        let current = json!({"averageUtilization": percentage});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": current}});
        status.insert("currentMetrics".to_owned(), json!([metric]));
    }
    if let Some(conditions) = &kept[2] {
        status.insert("conditions".to_owned(), conditions.clone());
    }
}

pub(super) fn from_stored(scaler: &mut Object) {
    let annotations = part(part(scaler, "metadata"), "annotations");
    annotations.retain(|name, _| !KEPT.contains(&name.as_str()));
    let spec = part(scaler, "spec");
    let (mut others, mut percentage) = (Vec::new(), None);
    let Some(Value::Array(metrics)) = Some(spec.remove("metrics").unwrap_or_else(|| json!([]))) else {
        return;
    };
    for metric in metrics {
        match cpu(&metric, "/resource/target/averageUtilization") {
            Some(value) => percentage = percentage.or_else(|| Some(value.clone())),
            None => others.push(metric_from_stored(&metric, "target")),
        }
    }
    if let Some(percentage) = percentage {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percentage);
    }
    let behavior = spec.remove("behavior").filter(|value| !value.is_null());
    let status = part(scaler, "status");
    let mut taken = |field: &str| match status.remove(field) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let (current, conditions) = (taken("currentMetrics"), taken("conditions"));
    let mut utilization =
        current.iter().filter_map(|metric| cpu(metric, "/resource/current/averageUtilization"));
    if let Some(utilization) = utilization.next_back() {
        status.insert("currentCPUUtilizationPercentage".to_owned(), utilization.clone());
    }
    let current: Vec<Value> = current.iter().map(|metric| metric_from_stored(metric, "current")).collect();
    let conditions: Vec<Value> = conditions.into_iter().map(condition).collect();
    let annotations = part(part(scaler, "metadata"), "annotations");
    for (name, list) in [(METRICS, others), (CURRENT, current), (CONDITIONS, conditions)] {
        if !list.is_empty() {
            annotations.insert(name.to_owned(), json!(ordered(&Value::Array(list))));
        }
    }
    if let Some(behavior) = behavior {
        annotations.insert(BEHAVIOR.to_owned(), json!(ordered(&behavior_from_stored(&behavior))));
    }
    if annotations.is_empty() {
        part(scaler, "metadata").remove("annotations");
    }
}

/// Is it about the CPU's utilization, for which the old version has a field?
fn cpu<'a>(metric: &'a Value, pointer: &str) -> Option<&'a Value> {
    let is_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    metric.pointer(pointer).filter(|value| is_cpu && !value.is_null())
}

/// Of a condition the time is written even if there is none.
fn condition(mut condition: Value) -> Value {
    if let Some(fields) = condition.as_object_mut() {
        fields.entry("lastTransitionTime").or_insert(Value::Null);
    }
    condition
}

/// What a metric is about, and the field of a metric that has it.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// `targetAverageValue`, `currentValue`, and so on.
fn prefixed(side: &str, name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    side.chars().chain(first).chain(letters).collect()
}

/// A metric as version 1 says it; `side` is `target` for what is wanted and `current` for what is seen.
fn metric_from_stored(metric: &Value, side: &str) -> Value {
    let mut old = json!({"type": metric["type"]});
    for source in SOURCES {
        let Some(about) = metric.get(source).filter(|about| about.is_object()) else { continue };
        let amount = |name: &str| about[side].get(name).cloned();
        let or_zero = |name: &str| amount(name).unwrap_or_else(|| json!("0"));
        let mut fields = Map::new();
        let mut put = |name: String, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name, value);
            }
        };
        let selector = about["metric"].get("selector").cloned();
        match source {
            "object" => {
                put("target".to_owned(), about.get("describedObject").cloned());
                put("metricName".to_owned(), Some(about["metric"]["name"].clone()));
                put(prefixed(side, "value"), Some(or_zero("value")));
                put("selector".to_owned(), selector);
                put("averageValue".to_owned(), amount("averageValue"));
            }
            "pods" => {
                put("metricName".to_owned(), Some(about["metric"]["name"].clone()));
                put(prefixed(side, "averageValue"), Some(or_zero("averageValue")));
                put("selector".to_owned(), selector);
            }
            "external" => {
                put("metricName".to_owned(), Some(about["metric"]["name"].clone()));
                put("metricSelector".to_owned(), selector);
                let value = if side == "current" { Some(or_zero("value")) } else { amount("value") };
                put(prefixed(side, "value"), value);
                put(prefixed(side, "averageValue"), amount("averageValue"));
            }
            _ => {
                put("name".to_owned(), about.get("name").cloned());
                put("container".to_owned(), about.get("container").cloned());
                put(prefixed(side, "averageUtilization"), amount("averageUtilization"));
                let value =
                    if side == "current" { Some(or_zero("averageValue")) } else { amount("averageValue") };
                put(prefixed(side, "averageValue"), value);
            }
        }
        old[source] = Value::Object(fields);
    }
    old
}

fn metric_to_stored(metric: &Value, side: &str) -> Value {
    let mut new = json!({"type": metric["type"]});
    for source in SOURCES {
        let Some(about) = metric.get(source).filter(|about| about.is_object()) else { continue };
        let given = |name: String| about.get(&name).filter(|value| !value.is_null()).cloned();
        let (mut amounts, mut fields) = (Map::new(), Map::new());
        for name in ["value", "averageValue", "averageUtilization"] {
            // Of an object, the average has the name that it has in the new version.
            let found = match (source, name) {
                ("object", "averageValue") => given("averageValue".to_owned()),
                _ => given(prefixed(side, name)),
            };
            let zero = found.as_ref().is_some_and(|value| value == "0");
            // A value that cannot be left out is 0 beside an average, and means nothing.
            let meaningless = (source, side, name) == ("object", "target", "value")
                && zero
                && given("averageValue".to_owned()).is_some();
            if let Some(value) = found.filter(|_| !meaningless) {
                amounts.insert(name.to_owned(), value);
            }
        }
        if side == "target" {
            let kind = match source {
                "pods" => "AverageValue",
                "object" if amounts.contains_key("averageValue") => "AverageValue",
                "object" => "Value",
                "external" if amounts.contains_key("value") => "Value",
                _ if amounts.contains_key("averageUtilization") => "Utilization",
                _ => "AverageValue",
            };
            amounts.insert("type".to_owned(), json!(kind));
        }
        fields.insert(side.to_owned(), Value::Object(amounts));
        if let Some(described) = given("target".to_owned()) {
            fields.insert("describedObject".to_owned(), described);
        }
        for name in ["name", "container"] {
            if let Some(value) = given(name.to_owned()) {
                fields.insert(name.to_owned(), value);
            }
        }
        if let Some(name) = given("metricName".to_owned()) {
            let mut identifier = json!({"name": name});
            if let Some(selector) =
                given("selector".to_owned()).or_else(|| given("metricSelector".to_owned()))
            {
                identifier["selector"] = selector;
            }
            fields.insert("metric".to_owned(), identifier);
        }
        new[source] = Value::Object(fields);
    }
    new
}

/// Behavior is kept as Go's internal type has it: names begin in upper case, and nothing is left out.
fn behavior_from_stored(behavior: &Value) -> Value {
    let rules = |name: &str| match behavior.get(name).filter(|rules| rules.is_object()) {
        None => Value::Null,
        Some(rules) => {
            let policy = |policy: &Value| {
                json!({
                    "Type": policy["type"], "Value": policy["value"], "PeriodSeconds": policy["periodSeconds"],
                })
            };
            let policies = rules.get("policies").and_then(Value::as_array);
            let policies: Option<Vec<Value>> = policies.map(|list| list.iter().map(policy).collect());
            json!({
                "StabilizationWindowSeconds": rules["stabilizationWindowSeconds"],
                "SelectPolicy": rules["selectPolicy"], "Policies": policies, "Tolerance": rules["tolerance"],
            })
        }
    };
    json!({"ScaleUp": rules("scaleUp"), "ScaleDown": rules("scaleDown")})
}

fn behavior_to_stored(behavior: &Value) -> Value {
    match behavior {
        Value::Object(fields) => {
            let renamed = fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect(), behavior_to_stored(value))
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.iter().map(behavior_to_stored).collect(),
        other => other.clone(),
    }
}

/// JSON as Go writes it: fields in the order of their structs, and of maps in that of their keys.
fn ordered(value: &Value) -> String {
    fn write(value: &Value, is_map: bool, text: &mut String) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
                if !is_map {
                    fields.sort_by_key(|(name, _)| {
                        ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len())
                    });
                }
                text.push('{');
                for (index, (name, field)) in fields.into_iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&Value::String(name.clone()).to_string());
                    text.push(':');
                    write(field, name == "matchLabels", text);
                }
                text.push('}');
            }
            Value::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    write(item, false, text);
                }
                text.push(']');
            }
            scalar => text.push_str(&scalar.to_string()),
        }
    }
    let mut text = String::new();
    write(value, false, &mut text);
    // As Go does, so that the text may stand in HTML.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
