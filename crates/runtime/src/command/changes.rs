//! What would change about an object, field by field, with nothing secret in it.

use crate::kind::Kind;
use serde_json::Value;

/// One line per field that an intent would add or change. What the intent does not mention is left alone, and not told of.
pub(super) fn changes(kind: &Kind, intent: &Value, live: Option<&Value>) -> Vec<String> {
    let mut lines = Vec::new();
    let secret = kind.group.is_empty() && kind.kind == "Secret";
    walk(&mut lines, secret, "", intent, live);
    lines
}

fn walk(lines: &mut Vec<String>, secret: bool, path: &str, wanted: &Value, live: Option<&Value>) {
    // They say which object it is.
    if matches!(path, "apiVersion" | "kind" | "metadata.name" | "metadata.namespace") || live == Some(wanted)
    {
        return;
    }
    match (wanted, live) {
        (Value::Object(fields), _) if !fields.is_empty() => {
            for (name, field) in fields {
                let deeper = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(lines, secret, &deeper, field, live.and_then(|live| live.get(name)));
            }
        }
        (Value::Array(items), _) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                walk(
                    lines,
                    secret,
                    &format!("{path}[{number}]"),
                    item,
                    live.and_then(|live| live.get(number)),
                );
            }
            let more = live.and_then(Value::as_array).map_or(0, Vec::len).saturating_sub(items.len());
            if more > 0 {
                lines.push(format!("- {path}: the last {more}"));
            }
        }
        (wanted, live) => {
            let hidden = secret && (path.starts_with("data.") || path.starts_with("stringData."));
            let show = |value: &Value| if hidden { "(redacted)".to_owned() } else { value.to_string() };
            lines.push(match live {
                None | Some(Value::Null) => format!("+ {path}: {}", show(wanted)),
                Some(live) => format!("~ {path}: {} -> {}", show(live), show(wanted)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    #[test]
    fn only_what_would_change_is_told() {
        let live =
            json!({"metadata": {"name": "a", "uid": "u"}, "data": {"x": "1", "y": "2"}, "list": [1, 2, 3]});
        let wanted = json!({"metadata": {"name": "a", "labels": {"l": "v"}}, "data": {"x": "9", "y": "2"}, "list": [1, 5]});
        let lines = changes(&Kind::of::<ConfigMap>(), &wanted, Some(&live));
        assert_eq!(
            lines,
            [
                "~ data.x: \"1\" -> \"9\"",
                "~ list[1]: 2 -> 5",
                "- list: the last 1",
                "+ metadata.labels.l: \"v\"",
            ]
        );
        assert!(changes(&Kind::of::<ConfigMap>(), &json!({"data": {"y": "2"}}), Some(&live)).is_empty());
    }

    #[test]
    fn what_a_secret_holds_is_not_told() {
        let (live, wanted) =
            (json!({"data": {"p": "b2xk"}}), json!({"data": {"p": "bmV3", "q": "eA=="}, "type": "Opaque"}));
        let lines = changes(&Kind::of::<Secret>(), &wanted, Some(&live));
        assert_eq!(
            lines,
            ["~ data.p: (redacted) -> (redacted)", "+ data.q: (redacted)", "+ type: \"Opaque\""]
        );
    }
}
