//! Messages that are a single value in JSON: `Time`, `Quantity`, `IntOrString`, and JSON itself.

use super::ProtoError;
use super::decode::text;
use super::wire::{BYTES, Reader, VARINT, Wire, wrong};
use jiff::Timestamp;
use serde_json::Value;

/// A time, to the second or to the microsecond. No bytes at all are no time.
pub(super) fn time(bytes: &[u8], micro: bool) -> Result<Value, ProtoError> {
    /// The first second of year one, which stands for none.
    const NEVER: i64 = -62_135_596_800;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new("Timestamp", bytes);
    while let Some(field) = reader.next(|number| number <= 2)? {
        match field {
            (1, Wire::Varint(value)) => seconds = value as i64,
            (2, Wire::Varint(value)) => nanos = value as i32,
            (1, wire) => return Err(wrong(wire, VARINT, "Seconds")),
            (2, wire) => return Err(wrong(wire, VARINT, "Nanos")),
            _ => {}
        }
    }
    if !micro {
        nanos = 0;
    }
    if (seconds, nanos) == (NEVER, 0) {
        return Ok(Value::Null);
    }
    let out_of_range = |_| ProtoError("Time.MarshalJSON: year outside of range [0,9999]".to_owned());
    let carried = seconds.saturating_add(i64::from(nanos.div_euclid(1_000_000_000)));
    let time = Timestamp::new(carried, nanos.rem_euclid(1_000_000_000)).map_err(out_of_range)?;
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    let written = time.strftime(format).to_string();
    if written.starts_with('-') {
        return Err(ProtoError("Time.MarshalJSON: year outside of range [0,9999]".to_owned()));
    }
    Ok(Value::String(written))
}

/// A quantity, as its text.
pub(super) fn quantity(bytes: &[u8]) -> Result<Value, ProtoError> {
    let mut amount = "0".to_owned();
    let mut reader = Reader::new("Quantity", bytes);
    while let Some(field) = reader.next(|number| number == 1)? {
        match field {
            (1, Wire::Bytes(bytes)) => amount = text(bytes),
            (1, wire) => return Err(wrong(wire, BYTES, "String_")),
            _ => {}
        }
    }
    Ok(Value::String(amount))
}

/// A number or a string, whichever it says it is.
pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, ProtoError> {
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut reader = Reader::new("IntOrString", bytes);
    while let Some(field) = reader.next(|number| number <= 3)? {
        match field {
            (1, Wire::Varint(value)) => kind = value as i64,
            (2, Wire::Varint(value)) => number = value as i32,
            (3, Wire::Bytes(bytes)) => string = text(bytes),
            (1, wire) => return Err(wrong(wire, VARINT, "Type")),
            (2, wire) => return Err(wrong(wire, VARINT, "IntVal")),
            (3, wire) => return Err(wrong(wire, BYTES, "StrVal")),
            _ => {}
        }
    }
    match kind {
        0 => Ok(Value::from(number)),
        1 => Ok(Value::String(string)),
        _ => Err(ProtoError("impossible IntOrString.Type".to_owned())),
    }
}

/// A message around JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Value, ProtoError> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new("RawExtension", bytes);
    while let Some(field) = reader.next(|number| number == 1)? {
        match field {
            (1, Wire::Bytes(bytes)) => raw = bytes,
            (1, wire) => return Err(wrong(wire, BYTES, "Raw")),
            _ => {}
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    crate::json::read(raw).map(|document| document.value).map_err(|error| ProtoError(error.to_string()))
}
