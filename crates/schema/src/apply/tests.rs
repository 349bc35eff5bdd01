//! Server-side apply as a whole: a kind with every merge strategy, its objects over several writes, and properties.

mod observed;
mod properties;
mod would_change;

use super::*;
use serde_json::json;

pub(super) const API_VERSION: &str = "apply.example.com/v1";

/// A kind with every way of merging.
pub(super) fn widget_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let pair = json!({"x": {"type": "string"}, "y": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "b": {"type": "string"},
                "n": {"type": "integer"},
                "t": {"type": "boolean"},
                "date": {"type": "string", "format": "date-time"},
                "nullable": {"type": "string", "nullable": true},
                "struct": {"type": "object", "properties": pair},
                "atomicStruct": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "x": {"type": "string"}, "y": {"type": "string"}, "d": {"type": "string", "default": "dflt"},
                }},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "ios": {"x-kubernetes-int-or-string": true},
                "atomicList": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "intSet": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
                "list": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "x": {"type": "string"}, "y": {"type": "string"},
                    }},
                },
                "ports": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {"type": "object", "required": ["port"], "properties": {
                        "port": {"type": "integer"},
                        "protocol": {"type": "string", "default": "TCP"},
                        "name": {"type": "string"},
                    }},
                },
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                },
            }},
            "status": {"type": "object", "properties": {
                "phase": {"type": "string"},
                "conditions": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "properties": {
                        "type": {"type": "string"}, "status": {"type": "string"},
                    }},
                },
            }},
        }});
        Arc::new(Schema::from_json(&schema).expect("the schema is well-formed"))
    });
    SCHEMA.clone()
}

/// An object and the clock, one write after the other.
pub(super) struct World {
    pub(super) live: Option<Value>,
    pub(super) seconds: i64,
    pub(super) subresource: &'static str,
}

impl World {
    pub(super) fn new() -> World {
        World { live: None, seconds: 1_700_000_000, subresource: "" }
    }

    pub(super) fn through(&mut self, subresource: &'static str) -> &mut World {
        self.subresource = subresource;
        self
    }

    pub(super) fn with<T>(&self, run: impl FnOnce(&Context<'_>) -> T) -> T {
        let reset: &[&[&str]] =
            if self.subresource == "status" { &[&["metadata"], &["spec"]] } else { &[&["status"]] };
        let reset_fields =
            ResetFields::from([(API_VERSION.into(), Filter::Exclude(FieldSet::of_fields(reset)))]);
        run(&Context {
            blank: None,
            settled: false,
            schema: &|version| (version == API_VERSION).then(widget_schema),
            convert: &Same,
            now: Timestamp::from_second(self.seconds).expect("a time of our age"),
            subresource: self.subresource,
            reset_fields: &reset_fields,
            api_version: API_VERSION,
            kind: "Widget",
        })
    }

    pub(super) fn try_apply(
        &mut self,
        manager: &str,
        fields: Value,
        force: bool,
    ) -> Result<bool, ApplyError> {
        self.seconds += 1;
        let intent = widget(fields);
        let applied = self.with(|context| apply(self.live.as_ref(), &intent, manager, force, context))?;
        self.store(applied.object);
        Ok(applied.changed)
    }

    pub(super) fn apply(&mut self, manager: &str, fields: Value) -> &mut World {
        self.try_apply(manager, fields, false).expect("no conflict");
        self
    }

    /// Merges the fields into the object without apply: what is null goes, maps come together.
    pub(super) fn patch(&mut self, manager: &str, fields: Value) -> &mut World {
        self.seconds += 1;
        let mut new = self.live.clone().unwrap_or_else(|| widget(json!({})));
        crate::patch::merge(&mut new, &fields);
        crate::default::fill(&widget_schema(), &mut new);
        self.with(|context| update(self.live.as_ref(), &mut new, manager, context)).expect("of its type");
        self.store(new);
        self
    }

    /// What a server does beside: it fills in defaults, gives a uid, and what the path may not write stays as it was.
    fn store(&mut self, mut new: Value) {
        crate::default::fill(&widget_schema(), &mut new);
        let field = if self.subresource == "status" { "spec" } else { "status" };
        let kept = self.live.as_ref().and_then(|live| live.get(field)).cloned();
        let object = new.as_object_mut().expect("an object");
        match kept {
            Some(kept) => object.insert(field.into(), kept),
            None => object.remove(field),
        };
        new["metadata"]["uid"] = "one".into();
        if let Some(live) = &self.live {
            keep_times_if_unchanged(live, &mut new);
        }
        self.live = Some(new);
    }

    pub(super) fn spec(&self) -> Value {
        self.live.as_ref().map(|live| live["spec"].clone()).unwrap_or_default()
    }

    /// Each entry as manager, operation and fields.
    pub(super) fn owners(&self) -> Vec<(String, String, Value)> {
        let entries = self.live.as_ref().and_then(entries).unwrap_or_default();
        let owner = |entry: Entry| (entry.manager, entry.operation, entry.fields_v1.unwrap_or_default());
        entries.into_iter().map(owner).collect()
    }

    #[track_caller]
    pub(super) fn expect_owners(&self, expected: &[(&str, &str, Value)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(who, how, fields)| ((*who).into(), (*how).into(), fields.clone()))
            .collect();
        assert_eq!(self.owners(), expected);
    }
}

pub(super) fn widget(fields: Value) -> Value {
    let mut object = json!({"apiVersion": API_VERSION, "kind": "Widget", "metadata": {"name": "w"}});
    json_patch_keeping_nulls(&mut object, fields);
    object
}

/// Lays fields over an object, nulls included.
fn json_patch_keeping_nulls(object: &mut Value, fields: Value) {
    match (object, fields) {
        (Value::Object(object), Value::Object(fields)) => {
            for (name, value) in fields {
                json_patch_keeping_nulls(object.entry(name).or_insert(Value::Null), value);
            }
        }
        (place, value) => *place = value,
    }
}
