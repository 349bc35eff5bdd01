//! Objects as JSON: their fields by path, and what the server generates for them (UIDs, names, timestamps).

use serde_json::{Map, Value, json};
use windlass_clock::Timestamp;

/// What generated names end with: no vowels, and nothing that looks like another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The longest name that can be generated, before what is appended.
const LONGEST_PREFIX: usize = 63 - 5;

/// The text at a path; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a path, whose names need no unescaping as those of a JSON pointer do.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

/// The list at a path; an empty one if there is none.
pub(crate) fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The object at a field, made if it is not there.
pub(crate) fn child<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let slot = object.as_object_mut().expect("it was made one").entry(name).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("it was made one")
}

/// The list at a field, made if it is not there.
pub(crate) fn list_mut<'a>(object: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Vec<Value>> {
    let slot = object.entry(field).or_insert_with(|| json!([]));
    if slot.is_null() {
        *slot = json!([]);
    }
    slot.as_array_mut()
}

/// Sets a field to a value, or removes it where there is none.
pub(crate) fn put(object: &mut Map<String, Value>, field: &str, value: Option<&Value>) {
    match value {
        // Mostly it is as it should be, and to look costs less than to copy.
        Some(value) if object.get(field) == Some(value) => None,
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}

/// A time as metadata has it.
pub(crate) fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

/// A random UID.
pub(crate) fn uid() -> String {
    let mut bytes = random::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = format!("{:032x}", u128::from_be_bytes(bytes));
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

/// A name that begins so and is likely nobody's.
pub(crate) fn generate_name(prefix: &str) -> String {
    let mut end = prefix.len().min(LONGEST_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let suffix: String =
        random::<5>().iter().map(|&byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect();
    format!("{}{suffix}", &prefix[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_keep_to_the_length_of_a_label() {
        assert_eq!(generate_name(&"a".repeat(80)).len(), 63);
        assert_eq!(generate_name("é".repeat(40).as_str()).chars().filter(|c| *c == 'é').count(), 29);
        assert!(generate_name("x-").starts_with("x-"));
    }

    #[test]
    fn uids_are_of_version_four() {
        let uid = uid();
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
    }
}
