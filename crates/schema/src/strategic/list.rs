//! Merging lists: of objects by their merge key, of scalars as sets.

use super::order::{Known, Places, arrange, id};
use super::{
    PATCH, Position, SET_ORDER, StrategicError, Way, merge, no_merge_key, print, uncomparable, undirected,
    wrong_type,
};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// How a list merges.
pub(super) struct Merging<'a, P> {
    /// Of its items.
    pub(super) place: &'a P,
    pub(super) merge_key: &'a str,
}

/// A merged list, and what its order was taken from.
pub(super) struct Merged {
    pub(super) items: Vec<Value>,
    /// Ids in the order of the list as it was, with deleted items gone. The reference deletes in place, and items that
    /// are new take the room that became free: so they are in here too.
    seen: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Objects,
    Scalars,
}

impl<P: Position> Merging<'_, P> {
    /// Merges `patch` into `live`; or takes from it what `patch` lists.
    pub(super) fn merge(
        &self,
        live: Vec<Value>,
        patch: &mut [Value],
        deletes: bool,
    ) -> Result<Merged, StrategicError> {
        if live.is_empty() && patch.is_empty() {
            return Ok(Merged { items: live, seen: Vec::new() });
        }
        match kind_of(&live, patch)? {
            Items::Scalars if deletes => {
                let gone: HashSet<String> = patch.iter().map(id).collect();
                let items = live.into_iter().filter(|item| !gone.contains(&id(item))).collect();
                Ok(Merged { items, seen: Vec::new() })
            }
            Items::Scalars => self.scalars(live, patch),
            Items::Objects => self.objects(live, patch),
        }
    }

    fn scalars(&self, live: Vec<Value>, patch: &[Value]) -> Result<Merged, StrategicError> {
        if let (false, Some(first)) = (self.merge_key.is_empty(), live.first().or(patch.first())) {
            return Err(wrong_type("map[string]interface {}", Some(first)));
        }
        let seen: Vec<String> = live.iter().map(id).collect();
        let mut known = HashSet::new();
        let merged = live
            .into_iter()
            .chain(patch.iter().cloned())
            .map(|item| Known { id: id(&item), item })
            .filter(|item| known.insert(item.id.clone()))
            .collect();
        let wanted = Places::new(patch.iter().map(id));
        let items = arrange(merged, &wanted, &Places::new(seen.iter().cloned()));
        Ok(Merged { items, seen })
    }

    fn objects(&self, live: Vec<Value>, patch: &mut [Value]) -> Result<Merged, StrategicError> {
        if self.merge_key.is_empty() {
            let kind = self.place.kind();
            return Err(StrategicError::Failed(format!("cannot merge lists without merge key for {kind}")));
        }
        let room = live.len();
        let deleted = self.deletions(patch)?;
        if patch.iter().any(|item| item.get(PATCH).and_then(Value::as_str) == Some("replace")) {
            let items: Vec<Value> = patch.iter().filter(|item| item.get(PATCH).is_none()).cloned().collect();
            for item in &items {
                self.key_of(item)?;
            }
            return Ok(Merged { items, seen: Vec::new() });
        }
        let mut live = self.known(live)?;
        live.retain(|known| !deleted.contains(&known.id));
        let mut seen: Vec<String> = live.iter().map(|known| known.id.clone()).collect();
        let places = Places::new(seen.iter().cloned());
        let mut added = HashMap::new();
        let mut order = Vec::new();
        for item in patch.iter_mut() {
            let Value::Object(change) = item else { continue };
            if change.contains_key(PATCH) {
                continue;
            }
            let key = self.key_in(change)?;
            order.push(key.clone());
            match places.get(&key).or_else(|| added.get(&key).copied()) {
                Some(place) => {
                    let was = match live[place].item.take() {
                        Value::Object(was) => was,
                        _ => Map::new(),
                    };
                    live[place].item = Value::Object(merge(was, change, self.place)?);
                }
                None => {
                    added.insert(key.clone(), live.len());
                    live.push(Known { id: key, item: Value::Object(change.clone()) });
                }
            }
        }
        // What was merged may have lost its key.
        for known in &live {
            self.key_of(&known.item)?;
        }
        seen.extend(live.iter().skip(seen.len()).map(|known| known.id.clone()));
        seen.truncate(room);
        let items = arrange(live, &Places::new(order), &places);
        Ok(Merged { items, seen })
    }

    /// The keys of what a patch deletes.
    fn deletions(&self, patch: &[Value]) -> Result<HashSet<String>, StrategicError> {
        let mut deleted = HashSet::new();
        for item in patch.iter().filter_map(Value::as_object) {
            match item.get(PATCH) {
                None => {}
                Some(Value::String(word)) if word == "replace" => {}
                Some(Value::String(word)) if word == "delete" => {
                    deleted.insert(self.key_in(item)?);
                }
                Some(Value::String(word)) if word == "merge" => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(StrategicError::Failed(why.to_owned()));
                }
                Some(_) => return Err(super::unknown_directive(item)),
            }
        }
        Ok(deleted)
    }

    /// A list with its `$setElementOrder`; `None` if there is none on either side.
    pub(super) fn ordered(
        &self,
        live: Option<Vec<Value>>,
        mut patch: Option<Vec<Value>>,
        order: &[Value],
        way: Way,
    ) -> Result<Option<Vec<Value>>, StrategicError> {
        if self.merge_key.is_empty() && order.iter().any(|item| item.is_object() || item.is_array()) {
            return Err(uncomparable());
        }
        if let Some(patch) = &patch {
            self.check_order(patch, order)?;
        }
        let seen = |live: &[Value]| -> Result<Vec<String>, StrategicError> {
            match self.merge_key.is_empty() {
                true => Ok(live.iter().map(id).collect()),
                false => live.iter().map(|item| self.key_of(item)).collect(),
            }
        };
        let (old, new) = (live.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default());
        let nothing = old.is_empty() && new.is_empty();
        let kind = kind_of(old, new);
        let merged = match (live, &mut patch) {
            (None, None) => return Ok(None),
            (Some(live), None) => Merged { seen: seen(&live)?, items: live },
            (None, Some(patch)) => {
                Merged { items: patch.iter_mut().filter_map(undirected).collect(), seen: Vec::new() }
            }
            (Some(live), Some(patch)) if way == Way::Merge => self.merge(live, patch, false)?,
            (Some(live), Some(patch)) => Merged { items: patch.clone(), seen: seen(&live)? },
        };
        let items = match self.merge_key.is_empty() {
            true => merged.items.into_iter().map(|item| Known { id: id(&item), item }).collect(),
            false => self.known(merged.items)?,
        };
        let places = match self.merge_key.is_empty() {
            true => Places::new(order.iter().map(id)),
            false => Places::new(order.iter().map(|item| self.key_of(item)).collect::<Result<Vec<_>, _>>()?),
        };
        if nothing {
            let why = "no elements in any of the given slices";
            return Err(StrategicError::Failed(why.to_owned()));
        }
        kind?;
        Ok(Some(arrange(items, &places, &Places::new(merged.seen))))
    }

    /// What the patch changes must be in its order, and be in that order.
    fn check_order(&self, patch: &[Value], order: &[Value]) -> Result<(), StrategicError> {
        if order.is_empty() || patch.is_empty() {
            return Ok(());
        }
        let key = |item: &Value| match self.merge_key.is_empty() {
            true => Ok(id(item)),
            false => self.key_of(item),
        };
        if let Some(item) = patch.iter().find(|item| !self.merge_key.is_empty() && !item.is_object()) {
            return Err(wrong_type("map[string]interface {}", Some(item)));
        }
        let mut rest = order.iter();
        for item in patch {
            let directive = item.get(PATCH);
            if !self.merge_key.is_empty() && directive.and_then(Value::as_str) == Some("delete") {
                continue;
            }
            let found = match directive {
                Some(_) => rest.len() > 0,
                None => loop {
                    match rest.next() {
                        Some(candidate) if key(item)? == key(candidate)? => break true,
                        Some(_) => {}
                        None => break false,
                    }
                },
            };
            if !found {
                let (patch, order) = (print::list(patch), print::list(order));
                return Err(StrategicError::Failed(format!(
                    "The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n"
                )));
            }
        }
        Ok(())
    }

    fn known(&self, items: Vec<Value>) -> Result<Vec<Known>, StrategicError> {
        items.into_iter().map(|item| Ok(Known { id: self.key_of(&item)?, item })).collect()
    }

    fn key_of(&self, item: &Value) -> Result<String, StrategicError> {
        match item {
            Value::Object(fields) => self.key_in(fields),
            other => Err(wrong_type("map[string]interface {}", Some(other))),
        }
    }

    fn key_in(&self, item: &Map<String, Value>) -> Result<String, StrategicError> {
        match item.get(self.merge_key) {
            Some(Value::Array(_) | Value::Object(_)) => Err(uncomparable()),
            Some(key) => Ok(id(key)),
            None => Err(no_merge_key(item, self.merge_key)),
        }
    }
}

/// Objects or scalars, if they are all of one type; lists of lists do not merge.
fn kind_of(live: &[Value], patch: &[Value]) -> Result<Items, StrategicError> {
    let mut items = live.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(Items::Scalars) };
    if first.is_array() {
        return Err(StrategicError::Unprocessable("lists of lists are not supported"));
    }
    if items.any(|item| print::type_name(Some(item)) != print::type_name(Some(first))) {
        let lists = format!("[{} {}]", print::list(live), print::list(patch));
        return Err(StrategicError::Failed(format!("list element types are not identical: {lists}")));
    }
    Ok(if first.is_object() { Items::Objects } else { Items::Scalars })
}
