//! Whether an answer says just what was sent, from its text: so that what the server took as it was, which is nearly all, need
//! not be read.

use super::change::position;
use super::requests::Door;
use crate::cache::{elements, member, members};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;

/// Deeper than any object that a server takes.
const MAX_DEPTH: usize = 128;

/// Whether an answer to an apply says exactly what was sent, and that it is ours. `false` where it cannot be told at a
/// glance: then the answer is to be read.
pub(super) fn as_sent(intent: &Value, answer: &[u8], manager: &str, door: Door) -> bool {
    Glance { answer }.at_object(intent, manager, door).unwrap_or_default()
}

struct Glance<'a> {
    answer: &'a [u8],
}

impl Glance<'_> {
    fn at_object(&self, intent: &Value, manager: &str, door: Door) -> Option<bool> {
        let meta = member(self.answer, 0, "metadata")?.value.start;
        let entries = member(self.answer, meta, "managedFields")?.value;
        let text = |entry: usize, name: &str| {
            let Some(found) = member(self.answer, entry, name) else { return Some(Cow::Borrowed("")) };
            serde_json::from_slice::<Cow<'_, str>>(&self.answer[found.value]).ok()
        };
        let own = self.items(entries).find(|entry| {
            text(entry.start, "manager").as_deref() == Some(manager)
                && text(entry.start, "operation").as_deref() == Some("Apply")
                && text(entry.start, "subresource").as_deref() == Some(door.subresource())
        })?;
        let owned = member(self.answer, own.start, "fieldsV1")?.value.start;
        let naming = |field: &str| matches!(field, "name" | "namespace" | "uid" | "resourceVersion");
        let wanted = intent.as_object()?;
        let wanted_meta = wanted.get("metadata")?.as_object()?;
        let meta_says = wanted_meta.keys().filter(|field| !naming(field)).count();
        let named =
            |field: &str| matches!(field, "apiVersion" | "kind") || (field == "metadata" && meta_says == 0);
        let says = wanted.keys().filter(|field| !named(field)).count();
        if self.parts(owned).count() != says {
            return Some(false);
        }
        for (part, below) in self.parts(owned) {
            let field = part.strip_prefix("f:")?;
            let there = member(self.answer, 0, field)?.value;
            if field != "metadata" {
                if !self.same(wanted.get(field)?, there, below, 1)? {
                    return Some(false);
                }
                continue;
            }
            if self.parts(below).count() != meta_says {
                return Some(false);
            }
            for (part, below) in self.parts(below) {
                let field = part.strip_prefix("f:").filter(|field| !naming(field))?;
                let there = member(self.answer, meta, field)?.value;
                if !self.same(wanted_meta.get(field)?, there, below, 2)? {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    fn same(&self, wanted: &Value, there: Range<usize>, owned: usize, depth: usize) -> Option<bool> {
        if depth > MAX_DEPTH {
            return None;
        }
        let count = self.parts(owned).count();
        if count == 0 {
            // Of one piece; what is written in another order is not told at a glance.
            return Some(wanted.to_string().as_bytes() == &self.answer[there]);
        }
        match wanted {
            Value::Object(wanted) => {
                if count != wanted.len() {
                    return Some(false);
                }
                for (part, below) in self.parts(owned) {
                    let field = part.strip_prefix("f:")?;
                    let there = member(self.answer, there.start, field)?.value;
                    if !self.same(wanted.get(field)?, there, below, depth + 1)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Value::Array(wanted) => self.same_items(wanted, there, owned, depth),
            _ => None,
        }
    }

    fn same_items(&self, wanted: &[Value], there: Range<usize>, owned: usize, depth: usize) -> Option<bool> {
        if self.parts(owned).count() != wanted.len() {
            return Some(false);
        }
        let mut places = Vec::with_capacity(wanted.len());
        for (part, below) in self.parts(owned) {
            let keys: Map<String, Value> = serde_json::from_str(part.strip_prefix("k:")?).ok()?;
            let fits = |item: &Range<usize>| {
                keys.iter().all(|(key, value)| {
                    let found = member(self.answer, item.start, key);
                    found.is_some_and(|found| value.to_string().as_bytes() == &self.answer[found.value])
                })
            };
            let (at, item) = self.items(there.clone()).enumerate().find(|(_, item)| fits(item))?;
            let wanted_at = position(wanted, &part)?;
            places.push((wanted_at, at));
            if !self.same(&wanted[wanted_at], item, below, depth + 1)? {
                return Some(false);
            }
        }
        places.sort_unstable();
        Some(places.is_sorted_by_key(|(_, there)| *there))
    }

    /// The parts of a set of fields, and where what is below each begins.
    fn parts(&self, owned: usize) -> impl Iterator<Item = (Cow<'_, str>, usize)> {
        let all = members(self.answer, owned);
        all.filter_map(|(name, value)| {
            // Where it cannot be read it is no part that anything fits.
            let name = serde_json::from_slice(&self.answer[name]).unwrap_or_default();
            Some((name, value.start)).filter(|(name, _)| *name != ".")
        })
    }

    /// The items of an array, where they stand in the answer.
    fn items(&self, array: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let start = array.start;
        elements(&self.answer[array]).map(move |item| item.start + start..item.end + start)
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{Verdict, would_change};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn answered(object: Value, fields: Value) -> Value {
        let mut object = object;
        object["metadata"]["managedFields"] = json!([
            {"manager": "them", "operation": "Update", "fieldsV1": {"f:data": {}}},
            {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields},
        ]);
        object
    }

    fn both(intent: &Value, answer: &Value) -> (bool, bool) {
        let glance = as_sent(intent, answer.to_string().as_bytes(), "us", Door::Main);
        (glance, would_change(intent, answer, "us", Door::Main) == Verdict::Same)
    }

    fn child(text: &str) -> (Value, Value) {
        let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": text}, "metadata": {
            "name": "n", "namespace": "ns", "labels": {"a/b": "c"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": true}],
        }});
        let fields = json!({"f:data": {"f:text": {}}, "f:metadata": {
            "f:labels": {"f:a/b": {}}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
        }});
        let mut object = intent.clone();
        object["metadata"]["uid"] = "v".into();
        object["metadata"]["resourceVersion"] = "7".into();
        (intent, answered(object, fields))
    }

    #[test]
    fn what_the_server_took_as_it_was_is_known_at_a_glance() {
        let (intent, answer) = child("hello");
        assert_eq!(both(&intent, &answer), (true, true));
        let (other, _) = child("bye");
        assert_eq!(both(&other, &answer), (false, false));
        let mut changed = answer.clone();
        changed["metadata"]["labels"]["a/b"] = "d".into();
        assert_eq!(both(&intent, &changed), (false, false), "the server changed it");
        let mut more = intent.clone();
        more["data"]["more"] = "x".into();
        assert_eq!(both(&more, &answer), (false, false), "not ours");
        assert!(!as_sent(&intent, answer.to_string().as_bytes(), "them", Door::Main));
        assert!(!as_sent(&intent, answer.to_string().as_bytes(), "us", Door::Status));
    }

    fn scalar() -> impl Strategy<Value = Value> {
        prop_oneof!["[a\"<é]{0,3}".prop_map(Value::from), (0..3i64).prop_map(Value::from), Just(json!(null))]
    }

    proptest! {
        #[test]
        fn a_glance_never_sees_what_is_not_there(
            wanted in prop::collection::btree_map("[ab]", scalar(), 0..3),
            there in prop::collection::btree_map("[ab]", scalar(), 0..3),
            owned in prop::collection::btree_set("[ab]", 0..3),
            as_wanted: bool,
        ) {
            let there = if as_wanted { &wanted } else { &there };
            let fields: Map<String, Value> = if as_wanted {
                wanted.keys().map(|field| (format!("f:{field}"), json!({}))).collect()
            } else {
                owned.iter().map(|field| (format!("f:{field}"), json!({}))).collect()
            };
            let intent = json!({"metadata": {"name": "n"}, "spec": wanted});
            let answer = answered(json!({"metadata": {"name": "n"}, "spec": there}), json!({"f:spec": fields}));
            let (glance, read) = both(&intent, &answer);
            prop_assert!(!glance || read, "{intent} {answer}");
            prop_assert!(glance || !as_wanted || !read, "what is as sent is mostly known: {intent} {answer}");
        }

        #[test]
        fn nonsense_is_no_panic(text in "[{}\\[\\],:\"\\\\a-f1]{0,40}") {
            as_sent(&child("x").0, text.as_bytes(), "us", Door::Main);
        }
    }
}
