//! `merge` and its kin, as mergo does them: into the first map, which changes.

use super::{Context, Row, map};
use crate::render::exec::Run;
use crate::value::{Map, MapType, Value};

pub(super) const ROWS: &[Row] = &[
    ("merge", "mm*>a", |context, given| all(context, given, false)),
    ("mustMerge", "mm*>a", |context, given| all(context, given, false)),
    ("mergeOverwrite", "mm*>a", |context, given| all(context, given, true)),
    ("mustMergeOverwrite", "mm*>a", |context, given| all(context, given, true)),
];

fn all(context: &Context<'_>, given: &[Value], overwrite: bool) -> Run<Value> {
    let target = map(given, 0);
    for at in 1..given.len() {
        merge(context, &target, &map(given, at), overwrite, 0)?;
    }
    Ok(Value::Map(target.typed(MapType::Any)))
}

/// What mergo takes for nothing.
fn is_empty(value: Option<&Value>) -> bool {
    value.is_none_or(super::types::is_empty)
}

fn merge(context: &Context<'_>, target: &Map, source: &Map, overwrite: bool, depth: usize) -> Run<()> {
    if depth > 200 {
        return Err("the maps to merge are nested too deeply, or hold themselves".into());
    }
    if target.same(source) {
        return Ok(());
    }
    context.engine.changed(target);
    for (key, value) in source.entries() {
        context.engine.step(0)?;
        let before = target.get(&key);
        match &value {
            Value::Nil => {
                if overwrite {
                    target.set(key, Value::Nil);
                }
                continue;
            }
            Value::Map(source) => {
                if let Some(Value::Map(target)) = &before {
                    merge(context, target, source, overwrite, depth + 1)?;
                    if !target.is_empty() {
                        continue;
                    }
                }
            }
            Value::List(_) | Value::Bytes(_) => {
                // mergo asks whether the whole target is empty, not what is there.
                if overwrite || target.is_empty() {
                    target.set(key.clone(), value.clone());
                }
                if !is_empty(before.as_ref()) {
                    continue;
                }
            }
            _ => {}
        }
        if overwrite || is_empty(before.as_ref()) {
            target.set(key, value);
        }
    }
    Ok(())
}
