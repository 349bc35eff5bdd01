//! Sprig's functions on dictionaries.

use super::strings::string;
use super::{Context, Row, any, map, text};
use crate::render::exec::Run;
use crate::value::{Elem, List, Map, MapType, Value};

pub(super) const ROWS: &[Row] = &[
    ("dict", "a*>m", |_, given| {
        let pairs =
            given.chunks(2).map(|pair| (string(&pair[0]), pair.get(1).cloned().unwrap_or_else(|| "".into())));
        Ok(Value::map(pairs))
    }),
    ("get", "ms>a", |_, given| Ok(map(given, 0).get(text(given, 1)).unwrap_or_else(|| "".into()))),
    ("set", "msa>m", |context, given| {
        let map = map(given, 0);
        context.engine.changed(&map);
        map.set(text(given, 1), any(given, 2));
        Ok(Value::Map(map.typed(MapType::Any)))
    }),
    ("unset", "ms>m", |_, given| {
        let map = map(given, 0);
        map.remove(text(given, 1));
        Ok(Value::Map(map.typed(MapType::Any)))
    }),
    ("hasKey", "ms>b", |_, given| Ok(Value::Bool(map(given, 0).get(text(given, 1)).is_some()))),
    ("pluck", "sm*>l", |_, given| {
        let found = (1..given.len()).filter_map(|at| map(given, at).get(text(given, 0)));
        Ok(Value::list(found.collect()))
    }),
    ("keys", "m*>L", |_, given| {
        let keys = (0..given.len()).flat_map(|at| map(given, at).entries()).map(|(key, _)| key);
        Ok(Value::strings(keys))
    }),
    ("values", "m>l", |_, given| {
        Ok(Value::list(map(given, 0).entries().into_iter().map(|(_, value)| value).collect()))
    }),
    ("pick", "ms*>m", |_, given| {
        let from = map(given, 0);
        let kept = given[1..].iter().filter_map(|key| match key {
            Value::Str(key) => from.get(key).map(|value| (key.clone(), value)),
            _ => None,
        });
        Ok(Value::map(kept))
    }),
    ("omit", "ms*>m", |_, given| {
        let omitted =
            |key: &[u8]| given[1..].iter().any(|other| matches!(other, Value::Str(other) if **other == *key));
        Ok(Value::map(map(given, 0).entries().into_iter().filter(|(key, _)| !omitted(key))))
    }),
    ("dig", "a*>a", dig),
    ("deepCopy", "a>a", |context, given| copy(context, &any(given, 0), 0)),
    ("mustDeepCopy", "a>a", |context, given| copy(context, &any(given, 0), 0)),
];

fn dig(_: &Context<'_>, given: &[Value]) -> Run<Value> {
    let [path @ .., default, dict] = given else { return Err("dig needs at least three arguments".into()) };
    if path.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let wrong = |value: &Value, wanted: &str| {
        let found = if value.is_nil() { "nil".to_owned() } else { value.type_name() };
        format!("interface conversion: interface {{}} is {found}, not {wanted}")
    };
    let table = |value: &Value| match value {
        Value::Map(map) if map.map_type() == MapType::Any => Ok(map.clone()),
        other => Err(wrong(other, "map[string]interface {}")),
    };
    let mut current = table(dict)?;
    for key in path {
        if !matches!(key, Value::Str(_)) {
            return Err(wrong(key, "string").into());
        }
    }
    for (at, key) in path.iter().enumerate() {
        let Value::Str(key) = key else { continue };
        let Some(step) = current.get(key) else { return Ok(default.clone()) };
        if at + 1 == path.len() {
            return Ok(step);
        }
        current = table(&step)?;
    }
    Ok(default.clone())
}

/// Maps and lists anew, all else as it is.
pub(super) fn copy(context: &Context<'_>, value: &Value, depth: usize) -> Run<Value> {
    if depth > 200 {
        return Err("deepCopy error: the value is nested too deeply, or holds itself".into());
    }
    context.engine.step(0)?;
    Ok(match value {
        Value::Map(map) => {
            let mut entries = std::collections::BTreeMap::new();
            for (key, value) in map.entries() {
                entries.insert(key, copy(context, &value, depth + 1)?);
            }
            Value::Map(Map::new(map.map_type(), entries))
        }
        Value::List(list) if list.elem() == Elem::Any && !list.is_nil() => {
            let items: Run<Vec<Value>> =
                list.items().iter().map(|item| copy(context, item, depth + 1)).collect();
            Value::List(List::new(list.elem(), items?))
        }
        other => other.clone(),
    })
}
