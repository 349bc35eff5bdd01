//! JSON as the API reads and writes it.
use serde_json::Value;
/// Compact JSON.
pub fn write(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
