//! JSON as the API reads and writes it: duplicate keys are seen, integers stay apart from floats, errors and floats
//! read as Go's.

mod read;
mod write;

pub use read::{Document, MAX_DEPTH, ReadError, read, read_own};
pub use write::{append, append_number, append_text, to_string, write};

use serde_json::Value;

/// The kind of a value, as Go's errors name it.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
