//! What the API fills in where an object of a built-in kind says nothing.
//!
//! The rows are about Go structs, not about kinds: a container gets its defaults wherever it is, in a pod or in the template
//! of any workload. One walk over the object and its type fills them in, outermost first.

mod conditions;
mod rows;

use crate::kinds::resources::quantity;
use crate::typed::{Field, Quick, Struct, Structs, Type};
use rows::{FIELDS, STRUCTS};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;

/// What is filled in.
#[derive(Clone, Copy)]
enum Fill {
    Text(&'static str),
    Number(i64),
    Flag(bool),
    Texts(&'static [&'static str]),
    /// An object with nothing in it but its own defaults.
    Nothing,
    /// What the rest of the struct calls for, if anything.
    By(fn(&Map<String, Value>) -> Option<Value>),
}

type Adjust = fn(&mut Map<String, Value>);

/// The rows of one struct.
#[derive(Default)]
struct Rows {
    fields: Vec<(&'static str, Fill)>,
    adjust: Option<Adjust>,
}

static ROWS: LazyLock<HashMap<&'static str, Rows, Quick>> = LazyLock::new(|| {
    let mut rows: HashMap<&str, Rows, Quick> = HashMap::default();
    for (name, field, fill) in FIELDS {
        rows.entry(name).or_default().fields.push((field, *fill));
    }
    for (name, adjust) in STRUCTS {
        rows.entry(name).or_default().adjust = Some(*adjust);
    }
    rows
});

/// Fills in what an object of this type leaves out. It went through its type before.
pub(crate) fn fill(structs: &Structs, definition: &str, value: &mut Value) {
    // No struct that is filled in holds others of its own type, but nothing says so to the compiler.
    walk(structs, &Type::Struct(definition.to_owned()), value, windlass_schema::json::MAX_DEPTH);
}

fn walk(structs: &Structs, kind: &Type, value: &mut Value, left: usize) {
    let Some(left) = left.checked_sub(1) else { return };
    match (kind, value) {
        (Type::Pointer(inner), value) => walk(structs, inner, value, left),
        (Type::List(inner), Value::Array(items)) if is_walked(inner) => {
            items.iter_mut().for_each(|item| walk(structs, inner, item, left));
        }
        (Type::Map(inner), Value::Object(entries)) if is_walked(inner) => {
            entries.values_mut().for_each(|entry| walk(structs, inner, entry, left));
        }
        (Type::Map(inner), Value::Object(entries)) if matches!(**inner, Type::Quantity) => {
            entries.values_mut().for_each(round);
        }
        (Type::Struct(definition), Value::Object(object)) => {
            let Some(known) = structs.get(definition) else { return };
            if known.name == "meta.v1.ObjectMeta" {
                return;
            }
            fill_struct(structs, known, object);
            for (name, value) in object.iter_mut() {
                if let Some(field) = known.fields.get(name)
                    && is_walked(&field.kind)
                {
                    walk(structs, &field.kind, value, left);
                }
            }
        }
        _ => {}
    }
}

fn is_walked(kind: &Type) -> bool {
    match kind {
        Type::Map(inner) if matches!(**inner, Type::Quantity) => true,
        Type::Pointer(inner) | Type::List(inner) | Type::Map(inner) => is_walked(inner),
        Type::Struct(_) => true,
        _ => false,
    }
}

/// Amounts of resources have no parts smaller than a thousandth.
fn round(amount: &mut Value) {
    if let Some(given) = quantity(amount) {
        let rounded = given.clone().round_up(-3);
        if rounded != given {
            *amount = json!(rounded.to_string());
        }
    }
}

fn fill_struct(structs: &Structs, known: &Struct, object: &mut Map<String, Value>) {
    // What JSON inlines has rows of its own.
    for inner in &known.inlined {
        if let Some(known) = structs.get(inner) {
            fill_struct(structs, known, object);
        }
    }
    let Some(rows) = ROWS.get(known.name) else { return };
    for (name, fill) in &rows.fields {
        let is_set = known.fields.get(*name).is_some_and(|field| is_set(field, object.get(*name)));
        if !is_set && let Some(value) = fill.value(object) {
            object.insert((*name).to_owned(), value);
        }
    }
    if let Some(adjust) = rows.adjust {
        adjust(object);
    }
}

/// Does Go see more than the type's own nothing? Behind a pointer, everything is something.
fn is_set(field: &Field, value: Option<&Value>) -> bool {
    match (&field.kind, value) {
        (_, None | Some(Value::Null)) => false,
        (Type::Pointer(_), Some(_)) => true,
        (_, Some(value)) => !is_nothing(value),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

impl Fill {
    fn value(self, object: &Map<String, Value>) -> Option<Value> {
        match self {
            Self::Text(text) => Some(json!(text)),
            Self::Number(number) => Some(json!(number)),
            Self::Flag(flag) => Some(json!(flag)),
            Self::Texts(texts) => Some(json!(texts)),
            Self::Nothing => Some(json!({})),
            Self::By(make) => make(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FACTS;

    #[test]
    fn every_row_is_about_a_field_that_exists() {
        let names = |name: &str| {
            ["io.k8s.api.", "io.k8s.kube-aggregator.pkg.apis."].map(|package| format!("{package}{name}"))
        };
        let find = |name: &str| names(name).iter().find_map(|name| FACTS.structs.get(name));
        for (name, field, _) in FIELDS {
            let known = find(name).unwrap_or_else(|| panic!("no struct {name}"));
            assert!(known.fields.contains_key(*field), "{name} has no {field}");
        }
        for (name, _) in STRUCTS {
            assert!(find(name).is_some(), "no struct {name}");
        }
    }

    #[test]
    fn what_is_set_behind_a_pointer_stays_even_if_it_is_zero() {
        let definition = "io.k8s.api.apps.v1.Deployment";
        let mut deployment =
            json!({"spec": {"replicas": 0, "strategy": {"type": "Recreate"}, "template": {"spec": {}}}});
        fill(&FACTS.structs, definition, &mut deployment);
        assert_eq!(deployment["spec"]["replicas"], 0);
        assert_eq!(deployment["spec"]["strategy"], json!({"type": "Recreate"}));
        assert_eq!(deployment["spec"]["template"]["spec"]["restartPolicy"], "Always");
        assert!(deployment["spec"]["template"]["spec"].get("enableServiceLinks").is_none());
    }
}
