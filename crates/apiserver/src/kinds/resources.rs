//! The resources of a pod as a whole: its containers together, or its init containers where they need more.

use serde_json::Value;
use std::collections::BTreeMap;
use windlass_schema::Quantity;

/// Quantities by resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The two sides of what a container asks for.
pub(crate) const REQUESTS: &str = "requests";
/// The other.
pub(crate) const LIMITS: &str = "limits";

/// The quantity in a field of an object.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

/// How many times the other a quantity is, for people to read.
pub(crate) fn ratio(one: &Quantity, other: &Quantity) -> f64 {
    #[allow(clippy::cast_precision_loss)] // A ratio for people to read.
    let parts = |quantity: &Quantity| quantity.milli_value() as f64;
    parts(one) / parts(other)
}

/// The quantities in a map of an object.
pub(crate) fn amounts(map: Option<&Value>) -> Amounts {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *to.entry(name.clone()).or_default() += amount;
    }
}

fn raise(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if to.get(name).is_none_or(|known| known < amount) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

fn containers<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    spec.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Can it be asked for by a pod as a whole?
fn is_of_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// What all containers ask for together.
pub(crate) fn of_containers(spec: &Value, side: &str) -> Amounts {
    let of =
        |container: &Value| amounts(container.get("resources").and_then(|resources| resources.get(side)));
    let mut total = Amounts::new();
    containers(spec, "containers").for_each(|container| add(&mut total, &of(container)));
    let (mut running, mut most) = (Amounts::new(), Amounts::new());
    for container in containers(spec, "initContainers") {
        let mut needed = of(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, &needed);
            add(&mut running, &needed);
            needed = running.clone();
        } else {
            add(&mut needed, &running);
        }
        raise(&mut most, &needed);
    }
    raise(&mut total, &most);
    total
}

/// What a pod asks for by itself.
pub(crate) fn of_pod_without_overhead(spec: &Value, side: &str) -> Amounts {
    let mut total = of_containers(spec, side);
    let own = amounts(spec.get("resources").and_then(|resources| resources.get(side)));
    total.extend(own.into_iter().filter(|(name, _)| is_of_pods(name)));
    total
}

/// What a pod asks for, with what running it costs.
pub(crate) fn of_pod(spec: &Value, side: &str) -> Amounts {
    let mut total = of_pod_without_overhead(spec, side);
    let overhead = amounts(spec.get("overhead"));
    match side {
        LIMITS => {
            let known: Amounts = overhead.into_iter().filter(|(name, _)| total.contains_key(name)).collect();
            add(&mut total, &known);
        }
        _ => add(&mut total, &overhead),
    }
    total
}

/// What a pod that says something for itself as a whole asks for where it does not say: what its containers ask for, or
/// what it may have.
pub(crate) fn whole_requests(spec: &Value) -> Option<Amounts> {
    let own = spec.get("resources").filter(|own| own.is_object())?;
    let mut limits = amounts(own.get(LIMITS));
    let mut requests = amounts(own.get(REQUESTS));
    if limits.is_empty() && requests.is_empty() {
        return None;
    }
    for (name, amount) in of_containers(spec, LIMITS) {
        if name.starts_with("hugepages-") && !requests.contains_key(&name) {
            limits.entry(name).or_insert(amount);
        }
    }
    if limits.is_empty() {
        return None;
    }
    for (name, amount) in of_containers(spec, REQUESTS) {
        if matches!(name.as_str(), "cpu" | "memory") {
            requests.entry(name).or_insert(amount);
        }
    }
    for (name, amount) in limits {
        if is_of_pods(&name) {
            requests.entry(name).or_insert(amount);
        }
    }
    (!requests.is_empty()).then_some(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_prepares_a_pod_counts_where_it_needs_more() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
        let mut sidecar = cpu("300m");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [cpu("100m"), cpu("200m")], "initContainers": [sidecar, cpu("2")]});
        assert_eq!(of_pod(&spec, REQUESTS)["cpu"].to_string(), "2300m");
        let spec = json!({"containers": [cpu("1"), cpu("2")], "overhead": {"cpu": "1m"}});
        assert_eq!(of_pod(&spec, REQUESTS)["cpu"].to_string(), "3001m");
    }
}
