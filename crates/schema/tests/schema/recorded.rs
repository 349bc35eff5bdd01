//! Recorded responses of Kubernetes 1.36 to schemas and values; ours must be equal.
//!
//! The order of errors is compared where the real one is not random.

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_schema::{Path, Schema, default, embedded, json, prune, structural, validate};

fn cases(text: &str) -> Vec<Value> {
    let document = json::read(text.as_bytes()).unwrap();
    document.value.as_array().unwrap().clone()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn rendered(errors: &[windlass_schema::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Everything up to the reason of Go's parser, which words it in its own way.
fn without_regex_reason(text: &str) -> &str {
    text.split("error parsing regexp").next().unwrap_or_default()
}

#[test]
fn values_are_answered_as_by_kubernetes() {
    let cases = cases(include_str!("cases/values.json"));
    let fields: serde_json::Map<String, Value> = cases
        .iter()
        .map(|case| (case["field"].as_str().unwrap().to_owned(), case["schema"].clone()))
        .collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    assert_eq!(rendered(&structural::check(&schema, &Path::root())), [""; 0]);
    let schema = Arc::new(Schema::from_json(&schema).unwrap());
    let mut wrong = Vec::new();
    for case in &cases {
        let field = case["field"].as_str().unwrap();
        for answer in case["answers"].as_array().unwrap() {
            let mut object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"},
                "spec": {field: answer["value"]}});
            let mut unknown = prune::prune(&schema, &mut object, true);
            let coerced = embedded::coerce(&schema, &mut object, &Path::root());
            unknown.extend(coerced.clone().unwrap_or_default());
            default::fill(&schema, &mut object);
            let errors = rendered(&validate::validate(&schema, &object, &Path::root()));
            let ours = match coerced {
                Err(error) => json!({"value": answer["value"], "refused": error.to_string()}),
                Ok(_) if !errors.is_empty() => json!({"value": answer["value"], "errors": errors}),
                Ok(_) => {
                    let stored = object["spec"].get(field).cloned().unwrap_or(json!("<absent>"));
                    json!({"value": answer["value"], "stored": stored, "unknown": unknown})
                }
            };
            // As texts: a whole float is stored as an integer.
            if json::to_string(&ours) != json::to_string(answer) {
                wrong.push(format!("{}\n real {answer}\n ours {ours}", case["schema"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn schemas_are_answered_as_by_kubernetes() {
    let path = Path::new("spec").child("validation").child("openAPIV3Schema");
    let mut wrong = Vec::new();
    for case in cases(include_str!("cases/schemas.json")) {
        let real: Vec<String> =
            texts(&case["errors"]).iter().map(|text| without_regex_reason(text).to_owned()).collect();
        let ours: Vec<String> = rendered(&structural::check(&case["schema"], &path))
            .iter()
            .map(|text| without_regex_reason(text).to_owned())
            .collect();
        if real != ours {
            wrong.push(format!("{}\n real {real:#?}\n ours {ours:#?}", case["schema"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
