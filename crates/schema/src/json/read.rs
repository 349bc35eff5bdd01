//! JSON parser: one pass over the input, with a limit on depth.

use crate::go;
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;
use thiserror::Error;

/// How deep arrays and objects may nest. Kubernetes allows 10,000; everything here walks values by recursion, and no
/// object that anyone writes comes near this.
pub const MAX_DEPTH: usize = 256;

/// How many duplicates are reported, as in Kubernetes.
const MAX_DUPLICATES: usize = 100;

/// A JSON text that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value; of duplicate keys the last one won.
    pub value: Value,
    /// The paths of keys that came more than once, such as `spec.list[0].a`, in the order of the text.
    pub duplicates: Vec<String>,
}

/// Why a text is not JSON, worded as in Go.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ReadError(String);

/// Reads JSON.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    let mut reader = Reader {
        bytes,
        at: 0,
        depth: 0,
        path: String::new(),
        duplicates: Vec::new(),
        seen: BTreeSet::new(),
        unfit: None,
    };
    let value = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        Some(byte) => Err(unexpected(byte, "after top-level value")),
        // Go first checks the whole text, then converts its numbers.
        None => match reader.unfit {
            Some(error) => Err(error),
            None => Ok(Document { value, duplicates: reader.duplicates }),
        },
    }
}

fn unexpected(byte: u8, context: &str) -> ReadError {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        // Go takes the single byte for a character.
        byte => {
            let quoted = go::quote(char::from(byte).encode_utf8(&mut [0; 4]));
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    };
    ReadError(format!("invalid character {shown} {context}"))
}

fn ended() -> ReadError {
    ReadError("unexpected end of JSON input".to_owned())
}

/// Reads what this process wrote itself, however deep: to what was sent, ownership of its fields may be added at the same
/// depth again.
///
/// # Errors
/// It is no JSON.
pub fn read_own(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut source = serde_json::Deserializer::from_slice(bytes);
    source.disable_recursion_limit();
    Value::deserialize(&mut source)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    path: String,
    duplicates: Vec<String>,
    seen: BTreeSet<String>,
    /// The first number that fits no type.
    unfit: Option<ReadError>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek().ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte inside a number, a literal or an escape: there Go takes the end for a space.
    fn next_inside(&mut self) -> u8 {
        self.next().unwrap_or(b' ')
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn next_token(&mut self) -> Result<u8, ReadError> {
        self.skip_space();
        self.next()
    }

    fn value(&mut self) -> Result<Value, ReadError> {
        let byte = self.next_token()?;
        self.value_from(byte)
    }

    /// The value whose first byte was just taken.
    fn value_from(&mut self, first: u8) -> Result<Value, ReadError> {
        match first {
            b'{' | b'[' if self.depth >= MAX_DEPTH => Err(unexpected(first, "exceeded max depth")),
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'"' => self.text().map(Value::String),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            b'-' | b'0'..=b'9' => self.number(first),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, ReadError>) -> Result<Value, ReadError> {
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, ReadError> {
        const KEY: &str = "looking for beginning of object key string";
        let mut fields = Map::new();
        let mut byte = self.next_token()?;
        if byte == b'}' {
            return Ok(Value::Object(fields));
        }
        let outer = self.path.len();
        loop {
            if byte != b'"' {
                return Err(unexpected(byte, KEY));
            }
            let key = self.text()?;
            match self.next_token()? {
                b':' => {}
                other => return Err(unexpected(other, "after object key")),
            }
            if outer > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if fields.contains_key(&key) {
                self.duplicate();
            }
            let value = self.value()?;
            self.path.truncate(outer);
            fields.insert(key, value);
            match self.next_token()? {
                b',' => byte = self.next_token()?,
                b'}' => return Ok(Value::Object(fields)),
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<Value, ReadError> {
        let mut items = Vec::new();
        let mut byte = self.next_token()?;
        if byte == b']' {
            return Ok(Value::Array(items));
        }
        let outer = self.path.len();
        loop {
            self.path.push_str(&format!("[{}]", items.len()));
            items.push(self.value_from(byte)?);
            self.path.truncate(outer);
            match self.next_token()? {
                b',' => byte = self.next_token()?,
                b']' => return Ok(Value::Array(items)),
                other => return Err(unexpected(other, "after array element")),
            }
        }
    }

    fn duplicate(&mut self) {
        if self.duplicates.len() < MAX_DUPLICATES && self.seen.insert(self.path.clone()) {
            self.duplicates.push(self.path.clone());
        }
    }

    fn literal(&mut self, name: &str, value: Value) -> Result<Value, ReadError> {
        for expected in name.bytes().skip(1) {
            let byte = self.next_inside();
            if byte != expected {
                let context = format!("in literal {name} (expecting '{}')", char::from(expected));
                return Err(unexpected(byte, &context));
            }
        }
        Ok(value)
    }

    /// The rest of a string whose quote was taken. What is not UTF-8 becomes U+FFFD, as in Go.
    fn text(&mut self) -> Result<String, ReadError> {
        let mut text = String::new();
        loop {
            let start = self.at;
            while let Some(0x20..=0x21 | 0x23..=0x5b | 0x5d..=0xff) = self.peek() {
                self.at += 1;
            }
            push_lossy(&self.bytes[start..self.at], &mut text);
            match self.next()? {
                b'"' => return Ok(text),
                b'\\' => self.escape(&mut text)?,
                control => return Err(unexpected(control, "in string literal")),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), ReadError> {
        text.push(match self.next_inside() {
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            same @ (b'\\' | b'/' | b'"') => char::from(same),
            b'u' => self.unicode_escape()?,
            other => return Err(unexpected(other, "in string escape code")),
        });
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<char, ReadError> {
        let unit = self.hexadecimal()?;
        if let Some(whole) = char::from_u32(unit) {
            return Ok(whole);
        }
        // A first half needs its second right behind it; a half alone becomes U+FFFD.
        let behind = self.at;
        if (0xd800..0xdc00).contains(&unit) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let second = self.hexadecimal()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = behind;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hexadecimal(&mut self) -> Result<u32, ReadError> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.next_inside();
            let digit = char::from(byte)
                .to_digit(16)
                .ok_or_else(|| unexpected(byte, "in \\u hexadecimal character escape"))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }

    /// The number whose first byte was taken.
    fn number(&mut self, first: u8) -> Result<Value, ReadError> {
        let start = self.at - 1;
        let leading = if first == b'-' { self.next_inside() } else { first };
        match leading {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            other => return Err(unexpected(other, "in numeric literal")),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            whole = false;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            whole = false;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).expect("digits and signs are ASCII");
        Ok(self.convert(text, whole))
    }

    fn convert(&mut self, text: &str, whole: bool) -> Value {
        if let Some(integer) = text.parse::<i64>().ok().filter(|_| whole) {
            return Value::Number(integer.into());
        }
        let float: f64 = text.parse().expect("JSON's numbers are a part of Rust's");
        match Number::from_f64(float) {
            Some(number) => Value::Number(number),
            None => {
                let error = format!("json: cannot unmarshal number {text} into Go value of type float64");
                self.unfit.get_or_insert(ReadError(error));
                Value::Null
            }
        }
    }

    fn digits(&mut self, context: &str) -> Result<(), ReadError> {
        match self.next_inside() {
            b'0'..=b'9' => {
                self.skip_digits();
                Ok(())
            }
            other => Err(unexpected(other, context)),
        }
    }

    fn skip_digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }
}

fn push_lossy(bytes: &[u8], text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for _ in chunk.invalid() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn integers_stay_apart_from_floats() {
        for (text, value) in [
            ("1", json!(1)),
            ("-0", json!(0)),
            ("1.0", json!(1.0)),
            ("1e2", json!(100.0)),
            ("9223372036854775807", json!(i64::MAX)),
            ("9223372036854775808", json!(9223372036854775808.0)),
            (" [ 1 , {\"a\" : null} ] \n", json!([1, {"a": null}])),
            (r#""\u00e9\ud83d\ude00\ud800x\/""#, json!("é😀\u{fffd}x/")),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap().value, value, "{text}");
        }
    }

    #[test]
    fn duplicates_are_seen_and_the_last_one_wins() {
        let document = read(br#"{"a":1,"s":{"l":[{"b":1,"b":2},{"b":1,"b":1,"b":3}]},"a":2}"#).unwrap();
        assert_eq!(document.duplicates, ["s.l[0].b", "s.l[1].b", "a"]);
        assert_eq!(document.value, json!({"a": 2, "s": {"l": [{"b": 2}, {"b": 3}]}}));
    }

    #[test]
    fn errors_read_as_in_go() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("[1", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("1e", "invalid character ' ' in exponent of numeric literal"),
            ("\"\\u1", "invalid character ' ' in \\u hexadecimal character escape"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("}", "invalid character '}' looking for beginning of value"),
            ("{\"a\":}", "invalid character '}' looking for beginning of value"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("01", "invalid character '1' after top-level value"),
            ("1 x", "invalid character 'x' after top-level value"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.a", "invalid character 'a' after decimal point in numeric literal"),
            ("1ea", "invalid character 'a' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("'", "invalid character '\\'' looking for beginning of value"),
            ("\u{e9}", "invalid character 'Ã' looking for beginning of value"),
            ("\x01", "invalid character '\\x01' looking for beginning of value"),
            ("[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), error, "{text}");
        }
        assert_eq!(
            read(&[b'['; 100_000]).unwrap_err().to_string(),
            "invalid character '[' exceeded max depth"
        );
    }

    #[test]
    fn what_is_not_utf8_becomes_a_replacement_for_each_byte() {
        assert_eq!(read(b"\"a\xff\xe2\x80b\"").unwrap().value, json!("a\u{fffd}\u{fffd}\u{fffd}b"));
    }
}
