//! One change, or one object of a snapshot, as bytes. What selectors ask for is written beside the JSON, so that nothing is
//! parsed when a store is opened.

use super::bytes::{Reader, put_bytes, put_number};
use crate::body::{Body, Pairs, Text, Traits};
use crate::entry::{Entry, Event, Kind};
use crate::key::{Key, Revision};
use std::collections::HashSet;
use std::sync::Arc;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// What a record says.
#[derive(Debug)]
pub(super) enum Record {
    /// The object is this.
    Put(Entry),
    /// The object is gone, since this revision.
    Delete(Key, Revision),
}

/// Texts that many keys have in common: resources and namespaces, each held once.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.0.insert(name.clone());
        name
    }
}

/// Appends what `event` did.
pub(super) fn append_event(out: &mut Vec<u8>, event: &Event) {
    if event.kind == Kind::Deleted {
        out.push(DELETE);
        append_key(out, event.entry.key());
        put_number(out, event.revision().0);
    } else {
        append_entry(out, &event.entry);
    }
}

/// Appends an object as it is.
pub(super) fn append_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.push(PUT);
    append_key(out, entry.key());
    put_number(out, entry.revision().0);
    put_bytes(out, entry.uid().as_bytes());
    append_pairs(out, entry.labels());
    append_pairs(out, entry.fields());
    put_number(out, entry.unseen());
    entry.with_text(|text| {
        let (rest, at, comma) = text.layout();
        put_number(out, rest as u64);
        put_number(out, at as u64);
        out.push(comma);
        let (before, after) = text.parts();
        put_number(out, (before.len() + after.len()) as u64);
        out.extend_from_slice(before);
        out.extend_from_slice(after);
    });
}

fn append_key(out: &mut Vec<u8>, key: &Key) {
    for part in [&key.resource, &key.namespace, &key.name] {
        put_bytes(out, part.as_bytes());
    }
}

fn append_pairs(out: &mut Vec<u8>, pairs: &[(Box<str>, Box<str>)]) {
    put_number(out, pairs.len() as u64);
    for (name, value) in pairs {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

/// The next record; `None` if there is none that makes sense.
pub(super) fn read(reader: &mut Reader<'_>, names: &mut Names) -> Option<Record> {
    let tag = reader.byte()?;
    let key = Key {
        resource: names.shared(reader.text()?),
        namespace: names.shared(reader.text()?),
        name: reader.text()?.into(),
    };
    let revision = Revision(reader.number()?);
    match tag {
        PUT => Some(Record::Put(Entry::new(key, revision, read_body(reader)?))),
        DELETE => Some(Record::Delete(key, revision)),
        _ => None,
    }
}

fn read_body(reader: &mut Reader<'_>) -> Option<Body> {
    let uid = reader.text()?.into();
    let labels = read_pairs(reader)?;
    let fields = read_pairs(reader)?;
    let unseen = reader.number()?;
    let (rest, at, comma) = (reader.size()?, reader.size()?, reader.byte()?);
    let text = Text::restored(reader.bytes()?, rest, at, comma)?;
    Some(Body { text, traits: Arc::new(Traits { uid, labels, fields, unseen }) })
}

fn read_pairs(reader: &mut Reader<'_>) -> Option<Pairs> {
    let count = reader.size()?;
    // Not allocated beforehand: the count may be anything.
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push((reader.text()?.into(), reader.text()?.into()));
    }
    Some(pairs.into())
}
