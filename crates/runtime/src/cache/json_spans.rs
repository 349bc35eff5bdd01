//! Where things stand in a JSON text, without reading it: so that what is not to be held need not be read either.
//!
//! The `managedFields` of an object are often half of it, and a tree of maps when read. The text is known to be JSON; of
//! anything else nothing is found.
//!
//! Going through texts is what costs an operator most, so each is gone through once per question, and no further than the
//! answer.

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
    let (place, comma) = find(text, at, name)?;
    let end = value_end(text, place.value)?;
    let next = skip_space(text, end);
    let whole = match text.get(next) {
        Some(b',') => place.name..next + 1,
        _ => comma.unwrap_or(place.name)..end,
    };
    Some(Member { value: place.value..end, whole })
}

/// Where the value of the member of this name begins: without a look at where it ends, which is often far.
pub(crate) fn value_of(text: &[u8], at: usize, name: &str) -> Option<usize> {
    find(text, at, name).map(|(place, _)| place.value)
}

/// Where a member's name and its value begin.
struct Place {
    name: usize,
    name_end: usize,
    value: usize,
}

fn find(text: &[u8], at: usize, name: &str) -> Option<(Place, Option<usize>)> {
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
                let place = place(text, here)?;
                if text.get(here + 1..place.name_end - 1) == Some(name.as_bytes()) {
                    return Some((place, comma));
                }
                here = value_end(text, place.value)?;
            }
            _ => return None,
        }
    }
}

/// The member whose name begins at `name`.
fn place(text: &[u8], name: usize) -> Option<Place> {
    let name_end = string_end(text, name)?;
    let colon = skip_space(text, name_end);
    if text.get(colon) != Some(&b':') {
        return None;
    }
    Some(Place { name, name_end, value: skip_space(text, colon + 1) })
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
        let place = place(text, here)?;
        let (name, value) = (place.name..place.name_end, place.value..value_end(text, place.value)?);
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

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut here = at + 1;
    loop {
        while let Some(eight) = text.get(here..).and_then(|rest| rest.first_chunk()) {
            match quote_or_escape(u64::from_le_bytes(*eight)) {
                None => here += 8,
                Some(after) => {
                    here += after;
                    break;
                }
            }
        }
        match text.get(here)? {
            b'\\' => here += 2,
            b'"' => return Some(here + 1),
            _ => here += 1,
        }
    }
}

/// Eight times this byte.
const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Marks the zeros among eight bytes, in their highest bits. What follows a zero may be marked too, nothing before it.
fn zeros(bytes: u64) -> u64 {
    bytes.wrapping_sub(eight(1)) & !bytes & eight(0x80)
}

/// After how many of eight bytes the first that is marked comes.
fn first(marks: u64) -> Option<usize> {
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// After how many of eight bytes there is a quote or an escape: texts are long, and what ends them is rare.
fn quote_or_escape(bytes: u64) -> Option<usize> {
    first(zeros(bytes ^ eight(b'"')) | zeros(bytes ^ eight(b'\\')))
}

/// Where the first end of a line is.
pub(super) fn line_end(text: &[u8]) -> Option<usize> {
    let (chunks, rest) = text.as_chunks();
    let found = chunks.iter().enumerate().find_map(|(number, chunk)| {
        Some(number * 8 + first(zeros(u64::from_le_bytes(*chunk) ^ eight(b'\n')))?)
    });
    let in_rest = || rest.iter().position(|byte| *byte == b'\n');
    found.or_else(|| in_rest().map(|at| text.len() - rest.len() + at))
}

fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => nested_end(text, at),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            let length = text[at..].iter().position(ends)?;
            (length > 0).then_some(at + length)
        }
    }
}

/// The end of the object or list that begins at `at`.
fn nested_end(text: &[u8], at: usize) -> Option<usize> {
    let mut here = at;
    let mut depth = 0usize;
    loop {
        match text.get(here)? {
            b'"' => {
                here = string_end(text, here)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(here + 1);
                }
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
        fn the_first_end_of_a_line_is_found(text in prop::collection::vec(prop::sample::select(b"\n\x0b\xffab".to_vec()), 0..40)) {
            prop_assert_eq!(line_end(&text), text.iter().position(|byte| *byte == b'\n'));
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
