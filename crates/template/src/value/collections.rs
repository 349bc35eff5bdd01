//! Slices and maps. They are taken apart without recursion, so that no nesting exhausts the stack.

use super::Value;
use crate::text::GoStr;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// The type of a slice's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem {
    /// `interface {}`
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
    /// `[]interface {}`, which `chunk` answers with.
    List,
    /// `map[string]interface {}`, which `fromToml` answers with for arrays of tables.
    Map,
    /// Structs, such as the maintainers of a chart.
    Object,
}

/// A slice. It does not change once it is made.
#[derive(Clone, Debug)]
pub struct List {
    elem: Elem,
    nil: bool,
    start: usize,
    end: usize,
    items: Rc<Items>,
}

#[derive(Debug)]
struct Items(Vec<Value>);

impl List {
    /// A slice of these elements.
    #[must_use]
    pub fn new(elem: Elem, items: Vec<Value>) -> Self {
        Self { elem, nil: false, start: 0, end: items.len(), items: Rc::new(Items(items)) }
    }

    /// A nil slice: empty, and `null` in JSON.
    #[must_use]
    pub fn nil(elem: Elem) -> Self {
        Self { nil: true, ..Self::new(elem, Vec::new()) }
    }

    /// Is it the nil slice?
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.nil
    }

    /// The type of the elements.
    #[must_use]
    pub fn elem(&self) -> Elem {
        self.elem
    }

    /// The elements.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        &self.items.0[self.start..self.end]
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How many there could be without a new array: those behind the end of a part.
    pub(crate) fn capacity(&self) -> usize {
        self.items.0.len() - self.start
    }

    /// The part from one place to another, which may lie beyond the end but not beyond the capacity.
    pub(crate) fn part(&self, from: usize, to: usize) -> Self {
        Self { start: self.start + from, end: self.start + to, ..self.clone() }
    }

    /// Do both show the same part of the same array?
    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.items, &other.items) && self.start == other.start && self.end == other.end
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        if self.0.iter().any(nests) {
            take_apart(std::mem::take(&mut self.0));
        }
    }
}

/// The type of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapType {
    /// `map[string]interface {}`
    Any,
    /// `map[string]string`
    Str,
    /// Helm's type of `.Values`, which has methods.
    Values,
}

/// A map. Clones show the same map.
#[derive(Clone)]
pub struct Map {
    map_type: MapType,
    entries: Rc<Entries>,
}

/// The entries of a map, sorted as Go prints and ranges over them.
pub(crate) type Tree = BTreeMap<GoStr, Value>;

struct Entries(RefCell<Tree>);

impl Map {
    /// A map of these entries.
    #[must_use]
    pub fn new(map_type: MapType, entries: BTreeMap<GoStr, Value>) -> Self {
        Self { map_type, entries: Rc::new(Entries(RefCell::new(entries))) }
    }

    /// The type of the map.
    #[must_use]
    pub fn map_type(&self) -> MapType {
        self.map_type
    }

    /// The same map, seen as another type.
    #[must_use]
    pub fn typed(&self, map_type: MapType) -> Self {
        Self { map_type, entries: Rc::clone(&self.entries) }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.0.borrow().len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.0.borrow().get(key).cloned()
    }

    /// Sets a key for all who see this map.
    pub fn set(&self, key: impl Into<GoStr>, value: Value) {
        let before = self.entries.0.borrow_mut().insert(key.into(), value);
        // Dropped only now: it may hold this map.
        drop(before);
    }

    /// Removes a key for all who see this map.
    pub fn remove(&self, key: &[u8]) {
        let before = self.entries.0.borrow_mut().remove(key);
        drop(before);
    }

    /// The entries at this moment. They are shared, not copied.
    #[must_use]
    pub fn entries(&self) -> Vec<(GoStr, Value)> {
        self.entries.0.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Are both the same map?
    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.entries, &other.entries)
    }

    pub(crate) fn watch(&self) -> Watched {
        Watched(Rc::downgrade(&self.entries))
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.map_type.name(), self.len())
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut *self.0.borrow_mut());
        if entries.values().any(nests) {
            take_apart(entries.into_values().collect());
        }
    }
}

/// A map that a template changed. It may hold itself, and would then never be freed.
pub(crate) struct Watched(Weak<Entries>);

impl Watched {
    /// Empties the map, if there still is one, which opens every circle through it.
    pub(crate) fn open(&self) {
        if let Some(entries) = self.0.upgrade() {
            let taken = std::mem::take(&mut *entries.0.borrow_mut());
            drop(entries);
            take_apart(taken.into_values().collect());
        }
    }
}

fn nests(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

/// Drops values one after the other, however deeply they hold each other.
fn take_apart(mut waiting: Vec<Value>) {
    while let Some(value) = waiting.pop() {
        match value {
            Value::List(list) => {
                if let Ok(mut items) = Rc::try_unwrap(list.items) {
                    waiting.append(&mut items.0);
                }
            }
            Value::Map(map) => {
                if let Ok(entries) = Rc::try_unwrap(map.entries) {
                    let taken = std::mem::take(&mut *entries.0.borrow_mut());
                    waiting.extend(taken.into_values());
                }
            }
            _ => {}
        }
    }
}
