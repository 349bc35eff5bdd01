//! In which form a request sees objects: their kind and version, and what becomes of their stored bytes.

use super::shape::Shape;
use crate::protobuf;
use crate::read::Message;
use crate::read::Pieces;
use crate::status::Status;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use windlass_schema::json;
use windlass_schema::proto::frame_head;
use windlass_store::{Entry, Event, Form, Kind};

/// Makes the whole JSON of an object in another form than it is stored in.
pub type Transform = Arc<dyn Fn(&Entry) -> Bytes + Send + Sync>;

/// How one request, or any number of equal ones, sees the objects of a resource. Made once per resource and form.
#[derive(Clone)]
pub struct View {
    /// `"apiVersion":"v1","kind":"ConfigMap"`
    type_of_object: String,
    /// `"kind":"ConfigMapList","apiVersion":"v1"`
    type_of_list: String,
    typed_items: bool,
    /// What an object has with nothing in it, each field with a comma before it.
    blank: Arc<str>,
    transform: Option<(Form, Transform)>,
    /// What the encodings of events are called after, and their names once there is an event.
    name: String,
    lines: OnceLock<Lines>,
    /// Another form that was asked for, and its name if its bytes can be kept.
    shape: Option<(Option<Form>, Arc<dyn Shape>)>,
    /// Protobuf instead of JSON, and the name of that form.
    message: Option<(Form, Arc<Message>)>,
}

/// The names of the encodings of events.
#[derive(Clone)]
struct Lines {
    added: Form,
    modified: Form,
    deleted: Form,
    left: Form,
}

/// What a watch says of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Added,
    Modified,
    Deleted,
    /// It left the selection: a deletion of what it was before.
    Left,
}

impl View {
    /// Objects as they are stored, under this kind and version. In lists of built-in kinds the items do not say what
    /// they are (`typed_items` is false); those of custom resources do.
    pub fn stored(api_version: &str, kind: &str, list_kind: &str, typed_items: bool) -> Self {
        let name = format!("{api_version} {kind}");
        let [api_version, kind, list_kind] = [api_version, kind, list_kind].map(serde_json::Value::from);
        Self {
            type_of_object: format!(r#""apiVersion":{api_version},"kind":{kind}"#),
            type_of_list: format!(r#""kind":{list_kind},"apiVersion":{api_version}"#),
            typed_items,
            blank: Arc::default(),
            transform: None,
            name,
            lines: OnceLock::new(),
            shape: None,
            message: None,
        }
    }

    /// The same objects in another form.
    #[must_use]
    pub(crate) fn shaped(mut self, shape: Arc<dyn Shape>) -> Self {
        let name = match &self.transform {
            Some((form, _)) => form.name().to_owned(),
            None => self.type_of_object.clone(),
        };
        let form = shape.lasting().map(|shape| format!("{shape} of {name}"));
        if let Some(form) = &form {
            self.name.clone_from(form);
        }
        self.shape = Some((form.map(Form::new), shape));
        self
    }

    /// The same, in protobuf. No more may change after that.
    #[must_use]
    pub(crate) fn in_protobuf(mut self, message: Message) -> Self {
        let name = match (&self.shape, &self.transform) {
            (Some((Some(form), _)), _) | (None, Some((form, _))) => form.name(),
            _ => &self.type_of_object,
        };
        let form = format!("protobuf of {name}");
        self.name.clone_from(&form);
        self.message = Some((Form::new(form), Arc::new(message)));
        self
    }

    /// Objects as `transform` makes them. `name` tells this form from every other that the resource has or had: if the
    /// transform depends on a schema, it names the schema's generation.
    #[must_use]
    pub fn transformed(mut self, name: &str, transform: Transform) -> Self {
        self.transform = Some((Form::new(name), transform));
        name.clone_into(&mut self.name);
        self
    }

    /// Where an object with nothing in it has more than its type and metadata: those fields' JSON, each with a comma
    /// before it. Bookmarks have them.
    #[must_use]
    pub fn with_blank(mut self, fields: Arc<str>) -> Self {
        self.blank = fields;
        self
    }

    /// Do its lists spell out what those of built-in kinds leave out: what items are, and that there is no next page?
    pub(super) fn is_typed(&self) -> bool {
        self.typed_items && self.shape.is_none()
    }

    /// One object, as a get answers it.
    pub fn object(&self, entry: &Entry) -> Bytes {
        self.headed(entry, true)
    }

    /// One object; the first of a watch is `headed`.
    fn headed(&self, entry: &Entry, headed: bool) -> Bytes {
        match &self.message {
            None => self.as_json(entry, headed),
            Some((form, message)) => {
                entry.encoding(form, |entry| message.object(&self.as_json(entry, headed)))
            }
        }
    }

    fn as_json(&self, entry: &Entry, headed: bool) -> Bytes {
        match &self.shape {
            None => self.plain(entry),
            Some((Some(form), shape)) => {
                entry.encoding(form, |entry| shape.object(parsed(&self.plain(entry)), headed))
            }
            Some((None, shape)) => shape.object(parsed(&self.plain(entry)), headed),
        }
    }

    /// An object as it is, whatever form was asked for.
    fn plain(&self, entry: &Entry) -> Bytes {
        if let Some((form, transform)) = &self.transform {
            return entry.encoding(form, |entry| transform(entry));
        }
        let json = entry.json();
        let rest = entry.json_rest();
        let head = &json[1..json.len() - rest.len()];
        if head.strip_suffix(b",") == Some(self.type_of_object.as_bytes()) {
            return json;
        }
        let mut object = BytesMut::with_capacity(2 + self.type_of_object.len() + rest.len());
        self.put_object(&mut object, entry);
        object.freeze()
    }

    fn put_object(&self, into: &mut BytesMut, entry: &Entry) {
        if self.transform.is_some() {
            return into.extend_from_slice(&self.plain(entry));
        }
        into.put_u8(b'{');
        into.extend_from_slice(self.type_of_object.as_bytes());
        into.put_u8(b',');
        into.extend_from_slice(&entry.json_rest());
    }

    /// A list's body. `metadata` is the JSON of its metadata.
    pub(crate) fn list(&self, metadata: &str, items: &[Arc<Entry>]) -> Pieces {
        if let Some((_, message)) = &self.message {
            let items: Vec<Bytes> = items.iter().map(|entry| self.headed(entry, true)).collect();
            return message.list(metadata, &items);
        }
        if let Some((form, shape)) = &self.shape {
            let item = |entry: &Arc<Entry>| match form {
                Some(_) => self.headed(entry, false),
                None => shape.item(parsed(&self.plain(entry))),
            };
            return shape.list(metadata, &items.iter().map(item).collect::<Vec<_>>()).into();
        }
        // What comes between two items, and before the first: a comma, and what their stored form may lack.
        let between = match (self.transform.is_some(), self.typed_items) {
            (true, _) => Bytes::from_static(b","),
            (false, true) => Bytes::from(format!(",{{{},", self.type_of_object)),
            (false, false) => Bytes::from_static(b",{"),
        };
        let mut list = Pieces::default();
        list.push(format!("{{{},\"metadata\":{metadata},\"items\":[", self.type_of_list));
        for (number, item) in items.iter().enumerate() {
            list.push(between.slice(usize::from(number == 0)..));
            list.push(if self.transform.is_some() { self.plain(item) } else { item.json_rest() });
        }
        list.push(Bytes::from_static(b"]}"));
        list
    }

    /// An ADDED line for an object that was there when the watch began.
    pub(super) fn put_initial(&self, into: &mut BytesMut, entry: &Entry, headed: bool) {
        self.put_line(into, "ADDED", entry, headed);
    }

    /// The line for an event: made once for all who watch in this form.
    pub(super) fn line(&self, event: &Event, told: Told, headed: bool) -> Bytes {
        let make = |kind: &str, entry: &Entry| {
            let mut line = BytesMut::with_capacity(entry.json().len() + self.type_of_object.len() + 40);
            self.put_line(&mut line, kind, entry, headed);
            line.freeze()
        };
        let left = |event: &Event| {
            let before = event.before.as_ref().unwrap_or(&event.entry);
            make("DELETED", &before.at(event.revision()))
        };
        // What changes with time, or with who asked first, is made for each.
        if let Some((None, _)) = &self.shape {
            return match told {
                Told::Added => make("ADDED", &event.entry),
                Told::Modified => make("MODIFIED", &event.entry),
                Told::Deleted => make("DELETED", &event.entry),
                Told::Left => left(event),
            };
        }
        let lines = self.lines.get_or_init(|| Lines::new(&self.name));
        match told {
            Told::Added => event.encoding(&lines.added, |event| make("ADDED", &event.entry)),
            Told::Modified => event.encoding(&lines.modified, |event| make("MODIFIED", &event.entry)),
            Told::Deleted => event.encoding(&lines.deleted, |event| make("DELETED", &event.entry)),
            Told::Left => event.encoding(&lines.left, left),
        }
    }

    /// The line that tells this of an entry.
    pub(super) fn line_of(&self, told: Told, entry: &Entry, headed: bool) -> Bytes {
        let kind = match told {
            Told::Added => "ADDED",
            Told::Modified => "MODIFIED",
            Told::Deleted | Told::Left => "DELETED",
        };
        let mut line = BytesMut::new();
        self.put_line(&mut line, kind, entry, headed);
        line.freeze()
    }

    fn put_line(&self, into: &mut BytesMut, kind: &str, entry: &Entry, headed: bool) {
        if self.message.is_some() {
            let object = self.headed(entry, headed);
            into.extend_from_slice(&frame_head(kind, object.len()));
            return into.extend_from_slice(&object);
        }
        into.extend_from_slice(b"{\"type\":\"");
        into.extend_from_slice(kind.as_bytes());
        into.extend_from_slice(b"\",\"object\":");
        match self.shape {
            Some(_) => into.extend_from_slice(&self.headed(entry, headed)),
            None => self.put_object(into, entry),
        }
        into.extend_from_slice(b"}\n");
    }

    /// A BOOKMARK line.
    pub(super) fn bookmark(&self, version: u64, ends_initial_events: bool, headed: bool) -> Bytes {
        let annotations =
            if ends_initial_events { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        let types = &self.type_of_object;
        let metadata = format!(r#"{{"resourceVersion":"{version}"{annotations}}}"#);
        let object = Bytes::from(format!(r#"{{{types},"metadata":{metadata}{}}}"#, self.blank));
        let object = match &self.shape {
            Some((_, shape)) => shape.object(parsed(&object), headed),
            None => object,
        };
        match &self.message {
            Some((_, message)) => framed("BOOKMARK", &message.object(&object)),
            None => [b"{\"type\":\"BOOKMARK\",\"object\":", &*object, b"}\n"].concat().into(),
        }
    }

    /// An ERROR line.
    pub(super) fn error(&self, status: &Status) -> Bytes {
        match &self.message {
            Some(_) => framed("ERROR", &protobuf::encode(&status.to_bytes()).unwrap_or_default()),
            None => format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.to_value()).into(),
        }
    }
}

fn framed(event: &str, object: &[u8]) -> Bytes {
    [&*frame_head(event, object.len()), object].concat().into()
}

fn parsed(json: &[u8]) -> Value {
    json::read_own(json).expect("a view makes JSON")
}

impl Lines {
    fn new(name: &str) -> Self {
        let form = |told: &str| Form::new(format!("{told} {name}"));
        Self {
            added: form("added"),
            modified: form("modified"),
            deleted: form("deleted"),
            left: form("left"),
        }
    }
}

impl Told {
    /// What a watcher is told of an event, if it concerns what the watcher selects at all.
    pub(super) fn of(event: &Event, accepts: impl Fn(&Entry) -> bool) -> Option<Self> {
        let now = event.kind != Kind::Deleted && accepts(&event.entry);
        let before = event.before.as_ref().is_some_and(|before| accepts(before));
        match (before, now) {
            (false, false) => None,
            (false, true) => Some(Self::Added),
            (true, true) => Some(Self::Modified),
            (true, false) if event.kind == Kind::Deleted => Some(Self::Deleted),
            (true, false) => Some(Self::Left),
        }
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("type", &self.type_of_object)
            .field("form", &self.transform.as_ref().map(|(form, _)| form.name()))
            .finish()
    }
}
