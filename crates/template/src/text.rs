//! Go's strings: bytes that are usually, but not always, UTF-8.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// A string as Go has it. `trunc` may cut a character apart and `b64dec` may answer with any bytes, so it is not a `str`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoStr(Rc<[u8]>);

impl GoStr {
    /// The text, with the replacement character for each byte that is not UTF-8, as Go's loops over characters see it.
    #[must_use]
    pub fn lossy(&self) -> Cow<'_, str> {
        lossy(&self.0)
    }
}

/// Bytes as text: like Go, one replacement character for every byte that belongs to no character.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(std::iter::repeat_n('\u{fffd}', chunk.invalid().len()));
    }
    Cow::Owned(out)
}

impl Deref for GoStr {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for GoStr {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for GoStr {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for GoStr {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<Cow<'_, str>> for GoStr {
    fn from(text: Cow<'_, str>) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<&[u8]> for GoStr {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for GoStr {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for GoStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.lossy(), f)
    }
}
