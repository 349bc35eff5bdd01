//! Continue tokens: where the next page of a list starts, and of which version it is.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_schema::json;

/// A place in a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The version of the first page; none for one that the client knows to be inconsistent.
    pub(super) version: Option<u64>,
    /// The last key that was shown: its namespace, empty within one, and its name.
    pub(super) after: (String, String),
}

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    v: &'a str,
    rv: i64,
    start: String,
}

const V1: &str = "meta.k8s.io/v1";

/// As lenient about the last bits as the reference, and as strict about padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

impl Token {
    /// The token for what comes after `after`; no version makes one that goes on inconsistently.
    pub(super) fn encode(&self) -> String {
        let (namespace, name) = &self.after;
        let mut start = String::new();
        for part in [namespace, name].into_iter().filter(|part| !part.is_empty()) {
            start.push('/');
            start.push_str(part);
        }
        // The first key after the last one shown.
        start.push('\0');
        let rv = self.version.map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX));
        let json = serde_json::to_vec(&Wire { v: V1, rv, start }).expect("strings and numbers always encode");
        BASE64.encode(json)
    }

    /// Reads a token.
    ///
    /// # Errors
    /// Why it is none, as the reference words it.
    pub(super) fn decode(text: &str) -> Result<Self, String> {
        let bytes = BASE64.decode(text).map_err(|_| {
            let odd = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte);
            let at = text.as_bytes().iter().position(odd).unwrap_or(text.len().saturating_sub(1));
            format!("continue key is not valid: illegal base64 data at input byte {at}")
        })?;
        let fields = Fields::read(&bytes).map_err(|why| format!("continue key is not valid: {why}"))?;
        if fields.v != V1 {
            let why = "server does not recognize this encoded version";
            return Err(format!("continue key is not valid: {why} {}", fields.v));
        }
        if fields.rv == 0 {
            return Err(format!(
                "continue key is not valid: incorrect encoded start resourceVersion (version {V1})"
            ));
        }
        if fields.start.is_empty() {
            return Err(format!("continue key is not valid: encoded start key empty (version {V1})"));
        }
        let path = fields.start.strip_prefix('/').unwrap_or(&fields.start);
        // A path that leads elsewhere than it says is not followed.
        let odd = |part: &str| matches!(part, "" | "." | "..");
        if !path.is_empty() && path.split('/').any(odd) {
            return Err(format!("continue key is not valid: {}", fields.start));
        }
        let last = path.strip_suffix('\0').unwrap_or(path);
        let (namespace, name) = last.split_once('/').unwrap_or(("", last));
        Ok(Self { version: u64::try_from(fields.rv).ok(), after: (namespace.to_owned(), name.to_owned()) })
    }
}

#[derive(Default)]
struct Fields {
    v: String,
    rv: i64,
    start: String,
}

impl Fields {
    /// A missing field is empty, and a field of the wrong type is named.
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let document = json::read(bytes).map_err(|error| error.to_string())?;
        let object = match document.value {
            Value::Object(object) => object,
            Value::Null => return Ok(Self::default()),
            other => return Err(mismatch(&other, "value", "storage.continueToken")),
        };
        let text = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(mismatch(other, &format!("struct field continueToken.{name}"), "string")),
        };
        let rv = match object.get("rv") {
            None | Some(Value::Null) => 0,
            Some(value) => match value.as_i64() {
                Some(rv) => rv,
                None => return Err(mismatch(value, "struct field continueToken.rv", "int64")),
            },
        };
        Ok(Self { v: text("v")?, rv, start: text("start")? })
    }
}

fn mismatch(value: &Value, place: &str, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if wanted == "int64" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go {place} of type {wanted}")
}
