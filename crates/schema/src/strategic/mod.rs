//! Strategic merge patch: a merge by type, in which lists merge by key where the field's patch strategy
//! says so, and directives (`$patch`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`, `$retainKeys`) say the rest.
//!
//! In go an object, a patch and the place of the object in its type; out comes the object as the reference would
//! make it, habits included.
//!
//! Types are asked through a trait: the API server implements it with what it knows of the built-in kinds.

mod list;
mod order;
mod print;
#[cfg(test)]
mod tests;

pub use print::print;

use list::Merging;
use print::type_name;
use serde_json::{Map, Value};
use std::collections::HashSet;
use thiserror::Error;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";

/// Why a patch was not applied, with the server's error text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StrategicError {
    /// A directive is not what it should be: a bad request.
    #[error("{0}")]
    Malformed(&'static str),
    /// It cannot be applied to anything: unprocessable.
    #[error("{0}")]
    Unprocessable(&'static str),
    /// It does not fit the object; the server has no name for it.
    #[error("{0}")]
    Failed(String),
}

/// What a field's tags say about merging it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// Objects merge, lists are replaced.
    #[default]
    Unsaid,
    /// Lists merge as well.
    Merge,
    /// Nothing merges.
    Replace,
}

impl Way {
    /// Reads the tag, as `merge` or `merge,retainKeys`. That keys may be retained is a hint to those who write patches.
    pub fn parse(tag: &str) -> Self {
        match tag.split(',').find(|word| *word != "retainKeys") {
            Some("merge") => Self::Merge,
            Some("replace") => Self::Replace,
            _ => Self::Unsaid,
        }
    }
}

/// How a field merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strategy<'a> {
    /// Whether.
    pub way: Way,
    /// What tells the items of its list apart; empty for none.
    pub merge_key: &'a str,
}

/// A place in a type. What it refuses becomes the error of the merge.
pub trait Position: Sized {
    /// The place of a field that holds an object.
    fn field(&self, name: &str) -> Result<(Self, Strategy<'_>), String>;
    /// The place of the items of a field that holds a list.
    fn items(&self, name: &str) -> Result<(Self, Strategy<'_>), String>;
    /// The word for this type: `struct`, `string`, `map`.
    fn kind(&self) -> &str;
}

/// Merges `patch` into `original`, which is at `place`. What is left of the patch, without the directives that were
/// carried out, is what the server shows in later errors.
pub fn merge<P: Position>(
    mut original: Map<String, Value>,
    patch: &mut Map<String, Value>,
    place: &P,
) -> Result<Map<String, Value>, StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch.clone())
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(patch)),
        };
    }
    retain_keys(&mut original, patch)?;
    set_orders(&mut original, patch, place)?;
    let keys: Vec<String> = patch.keys().cloned().collect();
    for key in &keys {
        let deletes = key.starts_with(DELETE_FROM);
        let named = match deletes {
            true => directed(key, DELETE_FROM, "invalid patch format of primitive list")?,
            false => key.as_str(),
        };
        let name = if named.is_empty() { key.as_str() } else { named };
        let Some(change) = patch.get_mut(key) else { continue };
        if change.is_null() {
            original.remove(name);
            continue;
        }
        match original.get_mut(name) {
            Some(Value::Object(live)) if change.is_object() => {
                let (inner, strategy) = place.field(name).map_err(StrategicError::Failed)?;
                let Value::Object(change) = change else { continue };
                let merged = match strategy.way {
                    Way::Replace => change.clone(),
                    _ => merge(std::mem::take(live), change, &inner)?,
                };
                *live = merged;
            }
            Some(Value::Array(live)) if change.is_array() => {
                let (inner, strategy) = place.items(name).map_err(StrategicError::Failed)?;
                let Value::Array(change) = change else { continue };
                // What is to be deleted is deleted whatever the strategy is.
                if strategy.way == Way::Merge || deletes {
                    let merging = Merging { place: &inner, merge_key: strategy.merge_key };
                    *live = merging.merge(std::mem::take(live), change, deletes)?.items;
                } else {
                    live.clone_from(change);
                }
            }
            _ if deletes => {}
            _ => {
                drop_nulls(change);
                match undirected(change) {
                    Some(value) => original.insert(name.to_owned(), value),
                    None => original.remove(name),
                };
            }
        }
    }
    Ok(original)
}

fn unknown_directive(patch: &Map<String, Value>) -> StrategicError {
    let directive = print::as_text(patch.get(PATCH).unwrap_or(&Value::Null));
    StrategicError::Failed(format!("unknown patch type: {directive} in map: {}", print::map(patch)))
}

/// The field that a directive is about: what comes after the slash.
fn directed<'a>(key: &'a str, directive: &str, wrong: &'static str) -> Result<&'a str, StrategicError> {
    match key.split_once('/') {
        Some((before, name)) if before == directive => Ok(name),
        _ => Err(StrategicError::Malformed(wrong)),
    }
}

/// Carries out `$retainKeys`: takes from the object what the directive does not list.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), StrategicError> {
    const WRONG: StrategicError = StrategicError::Malformed("invalid patch format of retainKeys");
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(listed) = directive else { return Err(WRONG) };
    if listed.iter().any(|key| key.is_object() || key.is_array()) {
        return Err(uncomparable());
    }
    let listed: HashSet<&str> = listed.iter().filter_map(Value::as_str).collect();
    let stray = patch.iter().any(|(key, value)| {
        let aside = value.is_null() || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
        !aside && !listed.contains(key.as_str())
    });
    if stray {
        return Err(WRONG);
    }
    original.retain(|key, _| listed.contains(key.as_str()));
    Ok(())
}

/// Carries out every `$setElementOrder/…` of a patch, and merges the lists that they are about.
fn set_orders<P: Position>(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    place: &P,
) -> Result<(), StrategicError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in keys {
        let order = match patch.remove(&key) {
            Some(Value::Array(order)) => order,
            other => return Err(wrong_type("[]interface {}", other.as_ref())),
        };
        let name = directed(&key, SET_ORDER, "invalid patch format of setElementOrder list")?;
        let as_list = |value: Option<&Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items.clone())),
            other => Err(wrong_type("[]interface {}", other)),
        };
        let live = as_list(original.get(name))?;
        let change = as_list(patch.get(name))?;
        let (inner, strategy) = place.items(name).map_err(StrategicError::Failed)?;
        let merging = Merging { place: &inner, merge_key: strategy.merge_key };
        if let Some(ordered) = merging.ordered(live, change, &order, strategy.way)? {
            original.insert(name.to_owned(), Value::Array(ordered));
            patch.remove(name);
        }
    }
    Ok(())
}

/// Takes the fields that are null out of every object in a value.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, field| {
            drop_nulls(field);
            !field.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A value that is new to the object, without what is only a directive; `None` if all of it is. What objects lose, the
/// patch loses too.
fn undirected(value: &mut Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(PATCH) {
                return None;
            }
            let mut kept = Map::new();
            fields.retain(|name, field| match undirected(field) {
                Some(value) => {
                    if value.is_array() {
                        field.clone_from(&value);
                    }
                    kept.insert(name.clone(), value);
                    true
                }
                None => false,
            });
            Some(Value::Object(kept))
        }
        Value::Array(items) => Some(Value::Array(items.iter_mut().filter_map(undirected).collect())),
        other => Some(other.clone()),
    }
}

fn wrong_type(wanted: &str, got: Option<&Value>) -> StrategicError {
    StrategicError::Failed(format!("expected a {wanted}, but received a {}", type_name(got)))
}

fn no_merge_key(item: &Map<String, Value>, merge_key: &str) -> StrategicError {
    let item = print::map(item);
    StrategicError::Failed(format!("map: {item} does not contain declared merge key: {merge_key}"))
}

/// An object or a list where only a scalar can be compared. The reference breaks the connection there.
fn uncomparable() -> StrategicError {
    StrategicError::Failed("a patch cannot compare objects or lists as keys".to_owned())
}
