//! What depends on the Rust type of a store's objects: reading them, changing them before they are held, and measuring them. All
//! else of a store knows no type, and is compiled once.

use super::decoder::{Transforms, Unreadable, Wants};
use super::memory_size::memory_size;
use super::object::{AnyObject, fold_fields};
use crate::key::Key;
use crate::kind::{Cached, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, TypeMeta};
use serde::Deserialize;
use std::any::{Any, TypeId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Reads the objects of one type.
pub(super) trait TypedDecoder: Send + Sync {
    /// The object in a text, as it is to be held.
    fn read(&self, text: &[u8], key: &Key, wants: &Wants) -> Result<Arc<dyn AnyObject>, Unreadable>;
    /// The object in a text that was read before, and was not changed.
    fn read_again(&self, text: &[u8]) -> Result<Arc<dyn AnyObject>, serde_json::Error>;
    /// Whether objects are changed before they are held.
    fn changes(&self) -> bool;
    /// About how many bytes an object takes.
    fn memory_size(&self, object: &dyn AnyObject) -> u32;
    /// How many of them are its struct's.
    fn size(&self) -> usize;
    /// The type.
    fn of(&self) -> TypeId;
}

pub(super) struct OfType<K> {
    pub(super) kind: Kind,
    pub(super) transforms: Transforms<K>,
}

impl<K: Cached> TypedDecoder for OfType<K> {
    fn read(&self, text: &[u8], key: &Key, wants: &Wants) -> Result<Arc<dyn AnyObject>, Unreadable> {
        let (kind, name) = (|| self.kind.kind.to_string(), || key.to_string());
        let mut object =
            self.parse(text).map_err(|source| Unreadable::Type { kind: kind(), name: name(), source })?;
        wants.trim(object.meta_mut());
        for transform in self.transforms.read().iter() {
            catch_unwind(AssertUnwindSafe(|| transform(&mut object)))
                .map_err(|_| Unreadable::Transform { kind: kind(), name: name() })?;
        }
        Ok(Arc::new(object))
    }

    fn read_again(&self, text: &[u8]) -> Result<Arc<dyn AnyObject>, serde_json::Error> {
        Ok(Arc::new(self.parse(text)?))
    }

    fn changes(&self) -> bool {
        !self.transforms.read().is_empty()
    }

    fn memory_size(&self, object: &dyn AnyObject) -> u32 {
        object.as_any().downcast_ref::<K>().map_or(0, memory_size)
    }

    fn size(&self) -> usize {
        size_of::<K>()
    }

    fn of(&self) -> TypeId {
        TypeId::of::<K>()
    }
}

impl<K: Cached> OfType<K> {
    fn parse(&self, text: &[u8]) -> Result<K, serde_json::Error> {
        let mut object: K = match std::str::from_utf8(text) {
            _ if K::metadata_api() => metadata_in(text)?,
            // Known to be a text, none of its parts is checked for that.
            Ok(text) => serde_json::from_str(text)?,
            Err(_) => serde_json::from_slice(text)?,
        };
        tidy(object.meta_mut());
        if let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>()
            && dynamic.types.is_none()
        {
            // In lists of built-in kinds it is said only once.
            let (api_version, kind) = (self.kind.api_version(), self.kind.kind.to_string());
            dynamic.types = Some(TypeMeta { api_version, kind });
        }
        Ok(object)
    }
}

fn tidy(meta: &mut ObjectMeta) {
    // Lists are read with room for four; most have one.
    meta.managed_fields.iter_mut().for_each(Vec::shrink_to_fit);
    meta.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
    meta.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
    fold_fields(meta);
}

/// Without `apiVersion` and `kind`, which say only that it is metadata.
fn metadata_in<K: Cached>(text: &[u8]) -> Result<K, serde_json::Error> {
    #[derive(Deserialize)]
    struct Partial {
        metadata: ObjectMeta,
    }
    let partial: Partial = serde_json::from_slice(text)?;
    let mut object: K = serde_json::from_str("{}")?;
    *object.meta_mut() = partial.metadata;
    Ok(object)
}
