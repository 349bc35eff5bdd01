//! Where things stand in a JSON text, without reading it: so that what is not to be held need not be read either.
//!
//! The `managedFields` of an object are often half of it, and a tree of maps when read. The text is known to be JSON; of
//! anything else nothing is found.

use std::ops::Range;

/// A member of a JSON object, in the text that it is part of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) value: Range<usize>,
    /// What can be taken out, and leaves an object: with the comma after it, or before it.
    pub(crate) whole: Range<usize>,
}

/// The member of this name of the object that begins at `at`, whose name is written without escapes.
pub(crate) fn member(text: &[u8], at: usize, name: &str) -> Option<Member> {
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

/// The names, in quotes, and the values of the object that begins at `at`.
pub(crate) fn members(text: &[u8], at: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + '_ {
    let mut here = if text.get(at) == Some(&b'{') { at + 1 } else { text.len() };
    std::iter::from_fn(move || {
        here = skip_space(text, here);
        if text.get(here) == Some(&b',') {
            here = skip_space(text, here + 1);
        }
        if text.get(here) != Some(&b'"') {
            return None;
        }
        let name = here..string_end(text, here)?;
        let colon = skip_space(text, name.end);
        if text.get(colon) != Some(&b':') {
            return None;
        }
        let start = skip_space(text, colon + 1);
        let value = start..value_end(text, start)?;
        here = value.end;
        Some((name, value))
    })
}

/// The elements of an array that is the whole text.
pub(crate) fn elements(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
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
    let space = text.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace());
    at + space.count()
}

fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut here = at + 1;
    loop {
        while let Some(eight) = text.get(here..).and_then(|rest| rest.first_chunk()) {
            if has_quote_or_escape(u64::from_ne_bytes(*eight)) {
                break;
            }
            here += 8;
        }
        match text.get(here)? {
            b'\\' => here += 2,
            b'"' => return Some(here + 1),
            _ => here += 1,
        }
    }
}

/// Eight bytes at once: texts are long, and what ends them is rare.
fn has_quote_or_escape(eight: u64) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let has_zero = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes & (ONES << 7) != 0;
    has_zero(eight ^ (ONES * b'"' as u64)) || has_zero(eight ^ (ONES * b'\\' as u64))
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
        fn members_are_told_apart_as_if_they_had_been_read(
            fields in prop::collection::btree_map(r#"[a"\\\\é]{0,3}"#, json(), 0..5), pretty: bool,
        ) {
            let object = json!(fields);
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            let text = text.unwrap();
            let read = members(text.as_bytes(), 0).map(|(name, value)| {
                (serde_json::from_str::<String>(&text[name]).unwrap(), serde_json::from_str::<Value>(&text[value]).unwrap())
            });
            prop_assert_eq!(read.collect::<std::collections::BTreeMap<_, _>>(), fields);
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
