//! Every struct within an object of a built-in kind, wherever it is: a container in a pod, or in the template of any
//! workload. What JSON inlines is met under its own name too, with the same fields. Metadata is passed by.

use crate::typed::{Struct, Structs, Type};
use serde_json::{Map, Value};
use windlass_schema::field::Path;

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

fn holds_structs(kind: &Type) -> bool {
    match kind {
        Type::Pointer(inner) | Type::List(inner) | Type::Map(inner) => holds_structs(inner),
        Type::Struct(_) => true,
        _ => false,
    }
}

/// Shows each struct and where it is to `see`, outermost first.
pub(crate) fn visit<'a>(
    structs: &Structs,
    definition: &str,
    value: &'a Value,
    path: &Path,
    see: &mut impl FnMut(&str, &'a Map<String, Value>, &Path),
) {
    let kind = Type::Struct(definition.to_owned());
    look(structs, &kind, value, path, see, windlass_schema::json::MAX_DEPTH);
}

fn look<'a>(
    structs: &Structs,
    kind: &Type,
    value: &'a Value,
    path: &Path,
    see: &mut impl FnMut(&str, &'a Map<String, Value>, &Path),
    left: usize,
) {
    let Some(left) = left.checked_sub(1) else { return };
    match (kind, value) {
        (Type::Pointer(inner), value) => look(structs, inner, value, path, see, left),
        (Type::List(inner), Value::Array(items)) if holds_structs(inner) => {
            for (index, item) in items.iter().enumerate() {
                look(structs, inner, item, &path.index(index), see, left);
            }
        }
        (Type::Map(inner), Value::Object(entries)) if holds_structs(inner) => {
            for (key, entry) in entries {
                look(structs, inner, entry, &path.key(key), see, left);
            }
        }
        (Type::Struct(definition), Value::Object(object)) if definition != METADATA => {
            let Some(known) = structs.get(definition) else { return };
            show(structs, known, object, path, see);
            for (name, value) in object {
                if let Some(field) = known.fields.get(name)
                    && holds_structs(&field.kind)
                {
                    look(structs, &field.kind, value, &path.child(name), see, left);
                }
            }
        }
        _ => {}
    }
}

fn show<'a>(
    structs: &Structs,
    known: &Struct,
    object: &'a Map<String, Value>,
    path: &Path,
    see: &mut impl FnMut(&str, &'a Map<String, Value>, &Path),
) {
    see(known.name, object, path);
    for inner in &known.inlined {
        if let Some(known) = structs.get(inner) {
            show(structs, known, object, path, see);
        }
    }
}

/// Gives each struct to `change`, outermost first.
pub(crate) fn visit_mut(
    structs: &Structs,
    definition: &str,
    value: &mut Value,
    change: &mut impl FnMut(&str, &mut Map<String, Value>),
) {
    let kind = Type::Struct(definition.to_owned());
    alter(structs, &kind, value, change, windlass_schema::json::MAX_DEPTH);
}

fn alter(
    structs: &Structs,
    kind: &Type,
    value: &mut Value,
    change: &mut impl FnMut(&str, &mut Map<String, Value>),
    left: usize,
) {
    let Some(left) = left.checked_sub(1) else { return };
    match (kind, value) {
        (Type::Pointer(inner), value) => alter(structs, inner, value, change, left),
        (Type::List(inner), Value::Array(items)) if holds_structs(inner) => {
            items.iter_mut().for_each(|item| alter(structs, inner, item, change, left));
        }
        (Type::Map(inner), Value::Object(entries)) if holds_structs(inner) => {
            entries.values_mut().for_each(|entry| alter(structs, inner, entry, change, left));
        }
        (Type::Struct(definition), Value::Object(object)) if definition != METADATA => {
            let Some(known) = structs.get(definition) else { return };
            change(known.name, object);
            for (name, value) in object.iter_mut() {
                if let Some(field) = known.fields.get(name)
                    && holds_structs(&field.kind)
                {
                    alter(structs, &field.kind, value, change, left);
                }
            }
        }
        _ => {}
    }
}
