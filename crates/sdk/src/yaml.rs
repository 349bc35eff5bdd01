//! YAML as people write manifests: fields by name, so that `apiVersion` and `kind` come first.

use serde_json::Value;

/// One document.
pub(crate) fn document(value: &Value) -> String {
    // A JSON value has nothing that YAML cannot say.
    let text = serde_saphyr::to_string(value).unwrap_or_else(|error| format!("# {error}\n"));
    match text.ends_with('\n') {
        true => text,
        false => text + "\n",
    }
}

/// Several documents in one file.
pub(crate) fn documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    values.into_iter().map(document).collect::<Vec<_>>().join("---\n")
}
