//! How the objects of a store are held: whole while they are few; compressed when they are many, and read again when somebody
//! asks; and whole again where they are asked for by the crowd.
//!
//! Those that were read last stay decoded, and so do those that a list, or an owner of many, reads together: a scan would
//! decode all of them each time. Transformed objects are always held as their type, since they differ from the text they
//! were read from.

use super::compressed::Dictionary;
use super::memory_size::BESIDE;
use super::object::AnyObject;
use super::typed_decoder::TypedDecoder;
use crate::kind::Kind;
use parking_lot::{Mutex, RwLock};
use std::sync::{Arc, OnceLock};

/// A store of no more than these holds all of them whole: what is read often, by many, is in small stores.
pub(super) const FEW: usize = 256;
/// The number of objects that are held decoded: those that were read last.
const RECENT: usize = 128;

/// An object that is held.
#[derive(Debug, Clone)]
pub(super) enum Held {
    Whole { object: Arc<dyn AnyObject>, bytes: u32 },
    Compressed(Arc<CompressedObject>),
}

#[derive(Debug)]
pub(super) struct CompressedObject {
    text: Box<[u8]>,
    /// Once it was asked for among many, and about how many bytes that takes.
    whole: OnceLock<(Arc<dyn AnyObject>, u32)>,
}

impl Held {
    /// Whether both are the same one.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole { object, .. }, Self::Whole { object: other, .. }) => Arc::ptr_eq(object, other),
            (Self::Compressed(compressed), Self::Compressed(other)) => Arc::ptr_eq(compressed, other),
            _ => false,
        }
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Whole { bytes, .. } => u64::from(*bytes),
            Self::Compressed(compressed) => {
                let whole = compressed.whole.get().map_or(0, |(_, bytes)| u64::from(*bytes));
                whole + (BESIDE + size_of::<CompressedObject>() + compressed.text.len()) as u64
            }
        }
    }
}

/// What the objects of a store have in common, and those that were read last.
pub(super) struct DecodedLru {
    kind: Kind,
    pub(super) reads: Arc<dyn TypedDecoder>,
    dictionary: RwLock<Dictionary>,
    /// By where the compressed is.
    recent: Mutex<Vec<Option<Recent>>>,
}

type Recent = (Arc<CompressedObject>, Arc<dyn AnyObject>);

impl std::fmt::Debug for DecodedLru {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.dictionary.read())
    }
}

impl DecodedLru {
    pub(super) fn new(kind: Kind, reads: Arc<dyn TypedDecoder>) -> Self {
        Self { kind, reads, dictionary: RwLock::default(), recent: Mutex::default() }
    }

    /// Holds an object as it is.
    pub(super) fn whole(&self, object: Arc<dyn AnyObject>) -> Held {
        let bytes = self.reads.memory_size(&*object);
        Held::Whole { object, bytes }
    }

    /// Holds an object compressed, if that is shorter. `text` must be what it was read from.
    pub(super) fn compress(&self, object: Arc<dyn AnyObject>, text: &[u8]) -> Held {
        let compressed = self.dictionary.write().compress(text);
        let is_shorter = |compressed: &[u8]| {
            compressed.len() < self.reads.size()
                || compressed.len() < self.reads.memory_size(&*object) as usize
        };
        match compressed {
            Some(compressed) if is_shorter(&compressed) => {
                let compressed = Arc::new(CompressedObject { text: compressed, whole: OnceLock::new() });
                self.remember(&compressed, &object);
                Held::Compressed(compressed)
            }
            _ => self.whole(object),
        }
    }

    /// An object that is held.
    pub(super) fn object(&self, held: &Held) -> Option<Arc<dyn AnyObject>> {
        let compressed = match held {
            Held::Whole { object, .. } => return Some(object.clone()),
            Held::Compressed(compressed) => compressed,
        };
        let whole = compressed.whole.get().map(|(object, _)| object.clone());
        if let Some(object) = whole.or_else(|| self.recent(compressed)) {
            return Some(object);
        }
        let object = self.decompress(compressed)?;
        self.remember(compressed, &object);
        Some(object)
    }

    /// An object that is held, asked for with many others: as it is likely to be again, it is held whole from now on.
    pub(super) fn object_of_many(&self, held: &Held) -> Option<Arc<dyn AnyObject>> {
        let object = self.object(held)?;
        Some(match held {
            Held::Compressed(compressed) => {
                let whole = compressed.whole.get_or_init(|| {
                    let bytes = self.reads.memory_size(&*object);
                    (object, bytes)
                });
                whole.0.clone()
            }
            Held::Whole { .. } => object,
        })
    }

    fn decompress(&self, compressed: &CompressedObject) -> Option<Arc<dyn AnyObject>> {
        let text = self.dictionary.read().decompress(&compressed.text);
        let object = text.and_then(|text| self.reads.read_again(&text).ok());
        if object.is_none() {
            // The same text was read before, so this is a fault of ours, or of the type's.
            tracing::error!(kind = %self.kind, "an object that is held cannot be read again");
        }
        object
    }

    fn recent(&self, compressed: &Arc<CompressedObject>) -> Option<Arc<dyn AnyObject>> {
        let recent = self.recent.lock();
        let (known, object) = recent.get(place(compressed))?.as_ref()?;
        Arc::ptr_eq(known, compressed).then(|| object.clone())
    }

    fn remember(&self, compressed: &Arc<CompressedObject>, object: &Arc<dyn AnyObject>) {
        let mut recent = self.recent.lock();
        if recent.is_empty() {
            recent.resize_with(RECENT, || None);
        }
        recent[place(compressed)] = Some((compressed.clone(), object.clone()));
    }
}

/// Allocations are some sixty bytes apart.
fn place(compressed: &Arc<CompressedObject>) -> usize {
    let address = Arc::as_ptr(compressed).addr() as u64;
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % RECENT
}
