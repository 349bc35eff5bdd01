//! Whether content is the same as before, across restarts and versions of an operator.

use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// The bytes of a hash that are kept: enough that two contents never have the same by chance.
const KEPT: usize = 16;

/// A short text that is the same for the same content: by its JSON, whatever the order of its fields, where a field without
/// a value is as one that is not there. So a type that gains an optional field gives the same as before. It stays the same
/// in later versions of this library.
///
/// It is 32 hexadecimal digits of SHA-256, which may be in a label or an annotation. It tells nothing of a random password;
/// one that can be guessed can be guessed from it.
///
/// ```
/// use serde_json::json;
/// let one = windlass::fingerprint(&json!({"port": 6379, "tls": null})).unwrap();
/// assert_eq!(one, windlass::fingerprint(&json!({"port": 6379})).unwrap());
/// assert_ne!(one, windlass::fingerprint(&json!({"port": 6380})).unwrap());
/// ```
///
/// # Errors
/// When the content cannot be serialized.
pub fn fingerprint(content: &impl Serialize) -> Result<String, serde_json::Error> {
    let content = serde_json::to_value(content)?;
    let mut canonical = String::new();
    write_canonical(&content, &mut canonical);
    let digest = digest(&SHA256, canonical.as_bytes());
    Ok(digest.as_ref().iter().take(KEPT).fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// JSON without spaces, with fields in the order of their names and without those that are null.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (number, (name, value)) in fields.into_iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Operators compare it with what an earlier version wrote into annotations: it never changes.
    #[test]
    fn it_is_what_it_always_was() {
        let content = json!({"b": [1, 2.5, "x\n", null, true], "a": {"z": null, "y": {}}});
        let mut canonical = String::new();
        write_canonical(&content, &mut canonical);
        assert_eq!(canonical, r#"{"a":{"y":{}},"b":[1,2.5,"x\n",null,true]}"#);
        assert_eq!(fingerprint(&content).unwrap(), "671a62f7ff5dfe05aac8adb8edcab823");
        assert_eq!(fingerprint(&json!({})).unwrap(), "44136fa355b3678a1146ad16f7e8649e");
    }
}
