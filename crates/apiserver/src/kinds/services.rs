//! Services: cluster IPs and node ports, allocated so that no two Services have the same.
//!
//! What is taken is known from the Services themselves. A list of who took what makes finding a free one fast; it is read
//! once, and an owner who is gone or has given back is found out when someone else wants the same.

use super::service_range::{ServiceClusterIpRange, from_a_random_one};
use super::{RuleContext, child, text};
use crate::status::{Named, Status, causes};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::time::Duration;
use windlass_clock::{Clock, Moment};
use windlass_schema::field::{FieldError, Path};
use windlass_store::{Key, ListQuery, Store};

const PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// How long something is held for a Service that is not stored yet.
const HELD: Duration = Duration::from_secs(30);

/// What is allocated to a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Allocation {
    Address(Ipv4Addr),
    Port(u16),
}

/// Which Service each address and port is allocated to.
#[derive(Debug)]
pub(crate) struct ServiceAllocations {
    range: ServiceClusterIpRange,
    /// Read from the Services themselves when first needed.
    taken: Mutex<Option<HashMap<Allocation, (Key, Moment)>>>,
}

impl ServiceAllocations {
    pub(crate) fn new(range: ServiceClusterIpRange) -> Self {
        Self { range, taken: Mutex::default() }
    }

    /// The range that addresses are from.
    pub(crate) fn range(&self) -> ServiceClusterIpRange {
        self.range
    }

    /// Takes it for `owner`, unless it is another's.
    fn take(&self, store: &Store, clock: &Clock, allocation: Allocation, owner: &Key) -> bool {
        let mut guard = self.taken.lock();
        let taken = guard.get_or_insert_with(|| known(store, clock));
        let now = clock.moment();
        if let Some((holder, since)) = taken.get(&allocation)
            && holder != owner
        {
            let fresh = now - *since < HELD;
            let holds =
                store.get(holder).is_some_and(|entry| allocations_of(&entry.value()).contains(&allocation));
            if holds || (fresh && store.get(holder).is_none()) {
                return false;
            }
        }
        taken.insert(allocation, (owner.clone(), now));
        true
    }
}

/// Gives back what a Service that is gone took in its life, also what it had no use for any more: at once, where an
/// owner who is not stored may be one who is not stored yet.
pub(crate) fn release(allocations: &ServiceAllocations, owner: &Key) {
    if let Some(taken) = allocations.taken.lock().as_mut() {
        taken.retain(|_, (holder, _)| holder != owner);
    }
}

fn known(store: &Store, clock: &Clock) -> HashMap<Allocation, (Key, Moment)> {
    let now = clock.moment();
    let services = store.list(&ListQuery::all("services")).map(|page| page.items).unwrap_or_default();
    let of = |entry: &std::sync::Arc<windlass_store::Entry>| {
        let key = entry.key().clone();
        allocations_of(&entry.value())
            .into_iter()
            .map(move |allocation| (allocation, (key.clone(), now)))
            .collect::<Vec<_>>()
    };
    services.iter().flat_map(of).collect()
}

/// All that is allocated to a Service.
fn allocations_of(service: &Value) -> Vec<Allocation> {
    let list = |pointer: &str| service.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let addresses = list("/spec/clusterIPs")
        .filter_map(|address| address.as_str()?.parse().ok().map(Allocation::Address));
    let number =
        |port: &Value| u16::try_from(port.as_i64()?).ok().filter(|port| *port != 0).map(Allocation::Port);
    let ports = list("/spec/ports").filter_map(|port| number(port.get("nodePort")?));
    let health = service.pointer("/spec/healthCheckNodePort").and_then(number);
    addresses.chain(ports).chain(health).collect()
}

fn needs_address(service: &Value) -> bool {
    matches!(text(service, &["spec", "type"]), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn needs_ports(service: &Value) -> bool {
    match text(service, &["spec", "type"]) {
        "NodePort" => true,
        "LoadBalancer" => service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&json!(false)),
        _ => false,
    }
}

/// Gives a Service what it needs, or what it asks for.
pub(super) fn allocate(
    context: &RuleContext<'_>,
    service: &mut Value,
    _: Option<&Value>,
) -> Result<(), Status> {
    if text(service, &["spec", "type"]) == "ExternalName" {
        return Ok(());
    }
    let owner = Key::new("services", context.namespace, text(service, &["metadata", "name"]));
    families(service);
    if needs_address(service) {
        address(context, service, &owner)?;
    }
    if needs_ports(service) {
        ports(context, service, &owner)?;
    }
    Ok(())
}

/// One family of addresses is served, so there is little to choose.
fn families(service: &mut Value) {
    let headless = text(service, &["spec", "clusterIP"]) == "None";
    let selects =
        service.pointer("/spec/selector").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let spec = child(service, "spec");
    let (policy, families) = match headless && !selects {
        true => ("RequireDualStack", json!(["IPv4", "IPv6"])),
        false => ("SingleStack", json!(["IPv4"])),
    };
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
    let families = if spec["ipFamilyPolicy"] == "RequireDualStack" { families } else { json!(["IPv4"]) };
    spec.entry("ipFamilies").or_insert(families);
}

fn address(context: &RuleContext<'_>, service: &mut Value, owner: &Key) -> Result<(), Status> {
    let wanted = text(service, &["spec", "clusterIP"]).to_owned();
    let spec = child(service, "spec");
    if wanted == "None" {
        spec.entry("clusterIPs").or_insert_with(|| json!(["None"]));
        return Ok(());
    }
    let range = context.allocations.range;
    let take =
        |address| context.allocations.take(context.store, context.clock, Allocation::Address(address), owner);
    if let Ok(asked) = wanted.parse::<Ipv4Addr>() {
        spec.entry("clusterIPs").or_insert_with(|| json!([wanted]));
        let why = if !range.contains(asked) {
            Some("the provided network does not match the current range")
        } else if !take(asked) {
            Some("provided IP is already allocated")
        } else {
            None
        };
        return match why {
            None => Ok(()),
            Some(why) => {
                let path = Path::new("spec").child("clusterIPs");
                let why = format!("failed to allocate IP {asked}: {why}");
                Err(invalid(service, FieldError::invalid(&path, json!([wanted]), why)))
            }
        };
    }
    let free = range.dynamic().chain(range.static_block()).find(|address| take(*address));
    match free {
        Some(address) => {
            spec.insert("clusterIP".to_owned(), json!(address.to_string()));
            spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
            Ok(())
        }
        None => Err(Status::internal("failed to allocate a serviceIP: range is full")),
    }
}

fn ports(context: &RuleContext<'_>, service: &mut Value, owner: &Key) -> Result<(), Status> {
    let take = |port| context.allocations.take(context.store, context.clock, Allocation::Port(port), owner);
    let free = || {
        let ports = from_a_random_one(u32::from(*PORTS.start()), u32::from(*PORTS.end()));
        ports.filter_map(|port| u16::try_from(port).ok()).find(|port| take(*port))
    };
    // Ports of one number and two protocols may be one port of the node.
    let mut by_number: HashMap<i64, u16> = HashMap::new();
    let mut refused = None;
    let items = child(service, "spec").get_mut("ports").and_then(Value::as_array_mut);
    for (index, port) in items.into_iter().flatten().enumerate() {
        let Some(port) = port.as_object_mut() else { continue };
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        let asked = port.get("nodePort").and_then(Value::as_i64).and_then(|port| u16::try_from(port).ok());
        match asked.filter(|port| *port != 0) {
            Some(asked) => {
                let why = if !PORTS.contains(&asked) {
                    "provided port is not in the valid range. The range of valid ports is 30000-32767"
                } else if by_number.values().any(|taken| *taken == asked) || take(asked) {
                    by_number.insert(number, asked);
                    continue;
                } else {
                    "provided port is already allocated"
                };
                let path = Path::new("spec").child("ports").index(index).child("nodePort");
                refused.get_or_insert(FieldError::invalid(&path, asked, why));
            }
            None => {
                let given = by_number.get(&number).copied().or_else(free);
                let given =
                    given.ok_or_else(|| Status::internal("failed to allocate a nodePort: range is full"))?;
                by_number.insert(number, given);
                port.insert("nodePort".to_owned(), json!(given));
            }
        }
    }
    match refused {
        Some(error) => Err(invalid(service, error)),
        None => Ok(()),
    }
}

fn invalid(service: &Value, error: FieldError) -> Status {
    let named = Named { group: "", kind: "Service" };
    Status::invalid(named, text(service, &["metadata", "name"]), causes(&[error]))
}

/// What a Service was given stays its own, unless it says otherwise, or has no use for it any more.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    keep_allocated(new, old);
    give_back(new, old);
}

/// Takes away what only another type of Service needs, where the client left it as it was.
fn give_back(new: &mut Value, old: &Value) {
    let kind = |service: &Value| text(service, &["spec", "type"]).to_owned();
    let (is, was) = (kind(new), kind(old));
    let same = |new: &Value, field: &str| {
        new.get("spec").and_then(|spec| spec.get(field)) == old.get("spec").and_then(|spec| spec.get(field))
    };
    let mut unneeded = Vec::new();
    if is == "ExternalName" && was != "ExternalName" {
        if same(new, "clusterIP") && same(new, "clusterIPs") {
            unneeded.extend(["clusterIP", "clusterIPs"]);
        }
        let others = ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];
        unneeded.extend(others.into_iter().filter(|field| same(new, field)));
    }
    let has_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    let checks_health = |service: &Value, kind: &str| {
        kind == "LoadBalancer" && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
    };
    let is_reached = |service: &Value, kind: &str| {
        let external = service.pointer("/spec/externalIPs").and_then(Value::as_array);
        has_ports(kind) || (kind == "ClusterIP" && external.is_some_and(|list| !list.is_empty()))
    };
    for (field, needed, was_needed) in [
        ("healthCheckNodePort", checks_health(new, &is), checks_health(old, &was)),
        ("allocateLoadBalancerNodePorts", is == "LoadBalancer", was == "LoadBalancer"),
        ("loadBalancerClass", is == "LoadBalancer", was == "LoadBalancer"),
        ("externalTrafficPolicy", is_reached(new, &is), is_reached(old, &was)),
    ] {
        if was_needed && !needed && same(new, field) {
            unneeded.push(field);
        }
    }
    let node_ports = |service: &Value| -> BTreeSet<i64> {
        let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        ports.filter_map(|port| port.get("nodePort")?.as_i64()).filter(|port| *port != 0).collect()
    };
    let loses_ports = has_ports(&was) && !has_ports(&is) && node_ports(old).is_superset(&node_ports(new));
    let spec = child(new, "spec");
    for field in unneeded {
        spec.remove(field);
    }
    if loses_ports {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        ports.filter_map(Value::as_object_mut).for_each(|port| _ = port.remove("nodePort"));
    }
    if was == "LoadBalancer" && is != was {
        child(new, "status").insert("loadBalancer".to_owned(), json!({}));
    }
}

/// What a Service was given stays its own, unless it says otherwise.
fn keep_allocated(new: &mut Value, old: &Value) {
    if needs_address(new) && needs_address(old) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            inherit(child(new, "spec"), old, field);
        }
    }
    if !(needs_ports(new) && needs_ports(old)) {
        return;
    }
    let old_ports: Vec<Value> =
        old.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let ports = child(new, "spec").get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let same =
            |other: &&Value| ["port", "protocol"].iter().all(|field| port.get(field) == other.get(field));
        let node_port = old_ports.iter().find(same).and_then(|other| other.get("nodePort")).cloned();
        if let (Some(port), Some(node_port)) = (port.as_object_mut(), node_port) {
            port.entry("nodePort").or_insert(node_port);
        }
    }
    inherit(child(new, "spec"), old, "healthCheckNodePort");
}

fn inherit(spec: &mut Map<String, Value>, old: &Value, field: &str) {
    if let Some(value) = old.get("spec").and_then(|spec| spec.get(field))
        && !spec.contains_key(field)
    {
        spec.insert(field.to_owned(), value.clone());
    }
}
