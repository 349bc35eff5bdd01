//! What an error shows of a value that has fields: the reference shows Go's internal type, in its own form or as a diff.

use serde_json::Value;

const SHOWN: &str = "Invalid value: ";

/// Takes the shown values out of an error's texts.
pub fn hide(status: &mut Value) {
    if status["kind"] != "Status" {
        return;
    }
    let hide = |text: &mut Value| {
        if let Value::String(text) = text {
            *text = hidden(text);
        }
    };
    hide(&mut status["message"]);
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.iter_mut().for_each(|cause| hide(&mut cause["message"]));
        // They were sorted with what they showed.
        causes.sort_by_key(ToString::to_string);
    }
}

/// The text up to a diff, which begins on a line of its own, without the values that are no scalars.
fn hidden(text: &str) -> String {
    let text = text.split_once('\n').map_or(text, |(head, _)| head);
    let Some((head, value)) = text.split_once(SHOWN) else { return text.to_owned() };
    if !(value.starts_with(['{', '[']) || value.starts_with("null")) {
        return text.to_owned();
    }
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<serde::de::IgnoredAny>();
    let rest = match values.next() {
        Some(Ok(_)) => &value[values.byte_offset()..],
        // Go's own form ends with the last bracket.
        _ => value.rsplit_once(['}', ']']).map_or("", |(_, rest)| rest),
    };
    format!("{head}{SHOWN}...{rest}")
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn values_with_fields_are_hidden_and_others_stay() {
        let same = r#"spec.a: Invalid value: "b": field is immutable"#;
        assert_eq!(hidden(same), same);
        let expected = "spec: Invalid value: ...: field is immutable";
        assert_eq!(hidden(r#"spec: Invalid value: {"a":[1]}: field is immutable"#), expected);
        assert_eq!(hidden("spec: Invalid value: null: field is immutable"), expected);
        assert_eq!(hidden("spec: Forbidden: no\n  core.Spec{...}\n"), "spec: Forbidden: no");
    }
}
