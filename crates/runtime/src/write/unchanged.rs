//! Whether an answer says just what was sent, from its text: so that what the server took as it was, which is nearly all, need
//! not be read.

use super::change::position;
use super::requests::Subresource;
use crate::cache::{elements, members};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Deeper than any object that a server takes.
const MAX_DEPTH: usize = 128;

/// Whether an answer to an apply says exactly what was sent, and that it is ours. `false` where it cannot be told at a
/// glance: then the answer is to be read.
pub(super) fn as_sent(intent: &Value, answer: &[u8], manager: &str, subresource: Subresource) -> bool {
    Comparison { answer }.at_object(intent, manager, subresource).unwrap_or_default()
}

struct Comparison<'a> {
    answer: &'a [u8],
}

/// The members of an object in an answer: their names as they are written, and where their values begin.
type Fields<'a> = Vec<(&'a [u8], usize)>;

impl<'a> Comparison<'a> {
    fn at_object(&self, intent: &Value, manager: &str, subresource: Subresource) -> Option<bool> {
        let fields = self.fields(0);
        let meta = self.fields(value(&fields, "metadata")?);
        let owned = self.own_fields(value(&meta, "managedFields")?, manager, subresource)?;
        let naming = |field: &str| matches!(field, "name" | "namespace" | "uid" | "resourceVersion");
        let wanted = intent.as_object()?;
        let wanted_meta = wanted.get("metadata")?.as_object()?;
        let meta_says = wanted_meta.keys().filter(|field| !naming(field)).count();
        let unsaid =
            |field: &str| matches!(field, "apiVersion" | "kind") || (field == "metadata" && meta_says == 0);
        let mut left = wanted.keys().filter(|field| !unsaid(field)).count();
        for (part, below) in self.parts(owned) {
            let field = named(part)?;
            left = left.checked_sub(1)?;
            if field != "metadata" {
                if !self.same(wanted.get(field)?, value(&fields, field)?, below, 1)? {
                    return Some(false);
                }
                continue;
            }
            let mut left = meta_says;
            for (part, below) in self.parts(below) {
                let field = named(part).filter(|field| !naming(field))?;
                left = left.checked_sub(1)?;
                if !self.same(wanted_meta.get(field)?, value(&meta, field)?, below, 2)? {
                    return Some(false);
                }
            }
            if left > 0 {
                return Some(false);
            }
        }
        Some(left == 0)
    }

    /// Where the set of the fields begins that a manager applied through a subresource.
    fn own_fields(&self, entries: usize, manager: &str, subresource: Subresource) -> Option<usize> {
        self.items(entries).find_map(|entry| {
            let entry = self.fields(entry);
            let says = |field: &str, text: &str| match value(&entry, field) {
                Some(there) => self.is_text(text, there),
                None => text.is_empty(),
            };
            let own = says("manager", manager)
                && says("operation", "Apply")
                && says("subresource", subresource.subresource());
            value(&entry, "fieldsV1").filter(|_| own)
        })
    }

    fn same(&self, wanted: &Value, there: usize, owned: usize, depth: usize) -> Option<bool> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut parts = self.parts(owned).peekable();
        if parts.peek().is_none() {
            return Some(self.is(wanted, there));
        }
        match wanted {
            Value::Object(wanted) => {
                let fields = self.fields(there);
                let mut left = wanted.len();
                for (part, below) in parts {
                    let field = named(part)?;
                    left = left.checked_sub(1)?;
                    if !self.same(wanted.get(field)?, value(&fields, field)?, below, depth + 1)? {
                        return Some(false);
                    }
                }
                Some(left == 0)
            }
            Value::Array(wanted) => self.same_items(wanted, there, parts, depth),
            _ => None,
        }
    }

    fn same_items(
        &self,
        wanted: &[Value],
        there: usize,
        parts: impl Iterator<Item = (&'a [u8], usize)>,
        depth: usize,
    ) -> Option<bool> {
        let mut places = Vec::with_capacity(wanted.len());
        for (part, below) in parts {
            let part: String = serde_json::from_slice(&[b"\"", part, b"\""].concat()).ok()?;
            let keys: Map<String, Value> = serde_json::from_str(part.strip_prefix("k:")?).ok()?;
            let fits = |item: &usize| {
                let fields = self.fields(*item);
                keys.iter()
                    .all(|(key, wanted)| value(&fields, key).is_some_and(|there| self.is(wanted, there)))
            };
            let (at, item) = self.items(there).enumerate().find(|(_, item)| fits(item))?;
            let wanted_at = position(wanted, &part)?;
            places.push((wanted_at, at));
            if !self.same(&wanted[wanted_at], item, below, depth + 1)? {
                return Some(false);
            }
        }
        places.sort_unstable();
        Some(places.len() == wanted.len() && places.is_sorted_by_key(|(_, there)| *there))
    }

    /// Whether just this value begins there.
    fn is(&self, wanted: &Value, there: usize) -> bool {
        match wanted {
            Value::String(wanted) => self.is_text(wanted, there),
            Value::Object(wanted) if self.answer.get(there) == Some(&b'{') => {
                let fields = self.fields(there);
                let is_there =
                    |name: &str, wanted| value(&fields, name).is_some_and(|at| self.is(wanted, at));
                fields.len() == wanted.len() && wanted.iter().all(|(name, wanted)| is_there(name, wanted))
            }
            _ => self.read::<Value>(there).is_some_and(|there| there == *wanted),
        }
    }

    fn is_text(&self, wanted: &str, there: usize) -> bool {
        // As it is written, if it holds nothing that could be written otherwise or ends it.
        let rest = self.answer.get(there..).and_then(|rest| rest.strip_prefix(b"\""));
        let plain = rest.and_then(|rest| rest.strip_prefix(wanted.as_bytes()));
        if plain.is_some_and(|after| after.first() == Some(&b'"')) && !wanted.contains(['"', '\\']) {
            return true;
        }
        self.read::<Cow<'_, str>>(there).is_some_and(|text| text == wanted)
    }

    /// What begins there.
    fn read<T: Deserialize<'a>>(&self, there: usize) -> Option<T> {
        T::deserialize(&mut serde_json::Deserializer::from_slice(self.answer.get(there..)?)).ok()
    }

    fn fields(&self, object: usize) -> Fields<'a> {
        let mut fields = Vec::with_capacity(8);
        fields.extend(self.members(object));
        fields
    }

    /// The parts of a set of fields, as they are written, and where what is below each begins.
    fn parts(&self, owned: usize) -> impl Iterator<Item = (&'a [u8], usize)> {
        self.members(owned).filter(|(name, _)| *name != b".")
    }

    fn members(&self, object: usize) -> impl Iterator<Item = (&'a [u8], usize)> {
        let answer = self.answer;
        members(answer, object).map(move |(name, value)| (&answer[name.start + 1..name.end - 1], value.start))
    }

    /// The items of an array, where they begin in the answer.
    fn items(&self, array: usize) -> impl Iterator<Item = usize> {
        let rest = self.answer.get(array..).unwrap_or_default();
        elements(rest).map(move |item| item.start + array)
    }
}

/// The field that a part of a set is; none if its name is written with escapes.
fn named(part: &[u8]) -> Option<&str> {
    let field = part.strip_prefix(b"f:").filter(|field| !field.contains(&b'\\'))?;
    std::str::from_utf8(field).ok()
}

/// Where the value of a field begins; one whose name is written with escapes is not found.
fn value(fields: &Fields<'_>, name: &str) -> Option<usize> {
    let found = fields.iter().find(|(field, _)| *field == name.as_bytes());
    found.filter(|(field, _)| !field.contains(&b'\\')).map(|(_, value)| *value)
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
        let glance = as_sent(intent, answer.to_string().as_bytes(), "us", Subresource::None);
        (glance, would_change(intent, answer, "us", Subresource::None) == Verdict::Same)
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
        assert!(!as_sent(&intent, answer.to_string().as_bytes(), "them", Subresource::None));
        assert!(!as_sent(&intent, answer.to_string().as_bytes(), "us", Subresource::Status));
    }

    #[test]
    fn how_a_server_writes_it_does_not_matter() {
        let (intent, answer) = child("a<\"b");
        let sorted = r#"{"apiVersion":"v1","controller":true,"kind":"X","name":"x","uid":"u"}"#;
        let otherwise = r#"{"apiVersion":"v1","kind":"X","name":"x","uid":"u","controller":true}"#;
        let text = answer.to_string().replace(sorted, otherwise).replace('<', "\\u003c");
        assert!(text.contains(otherwise) && text.contains("u003c"));
        assert!(as_sent(&intent, text.as_bytes(), "us", Subresource::None));
        let another = text.replace(r#""controller":true"#, r#""controller":false"#);
        assert!(!as_sent(&intent, another.as_bytes(), "us", Subresource::None));
        // A text that ends early, and goes on like ours.
        let (tricky, _) = child("a\",\"more\":\"b");
        let (_, answer) = child("a");
        let text = answer.to_string().replace(r#""text":"a""#, r#""text":"a","more":"b""#);
        assert!(!as_sent(&tricky, text.as_bytes(), "us", Subresource::None));
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
            as_sent(&child("x").0, text.as_bytes(), "us", Subresource::None);
        }
    }
}
