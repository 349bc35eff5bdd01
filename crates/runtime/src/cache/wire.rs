//! Lists and watches as they are on the wire: requests out, events in, one line at a time.

use super::decoder::Identity;
use super::json_spans::line_end;
use crate::kind::Kind;
use futures::{AsyncBufRead, AsyncBufReadExt};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// No object is as long as this: a server refuses them at a tenth of it. What is longer is passed over.
const LONGEST_LINE: usize = 64 << 20;
/// A buffer that grew for one large object is not kept for all the small ones after it.
const USUAL_LINE: usize = 256 << 10;
/// Marks the bookmark that ends a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a watch says.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// An object was added or modified.
    Shown(Identity<'a>),
    /// An object was deleted.
    Deleted(Identity<'a>),
    /// Nothing else happened up to this version; and whether the list that began the watch ends here.
    Bookmark(u64, bool),
    /// The watch ends, with this code.
    Error(u16, String),
    /// It cannot be understood.
    Nonsense,
}

/// Reads one line of a watch.
///
/// # Errors
/// When it is no event.
pub(super) fn read_event(line: &[u8]) -> Result<Event<'_>, serde_json::Error> {
    if let Some(event) = usual_event(line) {
        return Ok(event);
    }
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        object: Object<'a>,
    }
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow, default)]
        metadata: Identity<'a>,
    }
    let Line { kind, object: Object { metadata } } = serde_json::from_slice(line)?;
    match &*kind {
        "ADDED" | "MODIFIED" => Ok(Event::Shown(metadata)),
        "DELETED" => Ok(Event::Deleted(metadata)),
        "BOOKMARK" => {
            let version = metadata.resource_version.parse().unwrap_or_default();
            Ok(Event::Bookmark(version, ends_list(line)))
        }
        "ERROR" => {
            let status = error_of(line);
            Ok(Event::Error(status.code, status.message))
        }
        other => Err(serde::de::Error::custom(format_args!("no watch has events of type {other:?}"))),
    }
}

/// An event about an object, written as servers do: with its type first. Only what it is about is looked at; whether the rest
/// is an object at all turns out if that is news.
fn usual_event(line: &[u8]) -> Option<Event<'_>> {
    const TYPE: &[u8] = b"{\"type\":\"";
    const OBJECT: &[u8] = b"\",\"object\":";
    let rest = line.strip_prefix(TYPE)?;
    let kind = ["ADDED", "MODIFIED", "DELETED"].into_iter().find(|kind| rest.starts_with(kind.as_bytes()))?;
    let object = rest[kind.len()..].strip_prefix(OBJECT)?;
    let identity = Identity::from_prefix(line, line.len() - object.len())?;
    Some(if kind == "DELETED" { Event::Deleted(identity) } else { Event::Shown(identity) })
}

fn ends_list(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Line {
        object: Object,
    }
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(default)]
        annotations: BTreeMap<String, String>,
    }
    serde_json::from_slice::<Line>(line)
        .is_ok_and(|line| line.object.metadata.annotations.contains_key(INITIAL_EVENTS_END))
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

fn error_of(line: &[u8]) -> Status {
    #[derive(Deserialize)]
    struct Line {
        object: Status,
    }
    serde_json::from_slice::<Line>(line).map(|line| line.object).unwrap_or_default()
}

/// The lines of a body, one at a time.
pub(super) struct Lines<B> {
    body: B,
    line: Vec<u8>,
}

/// One line, or why there is none.
pub(super) enum NextLine {
    /// It is in [`Lines::line`].
    Whole,
    /// It was too long to be kept.
    TooLong,
    /// There is no other; what came after the last end of a line is not one.
    End,
}

impl<B> Lines<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, line: Vec::new() }
    }

    /// The line that was read last.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }
}

impl<B: AsyncBufRead + Unpin> Lines<B> {
    /// Reads the next line.
    pub(super) async fn next(&mut self) -> std::io::Result<NextLine> {
        if self.line.capacity() > USUAL_LINE {
            self.line = Vec::new();
        }
        self.line.clear();
        let mut too_long = false;
        loop {
            let piece = self.body.fill_buf().await?;
            if piece.is_empty() {
                return Ok(NextLine::End);
            }
            let end = line_end(piece);
            let length = end.unwrap_or(piece.len());
            too_long |= self.line.len() + length > LONGEST_LINE;
            if too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(&piece[..length]);
            }
            let used = length + usize::from(end.is_some());
            self.body.consume_unpin(used);
            match end {
                Some(_) if too_long => return Ok(NextLine::TooLong),
                Some(_) if self.line.is_empty() => {}
                Some(_) => return Ok(NextLine::Whole),
                None => {}
            }
        }
    }
}

/// A page of a list, with its items unread.
#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) metadata: PageMeta,
    #[serde(default)]
    pub(super) items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMeta {
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default, rename = "continue")]
    pub(super) next: String,
}

/// A request for a collection, or for metadata alone.
pub(super) fn request(
    kind: &Kind,
    namespace: Option<&str>,
    query: &str,
    metadata: bool,
) -> Result<http::Request<Vec<u8>>, kube::Error> {
    let accept = match (metadata, query.starts_with("watch=true")) {
        (false, _) => "application/json",
        (true, true) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        (true, false) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    };
    http::Request::get(format!("{}?{query}", kind.collection_path(namespace)))
        .header(http::header::ACCEPT, accept)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}

/// Percent-encodes all but the unreserved characters.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_whole_however_they_come_and_a_torn_one_is_none() {
        let pieces: Vec<std::io::Result<&[u8]>> = vec![Ok(b"{\"a\""), Ok(b":1}\n\n{}"), Ok(b"\n{\"torn")];
        let body = futures::TryStreamExt::into_async_read(futures::stream::iter(pieces));
        let mut lines = Lines::new(body);
        for expected in [&b"{\"a\":1}"[..], b"{}"] {
            assert!(matches!(lines.next().await.unwrap(), NextLine::Whole));
            assert_eq!(lines.line(), expected);
        }
        assert!(matches!(lines.next().await.unwrap(), NextLine::End));
    }

    #[test]
    fn events_are_told_apart_and_nonsense_is_none() {
        let shown =
            br#"{"type":"ADDED","object":{"spec":{"metadata":1},"metadata":{"name":"a\u0062","uid":"u"}}}"#;
        assert!(matches!(read_event(shown).unwrap(), Event::Shown(identity) if identity.uid == "u"));
        let end = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert!(matches!(read_event(end).unwrap(), Event::Bookmark(7, true)));
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert!(matches!(read_event(gone).unwrap(), Event::Error(410, message) if message == "too old"));
        for nonsense in
            ["", "{}", "[]", "nul", r#"{"type":"ODD","object":{}}"#, r#"{"type":"ADDED","object":7}"#]
        {
            assert!(read_event(nonsense.as_bytes()).is_err(), "{nonsense}");
        }
    }
}
