//! The changes of an object, one for each that a client can make to one of its fields.

use super::definitions::{format, held, is_quantity, listed, properties, resolved, value};
use serde_json::{Value, json};
use std::fmt;
use std::net::IpAddr;

/// One change of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where: names of fields, keys and indexes.
    pub path: Vec<String>,
    /// What it becomes; nothing where it is removed.
    pub to: Option<Value>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join("/");
        match &self.to {
            None => write!(f, "{path} removed"),
            Some(value) => {
                let shown: String = value.to_string().chars().take(200).collect();
                write!(f, "{path} = {shown}")
            }
        }
    }
}

impl Change {
    fn new(path: &[String], to: Option<Value>) -> Self {
        Self { path: path.to_vec(), to }
    }

    /// Changes an object. What is not there cannot be changed.
    pub fn apply(&self, object: &mut Value) {
        let Some((last, above)) = self.path.split_last() else { return };
        let mut place = object;
        for name in above {
            let next = match place {
                Value::Object(fields) => fields.get_mut(name),
                Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get_mut(at)),
                _ => None,
            };
            let Some(next) = next else { return };
            place = next;
        }
        match (place, &self.to) {
            (Value::Object(fields), Some(value)) => _ = fields.insert(last.clone(), value.clone()),
            (Value::Object(fields), None) => _ = fields.remove(last),
            (Value::Array(items), to) => {
                let Ok(at) = last.parse::<usize>() else { return };
                match to {
                    Some(value) if at < items.len() => items[at] = value.clone(),
                    Some(value) => items.push(value.clone()),
                    None if at < items.len() => _ = items.remove(at),
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// Fields whose changes are not those of a kind: they have a list of their own.
const APART: &[&str] = &["apiVersion", "kind", "metadata", "status"];

/// The changes of everything but the metadata and the status. `examples` are objects of the same kind, from which absent
/// fields are taken.
pub fn of_content(schema: &'static Value, object: &Value, examples: &[Value]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, schema) in properties(schema).into_iter().flatten() {
        if !APART.contains(&name.as_str()) {
            field(schema, object, examples, &mut vec![name.clone()], &mut changes);
        }
    }
    changes
}

/// The changes of the status.
pub fn of_status(schema: &'static Value, object: &Value, examples: &[Value]) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Some(schema) = properties(schema).and_then(|fields| fields.get("status")) {
        field(schema, object, examples, &mut vec!["status".to_owned()], &mut changes);
    }
    changes
}

/// The changes of the metadata, and of what says which kind it is: the same for all.
pub fn of_metadata() -> Vec<Change> {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    let controller = |uid: &str| {
        let mut owner = owner(uid);
        owner["controller"] = json!(true);
        owner
    };
    let rows = [
        ("apiVersion", None),
        ("apiVersion", Some(json!("other.example.com/v1"))),
        ("kind", None),
        ("kind", Some(json!("Other"))),
        ("unknown", Some(json!(1))),
        ("metadata", None),
        ("metadata/labels", None),
        ("metadata/labels", Some(json!({"added": "x"}))),
        ("metadata/labels", Some(json!({"added": "not valid"}))),
        ("metadata/annotations", None),
        ("metadata/annotations", Some(json!({"added": "not a label"}))),
        ("metadata/annotations", Some(json!({"not valid": "x"}))),
        ("metadata/finalizers", None),
        ("metadata/finalizers", Some(json!(["example.com/added"]))),
        ("metadata/finalizers", Some(json!(["unqualified"]))),
        ("metadata/finalizers", Some(json!(["orphan", "foregroundDeletion"]))),
        ("metadata/ownerReferences", None),
        ("metadata/ownerReferences", Some(json!([owner("u")]))),
        ("metadata/ownerReferences", Some(json!([owner("")]))),
        ("metadata/ownerReferences", Some(json!([controller("u"), controller("v")]))),
        ("metadata/generateName", Some(json!("generated-"))),
        ("metadata/name", None),
        ("metadata/name", Some(json!("another"))),
        ("metadata/namespace", None),
        ("metadata/namespace", Some(json!("default"))),
        ("metadata/uid", None),
        ("metadata/uid", Some(json!("another"))),
        ("metadata/creationTimestamp", None),
        ("metadata/creationTimestamp", Some(json!("2026-02-03T04:05:06Z"))),
        ("metadata/deletionTimestamp", Some(json!("2026-02-03T04:05:06Z"))),
        ("metadata/deletionGracePeriodSeconds", Some(json!(7))),
        ("metadata/generation", None),
        ("metadata/generation", Some(json!(77))),
        ("metadata/resourceVersion", None),
        ("metadata/resourceVersion", Some(json!("0"))),
        ("metadata/resourceVersion", Some(json!("1"))),
        ("metadata/resourceVersion", Some(json!("x"))),
        ("metadata/selfLink", Some(json!("/x"))),
        ("metadata/managedFields", Some(json!([]))),
        ("metadata/managedFields", Some(json!([{}]))),
    ];
    rows.into_iter()
        .map(|(path, to)| Change { path: path.split('/').map(str::to_owned).collect(), to })
        .collect()
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

/// The changes of a field and of what it holds.
fn field(
    schema: &'static Value,
    object: &Value,
    examples: &[Value],
    path: &mut Vec<String>,
    changes: &mut Vec<Change>,
) {
    let Some(now) = at(object, path) else {
        let example = examples.iter().find_map(|example| at(example, path)).cloned();
        changes.push(Change::new(path, Some(example.unwrap_or_else(|| value(schema)))));
        return;
    };
    changes.push(Change::new(path, None));
    match now {
        Value::Object(fields) => {
            if let Some(known) = properties(schema) {
                for (name, schema) in known {
                    path.push(name.clone());
                    field(schema, object, examples, path, changes);
                    path.pop();
                }
            } else if let Some(held) = held(schema) {
                for name in fields.keys().take(2).cloned().chain(["added".to_owned()]) {
                    path.push(name);
                    field(held, object, examples, path, changes);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            let Some(held) = held(schema) else { return };
            if !items.is_empty() {
                path.push("0".to_owned());
                field(held, object, examples, path, changes);
                path.pop();
            }
            list(held, items, path, changes);
        }
        scalar => {
            let others = others(schema, scalar);
            changes.extend(others.into_iter().map(|other| Change::new(path, Some(other))));
        }
    }
}

/// A list without items, with one more, with one twice, and in another order.
fn list(held: &'static Value, items: &[Value], path: &mut Vec<String>, changes: &mut Vec<Change>) {
    if !items.is_empty() {
        changes.push(Change::new(path, Some(json!([]))));
    }
    if items.len() > 1 {
        changes.push(Change::new(path, Some(items.iter().rev().cloned().collect())));
    }
    let twice = items.first().cloned();
    let another = items.first().map_or_else(|| value(held), |first| renamed(held, first));
    for more in twice.into_iter().chain([another]) {
        path.push(items.len().to_string());
        changes.push(Change::new(path, Some(more)));
        path.pop();
    }
}

/// An item like another, that is not the same one.
fn renamed(held: &'static Value, item: &Value) -> Value {
    let mut item = item.clone();
    match &mut item {
        Value::Object(fields) => {
            for key in ["name", "key", "type", "uid", "ip", "containerPort", "port", "mountPath"] {
                let schema = properties(held).and_then(|known| known.get(key));
                if let (Some(schema), Some(now)) = (schema, fields.get_mut(key))
                    && let Some(other) = others(schema, now).into_iter().next()
                {
                    *now = other;
                }
            }
            item
        }
        scalar => others(held, scalar).into_iter().next().unwrap_or_default(),
    }
}

/// Other values of the same type.
fn others(schema: &'static Value, now: &Value) -> Vec<Value> {
    if let Some(values) = listed(schema) {
        return values.iter().filter(|value| *value != now).take(3).cloned().collect();
    }
    match now {
        Value::Bool(now) => vec![json!(!now)],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            let less = (number > 0).then(|| json!(number - 1));
            [json!(number.saturating_add(1))].into_iter().chain(less).collect()
        }
        Value::String(text) if is_quantity(schema) => {
            let half = if text.starts_with('1') { "3" } else { "1" };
            vec![json!(format!("{half}{text}")), json!("1")]
        }
        Value::String(text) => vec![json!(other_text(resolved(schema), text))],
        _ => Vec::new(),
    }
}

/// Another text of the same form.
fn other_text(schema: &'static Value, text: &str) -> String {
    if format(schema) == "date-time" {
        return match text.contains('.') {
            true => "2026-02-03T04:05:06.000007Z".to_owned(),
            false => "2026-02-03T04:05:06Z".to_owned(),
        };
    }
    if format(schema) == "byte" {
        return "Y2hhbmdlZA==".to_owned();
    }
    match text {
        "True" => return "False".to_owned(),
        "False" => return "True".to_owned(),
        _ => {}
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return if address.is_ipv4() { "10.96.77.7" } else { "2001:db8::77" }.to_owned();
    }
    if let Some((address, length)) = text.split_once('/')
        && let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>())
    {
        let network = if address.is_ipv4() { "10.64.0.0" } else { "2001:db8:77::" };
        return format!("{network}/{length}");
    }
    if let Some(number) = text.strip_suffix('%') {
        return format!("1{number}%");
    }
    format!("{text}2")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::updates::definitions::of_kind;

    #[test]
    fn every_field_is_removed_changed_or_added() {
        let schema = of_kind("v1", "ConfigMap").expect("a kind");
        let object = json!({"data": {"a": "b"}, "metadata": {"name": "m"}});
        let changes: Vec<String> = of_content(schema, &object, &[]).iter().map(ToString::to_string).collect();
        let expected = [
            r#"binaryData = {"added":"YWRkZWQ="}"#,
            "data removed",
            "data/a removed",
            r#"data/a = "b2""#,
            r#"data/added = "added""#,
            "immutable = true",
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_change_changes_one_place() {
        let mut object = json!({"spec": {"list": [{"a": 1}, {"a": 2}]}});
        let change = |path: &str, to| Change { path: path.split('/').map(str::to_owned).collect(), to };
        change("spec/list/1/a", Some(json!(3))).apply(&mut object);
        change("spec/list/0", None).apply(&mut object);
        change("spec/list/1", Some(json!({}))).apply(&mut object);
        change("spec/none/x", Some(json!(1))).apply(&mut object);
        assert_eq!(object, json!({"spec": {"list": [{"a": 3}, {}]}}));
    }
}
