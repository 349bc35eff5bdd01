//! How the objects of a built-in resource, and lists of them, are written as protobuf.

use super::Pieces;
use crate::facts::FACTS;
use bytes::Bytes;
use windlass_schema::proto;

pub(crate) const METADATA_ONLY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

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
