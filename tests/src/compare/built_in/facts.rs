//! How strategic merge patches treat a field, as Go's struct tags say it.

use serde_json::Value;
use std::sync::LazyLock;

static GO: LazyLock<Value> = LazyLock::new(|| {
    let facts = include_str!("../../../../crates/apiserver/facts/go.json");
    serde_json::from_str(facts).expect("the facts are JSON")
});

/// A field of a Go struct.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The struct that it holds, or that its items are; empty if neither.
    pub holds: &'static str,
    /// Whether lists are merged and not replaced.
    pub merges: bool,
    /// Whether `$retainKeys` makes sense.
    pub retains_keys: bool,
    /// The key by which items are merged; empty for lists of plain values.
    pub merge_key: &'static str,
}

/// What is known of `field` in the struct `of`; nothing of what is no struct's field.
pub fn field(of: &str, field: &str) -> Field {
    let Some(found) = GO.get(of).and_then(|of| find(of, field)) else {
        return Field { holds: "", merges: false, retains_keys: false, merge_key: "" };
    };
    let text = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
    let holds = match text("type").split_once("struct ") {
        Some((before, holds)) if !before.contains("map") => holds,
        _ => "",
    };
    let patch = text("patch");
    Field {
        holds,
        merges: patch.contains("merge"),
        retains_keys: patch.contains("retainKeys"),
        merge_key: text("mergeKey"),
    }
}

/// The field, or that of an inlined struct.
fn find(of: &'static Value, field: &str) -> Option<&'static Value> {
    if let Some(found) = of.get(field) {
        return Some(found);
    }
    let inlined = of.as_object()?.values().filter(|field| field.get("inline").is_some());
    let mut structs = inlined.filter_map(|field| field["type"].as_str()?.split_once("struct "));
    structs.find_map(|(_, name)| find(GO.get(name)?, field))
}
