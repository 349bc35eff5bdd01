//! JSON patch: RFC 6902.

use super::PatchError;
use crate::go;
use crate::json::{self, MAX_DEPTH};
use serde_json::{Map, Value};

/// How many operations a patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// How many bytes all copies of a patch may add together.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies a JSON patch to a document.
pub fn json_patch(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = decode(patch)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooMany { most: MAX_OPERATIONS, got: operations.len() });
    }
    let mut patcher = Patcher { doc: doc.clone(), copied: 0, depth: depth(doc) };
    for operation in operations {
        patcher.apply(operation).map_err(PatchError::DoesNotApply)?;
    }
    Ok(patcher.doc)
}

fn decode(patch: &Value) -> Result<Vec<&Map<String, Value>>, PatchError> {
    let refuse = |value: &Value, wanted: &str| {
        let found = match value {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) | Value::Null => "object",
        };
        PatchError::Malformed(format!(
            "json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"
        ))
    };
    let operations = match patch {
        Value::Null => return Ok(Vec::new()),
        Value::Array(operations) => operations,
        other => return Err(refuse(other, "Patch")),
    };
    operations.iter().map(|item| item.as_object().ok_or_else(|| refuse(item, "Operation"))).collect()
}

/// How deep a value nests.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

const MISSING: &str = "missing value";
const FAILED: &str = "test failed";

struct Patcher {
    doc: Value,
    copied: usize,
    /// No less than how deep the document nests.
    depth: usize,
}

/// Where a path leads: the object or array, and the key in it.
struct Place<'a> {
    container: &'a mut Value,
    key: String,
}

impl Patcher {
    fn apply(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        match operation.get("op").and_then(Value::as_str).unwrap_or("unknown") {
            "add" => self.add(operation),
            "remove" => self.remove(operation),
            "replace" => self.replace(operation),
            "move" => self.relocate(operation),
            "test" => self.test(operation),
            "copy" => self.copy(operation),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn find(&mut self, path: &str) -> Option<Place<'_>> {
        // What stands before the first slash is ignored, as the server does.
        let (_, path) = path.split_once('/')?;
        let (parents, key) =
            path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
        let mut container = &mut self.doc;
        for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
            container = member(container, &unescape(part)).ok()??;
        }
        matches!(container, Value::Object(_) | Value::Array(_))
            .then(|| Place { container, key: unescape(key) })
    }

    /// Refuses what would nest the document too deep. `inside` is the depth of what is put at `path`.
    fn grow(&mut self, path: &str, inside: usize) -> Result<(), String> {
        let reached = path.matches('/').count() + inside;
        self.depth = self.depth.max(reached);
        if self.depth > MAX_DEPTH {
            self.depth = depth(&self.doc);
            if self.depth.max(reached) > MAX_DEPTH {
                return Err("exceeded max depth".to_owned());
            }
            self.depth = self.depth.max(reached);
        }
        Ok(())
    }

    fn add(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let path = pointer(operation, "path")
            .map_err(|_| format!("add operation failed to decode path: {MISSING}"))?;
        let value = operation.get("value").cloned().unwrap_or_default();
        self.grow(path, depth(&value))?;
        let place = self.find(path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        })?;
        place.add(value).map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let path = pointer(operation, "path")
            .map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?;
        let place = self.find(path).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        })?;
        place.remove().map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let path = pointer(operation, "path")
            .map_err(|why| format!("replace operation failed to decode path: {why}"))?;
        let value = operation.get("value").cloned().unwrap_or_default();
        self.grow(path, depth(&value))?;
        if path.is_empty() {
            if !matches!(value, Value::Object(_) | Value::Array(_)) {
                return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
            }
            self.doc = value;
            return Ok(());
        }
        let Place { container, key } = self.find(path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
        })?;
        match container {
            // A missing field is no error: it is added.
            Value::Object(fields) => drop(fields.insert(key, value)),
            container => {
                let item = member(container, &key).ok().flatten().ok_or_else(|| {
                    format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
                })?;
                *item = value;
            }
        }
        Ok(())
    }

    fn relocate(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let from = pointer(operation, "from")
            .map_err(|why| format!("move operation failed to decode from: {why}"))?;
        let place = self.find(from).ok_or_else(|| {
            format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
        })?;
        let key = place.key.clone();
        let value = place.remove().map_err(|why| format!("error in move for path: '{key}': {why}"))?;
        let path = pointer(operation, "path")
            .map_err(|why| format!("move operation failed to decode path: {why}"))?;
        // What moves is at most as deep as the document was below its old place.
        self.grow(path, self.depth.saturating_sub(from.matches('/').count()))
            .or_else(|_| self.grow(path, depth(&value)))?;
        let place = self.find(path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        place.add(value).map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    fn test(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let path = pointer(operation, "path")
            .map_err(|why| format!("test operation failed to decode path: {why}"))?;
        let wanted = operation.get("value").unwrap_or(&Value::Null);
        let equal = if path.is_empty() {
            self.doc == *wanted
        } else {
            let Place { container, key } = self.find(path).ok_or_else(|| {
                format!("test operation does not apply: is missing path: {path}: {MISSING}")
            })?;
            let found =
                member(container, &key).map_err(|why| format!("error in test for path: '{path}': {why}"))?;
            found.as_deref().unwrap_or(&Value::Null) == wanted
        };
        if equal { Ok(()) } else { Err(format!("testing value {path} failed: {FAILED}")) }
    }

    fn copy(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let from = pointer(operation, "from")
            .map_err(|why| format!("copy operation failed to decode from: {why}"))?;
        let Place { container, key } = self.find(from).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
        })?;
        let value =
            member(container, &key).map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
        let value = value.cloned().unwrap_or_default();
        let path = pointer(operation, "path")
            .map_err(|_| format!("copy operation failed to decode path: {MISSING}"))?;
        if self.find(path).is_none() {
            return Err(format!(
                "copy operation does not apply: doc is missing destination path: {path}: {MISSING}"
            ));
        }
        if !value.is_null() {
            self.copied += json::write(&value).len();
        }
        if self.copied > MAX_COPIED {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED}",
                self.copied
            ));
        }
        self.grow(path, depth(&value))?;
        let place = self.find(path).expect("it was found above and nothing changed since");
        place.add(value).map_err(|why| format!("error while adding value during copy: {why}"))
    }
}

impl Place<'_> {
    fn add(self, value: Value) -> Result<(), String> {
        match self.container {
            Value::Object(fields) => drop(fields.insert(self.key, value)),
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                let index =
                    position(&self.key, items.len() + 1).map_err(|error| error.for_member(&self.key))?;
                items.insert(index, value);
            }
            _ => return Err(MISSING.to_owned()),
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, String> {
        match self.container {
            Value::Object(fields) => fields
                .remove(&self.key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {}: {MISSING}", self.key)),
            Value::Array(items) => {
                let index = position(&self.key, items.len()).map_err(|error| error.text())?;
                Ok(items.remove(index))
            }
            _ => Err(MISSING.to_owned()),
        }
    }
}

/// A field or an item; none for a field that is not there.
fn member<'a>(container: &'a mut Value, key: &str) -> Result<Option<&'a mut Value>, String> {
    match container {
        Value::Object(fields) => Ok(fields.get_mut(key)),
        Value::Array(items) => {
            let index = position(key, items.len()).map_err(|error| error.text())?;
            Ok(items.get_mut(index))
        }
        _ => Ok(None),
    }
}

enum IndexError {
    NotANumber(String),
    OutOfBounds(i64),
}

impl IndexError {
    fn text(self) -> String {
        match self {
            Self::NotANumber(why) => why,
            Self::OutOfBounds(index) => {
                format!("Unable to access invalid index: {index}: invalid index referenced")
            }
        }
    }

    fn for_member(self, key: &str) -> String {
        match self {
            Self::NotANumber(why) => format!("value was not a proper array index: '{key}': {why}"),
            other => other.text(),
        }
    }
}

/// The index below `size` that a key stands for; negative ones count from the end.
fn position(key: &str, size: usize) -> Result<usize, IndexError> {
    let index: i64 = key.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        IndexError::NotANumber(format!("strconv.Atoi: parsing {}: {why}", go::quote(key)))
    })?;
    let counted = if index < 0 { i64::try_from(size).unwrap_or(i64::MAX) + index } else { index };
    usize::try_from(counted).ok().filter(|&counted| counted < size).ok_or(IndexError::OutOfBounds(index))
}

fn pointer<'a>(operation: &'a Map<String, Value>, field: &str) -> Result<&'a str, String> {
    match operation.get(field) {
        None | Some(Value::Null) => {
            let comma = if field == "from" { "," } else { "" };
            Err(format!("operation{comma} missing {field} field: {MISSING}"))
        }
        Some(Value::String(path)) => Ok(path),
        Some(other) => {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::Array(_) => "array",
                _ => "object",
            };
            Err(format!("json: cannot unmarshal {found} into Go value of type string"))
        }
    }
}

fn unescape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (text, length) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ("/", 2),
            Some(b'0') => ("~", 2),
            _ => ("~", 1),
        };
        out.push_str(text);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_apply_as_on_the_real_server() {
        for (doc, patch, result) in [
            (json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2})),
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}, {"op": "add", "path": "/a/-", "value": 4}]),
                json!({"a": [1, 2, 3, 4]}),
            ),
            (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), json!({"a": [1]})),
            (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
            (
                json!({"a/b": {"~": 1}}),
                json!([{"op": "move", "from": "/a~1b/~0", "path": "/c"}]),
                json!({"a/b": {}, "c": 1}),
            ),
            (
                json!({"a": {"b": 1}}),
                json!([{"op": "copy", "from": "/a", "path": "/c"}, {"op": "test", "path": "/c/b", "value": 1}]),
                json!({"a": {"b": 1}, "c": {"b": 1}}),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": null}]), json!({"a": 1})),
            (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 1}}]), json!({"b": 1})),
        ] {
            assert_eq!(json_patch(&doc, &patch), Ok(result), "{patch}");
        }
    }

    #[test]
    fn errors_read_as_the_real_ones() {
        for (operation, error) in [
            (
                json!({"op": "add", "path": "/x/y", "value": 1}),
                "add operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (
                json!({"op": "add", "path": "/l/9", "value": 1}),
                "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
            ),
            (
                json!({"op": "add", "path": "/l/x", "value": 1}),
                "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!({"op": "remove", "path": "/x"}),
                "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                json!({"op": "replace", "path": "/l/9", "value": 1}),
                "replace operation does not apply: doc is missing key: /l/9: missing value",
            ),
            (
                json!({"op": "replace", "value": 1}),
                "replace operation failed to decode path: operation missing path field: missing value",
            ),
            (json!({"op": "test", "path": "/a", "value": 2}), "testing value /a failed: test failed"),
            (
                json!({"op": "move", "from": "/x/y", "path": "/b"}),
                "move operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (
                json!({"op": "copy", "path": "/b"}),
                "copy operation failed to decode from: operation, missing from field: missing value",
            ),
            (json!({"op": "what"}), "Unexpected kind: what"),
            (json!({}), "Unexpected kind: unknown"),
        ] {
            let result = json_patch(&json!({"a": 1, "l": [1]}), &json!([operation.clone()]));
            assert_eq!(result, Err(PatchError::DoesNotApply(error.to_owned())), "{operation}");
        }
        assert_eq!(
            json_patch(&json!({}), &json!({})).unwrap_err().to_string(),
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        );
    }

    #[test]
    fn no_patch_grows_without_bound() {
        let nest = json!([{"op": "add", "path": "/a", "value": {}}]);
        let mut operations = nest.as_array().unwrap().clone();
        for _ in 0..600 {
            operations.push(json!({"op": "move", "from": "/a", "path": "/b"}));
            operations.push(json!({"op": "add", "path": "/a", "value": {}}));
            operations.push(json!({"op": "move", "from": "/b", "path": "/a/x"}));
        }
        let error = json_patch(&json!({}), &Value::Array(operations)).unwrap_err();
        assert_eq!(error.to_string(), "exceeded max depth");

        let doubling: Vec<Value> =
            std::iter::once(json!({"op": "add", "path": "/a", "value": ["0123456789"]}))
                .chain((0..60).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})))
                .collect();
        let error = json_patch(&json!({}), &Value::Array(doubling)).unwrap_err();
        assert!(error.to_string().starts_with("Unable to complete the copy"), "{error}");

        let many = Value::Array(vec![json!({"op": "test", "path": "", "value": {}}); 10_001]);
        assert!(matches!(json_patch(&json!({}), &many), Err(PatchError::TooMany { got: 10_001, .. })));
    }
}
