//! Templates with what Helm's own engine made of them, recorded: `facts.json`.

use serde_json::Value as Json;
use windlass_template::functions::Functions;
use windlass_template::value::{MapType, Value};
use windlass_template::{Engine, MissingKey, Options, from_json};

#[test]
fn recorded_templates_are_rendered_as_by_helm() {
    let facts: Json = serde_json::from_str(include_str!("facts.json")).expect("it is JSON");
    let cases = facts["cases"].as_array().expect("a list");
    let mut wrong = Vec::new();
    for case in cases {
        let template = case["template"].as_str().expect("a text");
        let engine =
            Engine::new(Functions::helm(), Options { missing_key: MissingKey::Zero, ..Options::default() });
        let values = match from_json(&facts["values"]) {
            Value::Map(map) => Value::Map(map.typed(MapType::Values)),
            other => other,
        };
        let name = "case/templates/t";
        let ours = engine
            .parse(name, template)
            .and_then(|()| engine.execute(name, Value::map([("Values", values)])));
        let equal = match (&ours, case["text"].as_str(), case["error"].as_str()) {
            (Ok(ours), Some(theirs), _) => String::from_utf8_lossy(ours).replace("<no value>", "") == theirs,
            // Helm shortens what it shows of some errors: the last part is the same.
            (Err(ours), _, Some(theirs)) => {
                let last = theirs.rsplit(": ").next().unwrap_or_default();
                ours.text.contains(last)
            }
            _ => false,
        };
        if !equal {
            wrong.push(format!("{template}\n  ours:   {ours:?}\n  theirs: {case}"));
        }
    }
    assert!(wrong.is_empty() && cases.len() > 40, "{}", wrong.join("\n"));
}
