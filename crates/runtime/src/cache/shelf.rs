//! How the objects of a store are held: whole while they are few; folded when they are many, and read again when somebody
//! asks; and whole again where they are asked for by the crowd.

use super::fold::Pattern;
use super::object::fold_fields;
use super::weigh::{BESIDE, weigh};
use crate::kind::{Cached, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, TypeMeta};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// A store of no more than these holds all of them whole: what is read often, by many, is in small stores.
pub(super) const FEW: usize = 256;
/// So many that were read last are there without being read again.
const RECENT: usize = 128;

/// An object that is held.
#[derive(Debug)]
pub(super) enum Held<K> {
    Whole { object: Arc<K>, bytes: u32 },
    Folded(Arc<Fold<K>>),
}

#[derive(Debug)]
pub(super) struct Fold<K> {
    text: Box<[u8]>,
    /// Once it was asked for among many, and about how many bytes that takes.
    whole: OnceLock<(Arc<K>, u32)>,
}

impl<K> Clone for Held<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Whole { object, bytes } => Self::Whole { object: object.clone(), bytes: *bytes },
            Self::Folded(fold) => Self::Folded(fold.clone()),
        }
    }
}

impl<K: Cached> Held<K> {
    pub(super) fn whole(object: K) -> Self {
        let bytes = weigh(&object);
        Self::Whole { object: Arc::new(object), bytes }
    }

    /// Whether both are the same one.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole { object, .. }, Self::Whole { object: other, .. }) => Arc::ptr_eq(object, other),
            (Self::Folded(fold), Self::Folded(other)) => Arc::ptr_eq(fold, other),
            _ => false,
        }
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Whole { bytes, .. } => u64::from(*bytes),
            Self::Folded(fold) => {
                let whole = fold.whole.get().map_or(0, |(_, bytes)| u64::from(*bytes));
                whole + (BESIDE + size_of::<Fold<K>>() + fold.text.len()) as u64
            }
        }
    }
}

/// What the objects of a store have in common, and those that were read last.
pub(super) struct Shelf<K> {
    pub(super) kind: Kind,
    pattern: RwLock<Pattern>,
    /// By where the fold is.
    recent: Mutex<Vec<Option<Recent<K>>>>,
}

type Recent<K> = (Arc<Fold<K>>, Arc<K>);

impl<K> std::fmt::Debug for Shelf<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.pattern.read())
    }
}

impl<K: Cached> Shelf<K> {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, pattern: RwLock::default(), recent: Mutex::default() }
    }

    /// Holds an object folded, if that is shorter. `text` must be what it was read from.
    pub(super) fn fold(&self, object: K, text: &[u8]) -> Held<K> {
        let folded = self.pattern.write().fold(text);
        match folded {
            Some(folded) if folded.len() < size_of::<K>() || folded.len() < weigh(&object) as usize => {
                let fold = Arc::new(Fold { text: folded, whole: OnceLock::new() });
                self.remember(&fold, &Arc::new(object));
                Held::Folded(fold)
            }
            _ => Held::whole(object),
        }
    }

    /// An object that is held.
    pub(super) fn object(&self, held: &Held<K>) -> Option<Arc<K>> {
        let fold = match held {
            Held::Whole { object, .. } => return Some(object.clone()),
            Held::Folded(fold) => fold,
        };
        let whole = fold.whole.get().map(|(object, _)| object.clone());
        if let Some(object) = whole.or_else(|| self.recent(fold)) {
            return Some(object);
        }
        let object = Arc::new(self.unfold(fold)?);
        self.remember(fold, &object);
        Some(object)
    }

    /// An object that is held, asked for with many others: as it is likely to be again, it is held whole from now on.
    pub(super) fn object_of_many(&self, held: &Held<K>) -> Option<Arc<K>> {
        let object = self.object(held)?;
        Some(match held {
            Held::Folded(fold) => {
                let whole = fold.whole.get_or_init(|| {
                    let bytes = weigh(&*object);
                    (object, bytes)
                });
                whole.0.clone()
            }
            Held::Whole { .. } => object,
        })
    }

    fn unfold(&self, fold: &Fold<K>) -> Option<K> {
        let text = self.pattern.read().unfold(&fold.text);
        let object = text.and_then(|text| self.read(&text).ok());
        if object.is_none() {
            // The same text was read before, so this is a fault of ours, or of the type's.
            tracing::error!(kind = %self.kind, "an object that is held cannot be read again");
        }
        object
    }

    /// The object in a text.
    pub(super) fn read(&self, text: &[u8]) -> Result<K, serde_json::Error> {
        let mut object: K = match std::str::from_utf8(text) {
            _ if K::metadata_api() => metadata_in(text)?,
            // Known to be a text, none of its parts is checked for that.
            Ok(text) => serde_json::from_str(text)?,
            Err(_) => serde_json::from_slice(text)?,
        };
        let meta = object.meta_mut();
        // Lists are read with room for four; most have one.
        meta.managed_fields.iter_mut().for_each(Vec::shrink_to_fit);
        meta.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
        meta.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
        fold_fields(meta);
        if let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>()
            && dynamic.types.is_none()
        {
            // In lists of built-in kinds it is said only once.
            let (api_version, kind) = (self.kind.api_version(), self.kind.kind.clone());
            dynamic.types = Some(TypeMeta { api_version, kind });
        }
        Ok(object)
    }

    fn recent(&self, fold: &Arc<Fold<K>>) -> Option<Arc<K>> {
        let recent = self.recent.lock();
        let (known, object) = recent.get(place(fold))?.as_ref()?;
        Arc::ptr_eq(known, fold).then(|| object.clone())
    }

    fn remember(&self, fold: &Arc<Fold<K>>, object: &Arc<K>) {
        let mut recent = self.recent.lock();
        if recent.is_empty() {
            recent.resize_with(RECENT, || None);
        }
        recent[place(fold)] = Some((fold.clone(), object.clone()));
    }
}

/// Allocations are some sixty bytes apart.
fn place<K>(fold: &Arc<Fold<K>>) -> usize {
    let address = Arc::as_ptr(fold).addr() as u64;
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % RECENT
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
