//! Objects of the built-in kinds as protobuf, by the facts of their types.

use crate::facts::FACTS;
use crate::flow::decode;
use crate::pieces::Pieces;
use crate::typed;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use windlass_schema::proto;
pub use windlass_schema::proto::ProtoError;

pub(crate) const METADATA_ONLY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// What every document says of itself.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Type<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// The JSON of an object, a list or a document of a built-in kind as protobuf, in its envelope.
///
/// # Errors
/// It is no JSON, or of a kind that has no protobuf form.
pub fn encode(json: &[u8]) -> Result<Vec<u8>, ProtoError> {
    let named: Type<'_> = serde_json::from_slice(json).map_err(|error| ProtoError(error.to_string()))?;
    let unknown = || ProtoError(format!("{} of {:?} has no protobuf form", named.kind, named.api_version));
    let definition = FACTS.struct_of(&named.api_version, &named.kind).ok_or_else(unknown)?;
    let value = serde_json::from_slice(json).map_err(|error| ProtoError(error.to_string()))?;
    // Only what Go has read is in the one form that is written: an amount may also be a number.
    let value = typed::convert(&FACTS.structs, &definition, value, "", &mut Vec::new())
        .map_err(|failure| ProtoError(failure.0))?;
    let json = value.to_string();
    proto::encode(&FACTS.structs, &definition, &named.api_version, &named.kind, json.as_bytes())
}

/// Protobuf in its envelope as the JSON of the same object of a built-in kind.
///
/// # Errors
/// It is no envelope, or its content no message of the kind that it names.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtoError> {
    let envelope = proto::open(bytes)?;
    let unknown =
        || ProtoError(format!("{} of {:?} is no built-in kind", envelope.kind, envelope.api_version));
    let definition = FACTS.struct_of(&envelope.api_version, &envelope.kind).ok_or_else(unknown)?;
    let value = decode::protobuf(&envelope, &definition)?;
    typed::convert(&FACTS.structs, &definition, value, "", &mut Vec::new())
        .map_err(|failure| ProtoError(failure.0))
}

/// How the objects of a resource are written.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The struct.
    pub(crate) definition: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
}

impl Message {
    /// One object, from its JSON. What is stored was read by the same facts, and so it can be written by them.
    pub(crate) fn object(&self, json: &[u8]) -> Bytes {
        let sealed = proto::encode(&FACTS.structs, &self.definition, &self.api_version, &self.kind, json);
        debug_assert!(sealed.is_ok(), "{sealed:?}");
        sealed.unwrap_or_default().into()
    }

    /// A list of what [`Self::object`] made; `metadata` is JSON.
    pub(crate) fn list(&self, metadata: &str, items: &[Bytes]) -> Pieces {
        let inner =
            |item: &Bytes| proto::open(item).map_or_else(|_| Bytes::new(), |it| item.slice_ref(it.raw));
        let items: Vec<Bytes> = items.iter().map(inner).collect();
        let named = (&*self.api_version, &*self.list_kind);
        let sizes = items.iter().map(Bytes::len);
        let ends = proto::list_ends(&FACTS.structs, named, (LIST_META, metadata), sizes);
        debug_assert!(ends.is_ok(), "{ends:?}");
        let (head, tail) = ends.unwrap_or_default();
        let mut list = Pieces::default();
        list.push(head);
        for item in items {
            list.push(proto::item_head(item.len()));
            list.push(item);
        }
        list.push(tail);
        list
    }
}
