//! Where things stand in a JSON text, without reading it: so that what is not to be held need not be read either.
//!
//! The `managedFields` of an object are often half of it, and a tree of maps when read. The text is known to be JSON; of
//! anything else nothing is found.

use std::ops::Range;

/// A member of a JSON object, in the text that it is part of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) value: Range<usize>,
    /// What can be taken out, and leaves an object: with the comma after it, or before it.
    pub(super) whole: Range<usize>,
}

/// The member of this name of the object that begins at `at`, whose name is written without escapes.
pub(super) fn member(text: &[u8], at: usize, name: &str) -> Option<Member> {
    if text.get(at) != Some(&b'{') {
        return None;
    }
    let mut here = at + 1;
    let mut comma = None;
    loop {
        here = skip_space(text, here);
        match text.get(here)? {
            b',' => {
                comma = Some(here);
                here += 1;
            }
            b'"' => {
                let name_end = string_end(text, here)?;
                let colon = skip_space(text, name_end);
                if text.get(colon) != Some(&b':') {
                    return None;
                }
                let start = skip_space(text, colon + 1);
                let end = value_end(text, start)?;
                if text.get(here + 1..name_end - 1) == Some(name.as_bytes()) {
                    let next = skip_space(text, end);
                    let whole = match text.get(next) {
                        Some(b',') => here..next + 1,
                        _ => comma.unwrap_or(here)..end,
                    };
                    return Some(Member { value: start..end, whole });
                }
                here = end;
            }
            _ => return None,
        }
    }
}

/// The elements of an array that is the whole text.
pub(super) fn elements(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut here = if text.first() == Some(&b'[') { 1 } else { text.len() };
    std::iter::from_fn(move || {
        loop {
            here = skip_space(text, here);
            match text.get(here)? {
                b',' => here += 1,
                b']' => return None,
                _ => {
                    let start = here;
                    here = value_end(text, start)?;
                    return Some(start..here);
                }
            }
        }
    })
}

fn skip_space(text: &[u8], at: usize) -> usize {
    let space = text.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace()).count();
    at + space
}

fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut here = at + 1;
    loop {
        match text.get(here)? {
            b'\\' => here += 2,
            b'"' => return Some(here + 1),
            _ => here += 1,
        }
    }
}

fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let mut here = at;
    let mut depth = 0usize;
    loop {
        match text.get(here)? {
            b'"' => {
                here = string_end(text, here)?;
                if depth == 0 {
                    return Some(here);
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return (here > at).then_some(here),
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(here + 1);
                }
            }
            byte if depth == 0 && (*byte == b',' || byte.is_ascii_whitespace()) => {
                return (here > at).then_some(here);
            }
            _ => {}
        }
        here += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn json() -> impl Strategy<Value = Value> {
        let text = r#"[a-c"\\\{\}\[\],: é\n]{0,6}"#;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_member_is_found_and_taken_out_as_if_it_had_been_read(
            mut fields in prop::collection::btree_map("[a-c]{1,2}", json(), 0..5), pretty: bool,
        ) {
            let object = json!(fields);
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            let text = text.unwrap().into_bytes();
            let found = member(&text, 0, "a");
            prop_assert_eq!(found.is_some(), fields.contains_key("a"));
            if let Some(Member { value, whole }) = found {
                prop_assert_eq!(serde_json::from_slice::<Value>(&text[value]).unwrap(), fields["a"].clone());
                let rest = [&text[..whole.start], &text[whole.end..]].concat();
                fields.remove("a");
                prop_assert_eq!(serde_json::from_slice::<Value>(&rest).unwrap(), json!(fields));
            }
        }

        #[test]
        fn elements_are_told_apart_as_if_they_had_been_read(all in prop::collection::vec(json(), 0..5)) {
            let text = json!(all).to_string();
            let read: Vec<Value> =
                elements(text.as_bytes()).map(|one| serde_json::from_str(&text[one]).unwrap()).collect();
            prop_assert_eq!(read, all);
        }

        #[test]
        fn nonsense_is_no_panic(text in prop::collection::vec(prop::sample::select(br#"{}[],:"\a 1"#.to_vec()), 0..20)) {
            let _ = member(&text, 0, "a");
            for element in elements(&text).take(30) {
                prop_assert!(text.get(element).is_some());
            }
        }
    }
}
