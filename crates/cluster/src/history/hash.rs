//! The hash in the names of revisions, as Kubernetes computes it, so that the names are the same.

use serde_json::Value;

/// Without vowels, so that no words are formed.
const SAFE_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a revision's data; it differs with the collision count.
pub(crate) fn hash(data: &Value, collisions: i32) -> String {
    let text = go_json(data) + &collisions.to_string();
    safe_encode(&fnv1(text.as_bytes()).to_string())
}

/// Encodes a text with characters that form no words (Kubernetes' `SafeEncodeString`).
pub(crate) fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(SAFE_CHARACTERS[usize::from(byte) % SAFE_CHARACTERS.len()])).collect()
}

/// FNV-1 with 32 bits: Go's `fnv.New32`.
fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// Compact JSON with sorted keys and HTML-escaped characters, as Go writes it.
fn go_json(data: &Value) -> String {
    let text = data.to_string();
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => written.push_str("\\u003c"),
            '>' => written.push_str("\\u003e"),
            '&' => written.push_str("\\u0026"),
            '\u{2028}' => written.push_str("\\u2028"),
            '\u{2029}' => written.push_str("\\u2029"),
            other => written.push(other),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1(b""), 2_166_136_261);
        assert_eq!(fnv1(b"a"), 0x050c_5d7e);
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
        assert_ne!(hash(&json!({}), 0), hash(&json!({}), 1));
    }

    #[test]
    fn what_html_might_mistake_is_escaped() {
        assert_eq!(go_json(&json!({ "b": "<&>", "a": 1 })), r#"{"a":1,"b":"\u003c\u0026\u003e"}"#);
    }
}
