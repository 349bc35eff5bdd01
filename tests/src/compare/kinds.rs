//! The kinds that random requests are about: built-in ones with and without special rules, and a custom one.

use super::Random;
use serde_json::{Value, json};

/// One kind that is served on both sides.
pub struct Kind {
    /// `v1`
    pub api_version: &'static str,
    /// `ConfigMap`
    pub kind: &'static str,
    /// The path of its objects.
    pub collection: String,
    /// What comes before names, where all tests share one space.
    prefix: String,
    /// The label that all objects have, where all tests share one space.
    mark: Option<String>,
    /// Parts with a path of their own; some may be missing.
    pub parts: &'static [&'static str],
    /// Field selectors that it knows.
    pub fields: &'static [&'static str],
}

/// The group of the custom kind.
pub const GROUP: &str = "random.windlass.test";

/// The definition of the custom kind.
pub fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 1, "minimum": 0},
            "note": {"type": "string"},
        }},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.note"}],
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// The path of the custom kind's objects.
pub fn things(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/things")
}

impl Kind {
    /// All of them, in a namespace.
    pub fn all(namespace: &str) -> Vec<Self> {
        let core = format!("/api/v1/namespaces/{namespace}");
        let plain = |api_version, kind, collection: String, fields| Self {
            api_version,
            kind,
            collection,
            prefix: String::new(),
            mark: None,
            parts: &["status", "none"],
            fields,
        };
        vec![
            plain("v1", "ConfigMap", format!("{core}/configmaps"), &["metadata.namespace!=x"]),
            plain("v1", "Secret", format!("{core}/secrets"), &["type=Opaque", "type!=Opaque"]),
            plain(
                "coordination.k8s.io/v1",
                "Lease",
                format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
                &["metadata.namespace=x"],
            ),
            plain(
                "v1",
                "Event",
                format!("{core}/events"),
                &["reason=Made", "type=Warning", "involvedObject.name=a", "source=none"],
            ),
            plain("random.windlass.test/v1", "Thing", things(namespace), &["spec.note=x", "spec.note!=x"]),
            Self {
                prefix: format!("{namespace}-"),
                mark: Some(namespace.to_owned()),
                parts: &["status", "finalize", "none"],
                ..plain("v1", "Namespace", "/api/v1/namespaces".to_owned(), &["status.phase=Active"])
            },
        ]
    }

    /// A name in this kind's space.
    pub fn name(&self, short: &str) -> String {
        format!("{}{short}", self.prefix)
    }

    /// Whether others have objects of it in the same place: then pages end where the others' objects are.
    pub fn is_shared(&self) -> bool {
        self.mark.is_some()
    }

    /// A label selector that keeps to this test's own objects.
    pub fn selector(&self, selector: &str) -> String {
        match &self.mark {
            None => selector.to_owned(),
            Some(mark) if selector.is_empty() => format!("test={mark}"),
            Some(mark) => format!("test={mark},{selector}"),
        }
    }

    /// A valid object with what is special about the kind.
    pub fn object(&self, name: &str, random: &mut Random) -> Value {
        let mut object =
            json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}});
        if let Some(mark) = &self.mark {
            object["metadata"]["labels"] = json!({"test": mark});
        }
        let pick = |random: &mut Random| *random.pick(&["1", "2", "3"]);
        match self.kind {
            "ConfigMap" => {
                object["data"] = json!({"k": pick(random)});
                if random.chance(3) {
                    object["immutable"] = json!(true);
                }
            }
            "Secret" => {
                object["stringData"] = json!({"k": pick(random)});
                if random.chance(5) {
                    object["type"] = json!("windlass.test/other");
                }
            }
            "Lease" => {
                object["spec"] =
                    json!({"holderIdentity": random.pick(&["me", "you"]), "leaseDurationSeconds": 15});
            }
            "Event" => {
                let namespace = self.collection.split('/').nth(4).unwrap_or_default();
                object["involvedObject"] =
                    json!({"kind": "ConfigMap", "namespace": namespace, "name": random.pick(&["a", "b"])});
                object["reason"] = json!(random.pick(&["Made", "Lost"]));
                object["type"] = json!(random.pick(&["Normal", "Warning"]));
                object["count"] = json!(random.below(4));
            }
            "Thing" => {
                object["spec"] = json!({"note": random.pick(&["x", "y"])});
                if random.chance(50) {
                    object["spec"]["size"] = json!(random.below(4));
                }
                if random.chance(50) {
                    object["status"] = json!({"phase": random.pick(&["Ready", "Lost"])});
                }
            }
            _ => {}
        }
        object
    }
}
