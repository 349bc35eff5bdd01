//! Would an apply change anything? With this an operator at rest sends no requests.

use super::fieldset::Filter;
use super::managed::APPLY;
use super::merge::merge;
use super::path::PathElement;
use super::typed::{check, field_set, item_element};
use super::types::{ListKind, MapKind, Member, Scalar, Shape, TypeView};
use super::values::equal;
use super::{Context, FieldSet, NEVER_OWNED};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WouldChange {
    /// The object and its owners stay as they are.
    No,
    /// The server may have written differently what was applied: apply once and remember.
    Unsure,
    /// The object or its owners change, or the apply is refused.
    Yes,
}

/// Says, without asking the server, whether applying `intent` as `manager` to `live` would change anything.
///
/// `live` must hold the manager's own entry; those of others are not looked at. Values differ from what was applied where the
/// server normalises or fills in defaults inside values that are replaced as a whole: with schemas that carry the defaults the
/// answer is sure (at most the time of the manager's entry would move), otherwise such a difference makes it unsure.
pub fn would_change(live: &Value, intent: &Value, manager: &str, context: &Context<'_>) -> WouldChange {
    let Some(entries) =
        live.pointer("/metadata/managedFields").and_then(Value::as_array).filter(|list| !list.is_empty())
    else {
        return WouldChange::Yes;
    };
    let text =
        |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let own = entries.iter().find(|entry| {
        text(entry, "manager") == manager
            && text(entry, "operation") == APPLY
            && text(entry, "subresource") == context.subresource
    });
    // Without an entry nothing is owned, which suits an intent that lists nothing.
    let owned = match own {
        Some(entry) if text(entry, "apiVersion") != context.api_version => return WouldChange::Yes,
        Some(entry) => {
            entry.get("fieldsV1").map(FieldSet::from_fields_v1).unwrap_or_else(|| Ok(FieldSet::new()))
        }
        None => Ok(FieldSet::new()),
    };
    match owned {
        Ok(owned) => would_change_owning(live, &owned, intent, context),
        Err(_) => WouldChange::Yes,
    }
}

/// As [`would_change`], for a cache that keeps what one owns, in the version of the context, apart from the object.
pub fn would_change_owning(
    live: &Value,
    owned: &FieldSet,
    intent: &Value,
    context: &Context<'_>,
) -> WouldChange {
    let view = TypeView::of_kind((context.schema)(context.api_version));
    let version = live.get("apiVersion").and_then(Value::as_str);
    if version != Some(context.api_version)
        || check(&view, intent, false).is_err()
        || check(&view, live, true).is_err()
    {
        return WouldChange::Unsure;
    }
    let filter = context.reset_fields.get(context.api_version);
    let mut listed = field_set(&view, intent);
    if let Some(filter) = filter {
        listed = filter.apply(&listed);
    }
    if listed.difference(&NEVER_OWNED) != *owned {
        return WouldChange::Yes;
    }
    if equal(live, &merge(&view, live, intent)) {
        return WouldChange::No;
    }
    match (live, intent) {
        (Value::Object(there), Value::Object(wanted)) => {
            Looking { filter }.fields(&view, None, there, wanted)
        }
        _ => WouldChange::Unsure,
    }
}

/// Looks for the worst difference between what is applied and what is there.
struct Looking<'a> {
    filter: Option<&'a Filter>,
}

/// The fields on the way from the root, innermost first.
struct Above<'a> {
    element: PathElement,
    above: Option<&'a Above<'a>>,
}

impl Above<'_> {
    fn path(&self) -> Vec<PathElement> {
        let mut path = self.above.map(Above::path).unwrap_or_default();
        path.push(self.element.clone());
        path
    }
}

impl Looking<'_> {
    /// Whether nobody owns this field, or not by this request: whatever is applied there does not stay.
    fn is_put_back(&self, at: &Above<'_>) -> bool {
        let path = at.path();
        let is_metadata = matches!(&path[..], [PathElement::Field(name)] if &**name == "metadata");
        let mut set = FieldSet::new();
        set.insert(&path);
        let reset = self.filter.is_some_and(|filter| filter.apply(&set).is_empty());
        reset || (!is_metadata && NEVER_OWNED.has(&path))
    }

    fn fields(
        &self,
        view: &TypeView,
        above: Option<&Above<'_>>,
        live: &Map<String, Value>,
        intent: &Map<String, Value>,
    ) -> WouldChange {
        let worst = intent.iter().map(|(name, wanted)| {
            let there = live.get(name);
            if there.is_some_and(|there| equal(there, wanted)) {
                return WouldChange::No;
            }
            let at = Above { element: PathElement::field(name), above };
            // The server puts it back, but may move the time of the manager's entry.
            if self.is_put_back(&at) {
                return WouldChange::Unsure;
            }
            let field = match view.field(name) {
                Member::Declared(field) | Member::Additional(field) => field,
                Member::Undeclared => return WouldChange::Yes,
            };
            match there {
                Some(there) => self.value(&field, &at, there, wanted),
                // The server drops nulls, and empty maps and lists of the kinds it knows by heart.
                None if is_void(wanted) => WouldChange::Unsure,
                None => WouldChange::Yes,
            }
        });
        worst.max().unwrap_or(WouldChange::No)
    }

    fn value(&self, view: &TypeView, at: &Above<'_>, live: &Value, intent: &Value) -> WouldChange {
        match (view.shapes().of(Some(intent)).first(), live, intent) {
            (Shape::Map(MapKind::Granular), Value::Object(live), Value::Object(intent)) => {
                self.fields(view, Some(at), live, intent)
            }
            (
                Shape::List(kind @ (ListKind::Set | ListKind::Keyed)),
                Value::Array(live),
                Value::Array(intent),
            ) => self.items(view, kind, at, live, intent),
            (Shape::Map(MapKind::Atomic) | Shape::List(ListKind::Atomic), ..) => whole(view, live, intent),
            // Quantities, times and the like have several spellings.
            (Shape::Scalar(Scalar::Any), ..) if is_scalar(live) => WouldChange::Unsure,
            (_, live, intent) if is_void(live) && is_void(intent) => WouldChange::Unsure,
            (Shape::Map(_), _, Value::Null) | (Shape::List(_), _, Value::Null) => WouldChange::Unsure,
            _ => WouldChange::Yes,
        }
    }

    fn items(
        &self,
        view: &TypeView,
        kind: ListKind,
        at: &Above<'_>,
        live: &[Value],
        intent: &[Value],
    ) -> WouldChange {
        let item_view = view.item();
        let mut there: BTreeMap<PathElement, (usize, &Value)> = BTreeMap::new();
        for (index, item) in live.iter().enumerate() {
            let Ok(element) = item_element(view, kind, &item_view, item) else { return WouldChange::Unsure };
            if there.insert(element, (index, item)).is_some() {
                return WouldChange::Yes;
            }
        }
        let mut worst = WouldChange::No;
        let mut last = None;
        for item in intent {
            let Ok(element) = item_element(view, kind, &item_view, item) else { return WouldChange::Unsure };
            let Some((index, live)) = there.get(&element).copied() else { return WouldChange::Yes };
            // The intent's order wins.
            if last.is_some_and(|last| last > index) {
                return WouldChange::Yes;
            }
            last = Some(index);
            if !equal(live, item) {
                let at = Above { element, above: Some(at) };
                worst = worst.max(self.value(&item_view, &at, live, item));
            }
        }
        worst
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A value that is replaced as a whole: it is as applied if the server's defaults make up the difference.
fn whole(view: &TypeView, live: &Value, intent: &Value) -> WouldChange {
    let mut filled = intent.clone();
    fill_defaults(view, &mut filled);
    if equal(live, &filled) {
        WouldChange::No
    } else if contains(live, intent) {
        WouldChange::Unsure
    } else {
        WouldChange::Yes
    }
}

/// Fills in the defaults that a schema declares inside a value.
fn fill_defaults(view: &TypeView, value: &mut Value) {
    match value {
        Value::Object(fields) if view.shapes().map.is_some() => {
            for (name, default) in view.defaults() {
                if !fields.contains_key(name) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                fill_defaults(&view.field(name).view(), value);
            }
        }
        Value::Array(items) if view.shapes().list.is_some() => {
            let item_view = view.item();
            items.iter_mut().for_each(|item| fill_defaults(&item_view, item));
        }
        _ => {}
    }
}

/// Whether all of `part` is in `whole`: then the rest may be what a server filled in. Scalars may be spelled differently.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| whole.get(name).map_or_else(|| is_void(part), |whole| contains(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => equal(whole, part) || is_void(part),
    }
}
