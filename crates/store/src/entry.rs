//! One version of one object, and one change from one version to the next: made once, shared by everyone.

use super::body::{Body, Text, Traits};
use super::key::{Key, Revision};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use windlass_clock::Moment;
use windlass_schema::json;

/// One version of one object.
#[derive(Debug)]
pub struct Entry {
    key: Key,
    revision: Revision,
    traits: Arc<Traits>,
    /// Holds this version's number once someone asked for the JSON.
    text: Mutex<(Text, bool)>,
    slots: Slots,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It was not there before.
    Created,
    /// It was there before, in another form.
    Updated,
    /// It is no longer there.
    Deleted,
}

/// One change in the store's history.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// The object after the change; if it was deleted, its last form at the deletion's revision.
    pub entry: Arc<Entry>,
    /// The object before the change.
    pub before: Option<Arc<Entry>>,
    /// When it happened, on the store's clock.
    pub at: Moment,
    /// About how much memory goes when history forgets it: what it replaced, and the last form of what was deleted.
    pub(super) cost: usize,
    slots: Slots,
}

/// The name of an encoding: version, media type and transform. Whoever makes encodings chooses names such that equal
/// names mean equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Form(Arc<str>);

/// Encodings of one thing, each made when first asked for.
#[derive(Debug, Default)]
struct Slots(Mutex<Kept>);

#[derive(Debug)]
enum Kept {
    These(Vec<(Form, Made)>),
    /// None any more: hardly anybody asks for what is long past.
    None,
}

/// What a slot holds.
#[derive(Debug, Clone)]
enum Made {
    Bytes(Bytes),
    Entry(Arc<Entry>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

/// How many encodings are kept of one thing. Few forms are asked for at one time; one more than this pushes the oldest
/// out, so that a client which invents forms takes no memory.
const SLOTS: usize = 8;

// === impl Form ===

impl Form {
    /// The form of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

// === impl Slots ===

impl Slots {
    /// Made outside the lock: two may make the same bytes at once, and the first one's are kept.
    fn get(&self, form: &Form, make: impl FnOnce() -> Bytes) -> Bytes {
        if let Some(Made::Bytes(bytes)) = self.0.lock().find(form) {
            return bytes;
        }
        let made = make();
        match self.put(form, Made::Bytes(made.clone())) {
            Made::Bytes(kept) => kept,
            Made::Entry(_) => made,
        }
    }

    /// Keeps it, unless there is one of this form already; returns which is kept.
    fn put(&self, form: &Form, made: Made) -> Made {
        let mut kept = self.0.lock();
        if let Some(known) = kept.find(form) {
            return known;
        }
        if let Kept::These(slots) = &mut *kept {
            if slots.len() >= SLOTS {
                slots.remove(0);
            }
            slots.push((form.clone(), made.clone()));
        }
        made
    }

    /// Lets go of all of them, and keeps none from now on.
    fn retire(&self) {
        let kept = std::mem::replace(&mut *self.0.lock(), Kept::None);
        drop(kept);
    }
}

impl Kept {
    fn find(&self, form: &Form) -> Option<Made> {
        match self {
            Self::These(slots) => slots.iter().find(|(known, _)| known == form).map(|(_, made)| made.clone()),
            Self::None => None,
        }
    }
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(key: Key, revision: Revision, body: Body) -> Self {
        let Body { text, traits } = body;
        Self { key, revision, traits, text: Mutex::new((text, false)), slots: Slots::default() }
    }

    /// The same object at another revision: what a watcher is shown of an object that left its selection.
    pub fn at(&self, revision: Revision) -> Self {
        let text = self.text.lock().0.clone();
        Self {
            key: self.key.clone(),
            revision,
            traits: self.traits.clone(),
            text: Mutex::new((text, false)),
            slots: Slots::default(),
        }
    }

    /// Which object it is a version of.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Which version it is.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        &self.traits.uid
    }

    /// `metadata.labels`, sorted by name.
    pub fn labels(&self) -> &[(Box<str>, Box<str>)] {
        &self.traits.labels
    }

    /// One label's value.
    pub fn label(&self, name: &str) -> Option<&str> {
        find(&self.traits.labels, name)
    }

    /// The selectable fields besides `metadata.name` and `metadata.namespace`, sorted by name.
    pub fn fields(&self) -> &[(Box<str>, Box<str>)] {
        &self.traits.fields
    }

    /// One selectable field's value, `metadata.name` and `metadata.namespace` included.
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(&self.key.name),
            "metadata.namespace" => Some(&self.key.namespace),
            _ => find(&self.traits.fields, name),
        }
    }

    /// The object as JSON, with its resourceVersion.
    pub fn json(&self) -> Bytes {
        let mut text = self.text.lock();
        if !text.1 {
            text.0.put(self.revision.0);
            text.1 = true;
        }
        text.0.bytes().clone()
    }

    /// The object as JSON with its resourceVersion, from after the opening brace, `apiVersion` and `kind`: to be put
    /// behind those of another version.
    pub fn json_rest(&self) -> Bytes {
        self.json();
        self.text.lock().0.rest()
    }

    /// The object parsed, with its resourceVersion.
    pub fn value(&self) -> Value {
        json::read_own(&self.json()).expect("an entry holds what was encoded from a JSON value")
    }

    /// The object in `form`, made by `make` when first asked for and shared after that.
    pub fn encoding(&self, form: &Form, make: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.slots.get(form, || make(self))
    }

    /// The same version of the object as `body` has it: in another version of its API. To be kept by [`Entry::keep`].
    pub fn converted(&self, body: Body) -> Self {
        Self::new(self.key.clone(), self.revision, body)
    }

    /// What was kept in this form, if it still is.
    pub fn kept(&self, form: &Form) -> Option<Arc<Self>> {
        match self.slots.0.lock().find(form)? {
            Made::Entry(entry) => Some(entry),
            Made::Bytes(_) => None,
        }
    }

    /// Keeps what it was converted to, in this form, beside the encodings and in their number; returns what others kept first.
    pub fn keep(&self, form: &Form, converted: Arc<Self>) -> Arc<Self> {
        match self.slots.put(form, Made::Entry(converted.clone())) {
            Made::Entry(kept) => kept,
            Made::Bytes(_) => converted,
        }
    }

    pub(super) fn same(&self, body: &Body) -> bool {
        self.text.lock().0.same(&body.text) && *self.traits == *body.traits
    }

    /// The mark of what was written beside it unseen.
    pub(super) fn unseen(&self) -> u64 {
        self.traits.unseen
    }

    pub(super) fn with_text<T>(&self, read: impl FnOnce(&Text) -> T) -> T {
        read(&self.text.lock().0)
    }

    pub(super) fn size(&self) -> usize {
        self.text.lock().0.bytes().len()
    }
}

fn find<'a>(pairs: &'a [(Box<str>, Box<str>)], name: &str) -> Option<&'a str> {
    let at = pairs.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
    Some(&pairs[at].1)
}

// === impl Event ===

impl Event {
    pub(super) fn new(kind: Kind, entry: Arc<Entry>, before: Option<Arc<Entry>>, at: Moment) -> Self {
        const OVERHEAD: usize = 256;
        let last = if kind == Kind::Deleted { entry.size() } else { 0 };
        let cost = OVERHEAD + last + before.as_ref().map_or(0, |before| before.size());
        Self { kind, entry, before, at, cost, slots: Slots::default() }
    }

    /// The revision that the change made.
    pub fn revision(&self) -> Revision {
        self.entry.revision
    }

    /// The event in `form`, made by `make` when first asked for and shared after that, while it is fresh.
    pub fn encoding(&self, form: &Form, make: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.slots.get(form, || make(self))
    }

    /// Most who watch have passed it: its encodings, and those of what it replaced, would only take memory until history
    /// forgets it. Who still asks has one made.
    pub(super) fn retire(&self) {
        self.slots.retire();
        if let Some(before) = &self.before {
            before.slots.retire();
        }
    }
}
