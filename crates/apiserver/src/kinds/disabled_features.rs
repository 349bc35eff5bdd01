//! Fields of features that are off unless someone turns them on: the reference decodes them, notes down who owns them, and
//! drops them before it looks at the object.

use super::walk;
use crate::facts::FACTS;
use serde_json::Value;

/// Struct and field.
const FIELDS: &[(&str, &str)] = &[
    ("core.v1.Lifecycle", "stopSignal"),
    ("core.v1.VolumeProjection", "clusterTrustBundle"),
    ("core.v1.VolumeProjection", "podCertificate"),
    ("core.v1.PodSpec", "schedulingGroup"),
    ("core.v1.TypedObjectReference", "namespace"),
    ("core.v1.NodeStatus", "declaredFeatures"),
    ("core.v1.NodeStatus", "config"),
    ("core.v1.NodeSpec", "configSource"),
    ("core.v1.PodStatus", "nodeAllocatableResourceClaimStatuses"),
    ("apps.v1.RollingUpdateStatefulSetStrategy", "maxUnavailable"),
    ("discovery.v1.Endpoint", "deprecatedTopology"),
    ("storage.v1.CSIDriverSpec", "preventPodSchedulingIfMissing"),
    ("resource.v1.DeviceAttribute", "bools"),
    ("resource.v1.DeviceAttribute", "ints"),
    ("resource.v1.DeviceAttribute", "strings"),
    ("resource.v1.DeviceAttribute", "versions"),
    ("resource.v1.Device", "nodeAllocatableResourceMappings"),
];

/// Takes them out of an object of this type.
pub(crate) fn drop(definition: &str, object: &mut Value) {
    walk::visit_mut(&FACTS.structs, definition, object, &mut |name, fields| {
        for (_, field) in FIELDS.iter().filter(|(known, _)| *known == name) {
            fields.remove(*field);
        }
        // A lifecycle of nothing but a dropped field is none.
        if name == "core.v1.Container"
            && fields.get("lifecycle").and_then(Value::as_object).is_some_and(|lifecycle| {
                lifecycle.keys().all(|field| field == "stopSignal") && !lifecycle.is_empty()
            })
        {
            fields.remove("lifecycle");
        }
    });
}
