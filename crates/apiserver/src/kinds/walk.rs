//! Every struct within an object of a built-in kind, wherever it is: a container in a pod, or in the template of any
//! workload. What JSON inlines is met under its own name too, with the same fields. Metadata is passed by.

use crate::typed::{Structs, Type};
use serde_json::{Map, Value};
use windlass_schema::field::Path;

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `core.v1.Container` for `io.k8s.api.core.v1.Container`.
pub(crate) fn last_three(definition: &str) -> &str {
    let mut dots = definition.rmatch_indices('.').map(|(at, _)| at);
    dots.nth(2).map_or(definition, |at| &definition[at + 1..])
}

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
            show(structs, definition, object, path, see);
            for (name, field) in &known.fields {
                if holds_structs(&field.kind)
                    && let Some(value) = object.get(name)
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
    definition: &str,
    object: &'a Map<String, Value>,
    path: &Path,
    see: &mut impl FnMut(&str, &'a Map<String, Value>, &Path),
) {
    see(last_three(definition), object, path);
    let Some(known) = structs.get(definition) else { return };
    for inline in known.declared.values().filter(|field| field.inline) {
        if let Type::Struct(inner) = &inline.kind {
            show(structs, inner, object, path, see);
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
            change(last_three(definition), object);
            for (name, field) in &known.fields {
                if holds_structs(&field.kind)
                    && let Some(value) = object.get_mut(name)
                {
                    alter(structs, &field.kind, value, change, left);
                }
            }
        }
        _ => {}
    }
}
