//! Forms in which clients may ask for objects other than as they are: metadata alone, or rows of a table.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};
use windlass_schema::json;

/// Another form of objects and lists.
pub(crate) trait Shape: Send + Sync {
    /// A name for this form if it depends on nothing but the object: it is then made once and kept.
    fn lasting(&self) -> Option<&str>;

    /// An object as one of a list.
    fn item(&self, object: Value) -> Bytes;

    /// One object. A watch's first is `headed`: it says what all have in common.
    fn object(&self, object: Value, headed: bool) -> Bytes;

    /// A list with this metadata, of what [`Self::item`] made.
    fn list(&self, metadata: &str, items: &[Bytes]) -> Bytes;
}

/// Items with commas between them.
pub(crate) fn joined(items: &[Bytes]) -> BytesMut {
    let mut all = BytesMut::with_capacity(items.iter().map(|item| item.len() + 1).sum());
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            all.extend_from_slice(b",");
        }
        all.extend_from_slice(item);
    }
    all
}

/// Objects by their metadata alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetadataOnly {
    /// `meta.k8s.io/v1`
    pub(crate) api_version: &'static str,
}

/// An object's metadata, as an object of its own.
pub(crate) fn metadata_of(mut object: Value, api_version: &str) -> Value {
    let metadata = object.get_mut("metadata").map(Value::take);
    let metadata = metadata.filter(Value::is_object).unwrap_or_else(|| Map::new().into());
    let fields = [
        ("kind", Value::from("PartialObjectMetadata")),
        ("apiVersion", api_version.into()),
        ("metadata", metadata),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

impl Shape for MetadataOnly {
    fn lasting(&self) -> Option<&str> {
        Some(self.api_version)
    }

    fn item(&self, object: Value) -> Bytes {
        json::write(&metadata_of(object, self.api_version)).into()
    }

    fn object(&self, object: Value, _: bool) -> Bytes {
        self.item(object)
    }

    fn list(&self, metadata: &str, items: &[Bytes]) -> Bytes {
        let head = format!(
            r#"{{"kind":"PartialObjectMetadataList","apiVersion":"{}","metadata":{metadata},"items":["#,
            self.api_version
        );
        [head.as_bytes(), &joined(items), b"]}"].concat().into()
    }
}
