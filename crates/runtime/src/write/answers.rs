//! What the server answers, and the doubt until it does.

use super::Writer;
use crate::cache::{ObjectVersion, members, value_of};
use crate::key::Key;
use crate::kind::Kind;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use kube::core::Status;
use kube::core::response::StatusDetails;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// An object that the server answered with. It is there as text, and read only as far as somebody asks.
pub(crate) struct Answer {
    pub(crate) text: Bytes,
    /// Which object it is and how new, if it says so.
    pub(super) object_version: Option<ObjectVersion>,
    /// Whether it says that the object is no more: the last finalizer is gone, or nothing held it.
    pub(super) gone: bool,
    object: OnceLock<Value>,
}

impl Answer {
    fn read(text: Bytes) -> Result<Self, kube::Error> {
        if let Some(object_version) = living(&text) {
            return Ok(Self {
                object_version: Some(object_version),
                gone: false,
                text,
                object: OnceLock::new(),
            });
        }
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default)]
            kind: Cow<'a, str>,
            #[serde(borrow, default)]
            metadata: Meta<'a>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Meta<'a> {
            #[serde(borrow)]
            uid: Option<Cow<'a, str>>,
            #[serde(borrow)]
            resource_version: Option<Cow<'a, str>>,
            deletion_timestamp: Option<IgnoredAny>,
            deletion_grace_period_seconds: Option<i64>,
            finalizers: Option<Vec<IgnoredAny>>,
        }
        let Head { kind, metadata } = serde_json::from_slice(&text).map_err(kube::Error::SerdeError)?;
        let version = metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        let object_version =
            metadata.uid.zip(version).map(|(uid, version)| ObjectVersion { uid: Arc::from(&*uid), version });
        let held = metadata.finalizers.is_some_and(|finalizers| !finalizers.is_empty());
        let lingers = metadata.deletion_grace_period_seconds.unwrap_or_default() > 0;
        let gone = kind == "Status" || (metadata.deletion_timestamp.is_some() && !held && !lingers);
        let namespace = kind == "Namespace";
        let mut answer = Self { object_version, gone, text, object: OnceLock::new() };
        if gone && namespace {
            // Namespaces have finalizers of two sorts.
            let others = answer.object().pointer("/spec/finalizers").and_then(Value::as_array);
            answer.gone = others.is_none_or(Vec::is_empty);
        }
        Ok(answer)
    }

    /// Whether it says that the object is being deleted.
    pub(super) fn is_terminating(&self) -> bool {
        self.object().pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
    }

    /// The whole of it.
    pub(super) fn object(&self) -> &Value {
        // What is not JSON, though it began like it, is nothing.
        self.object.get_or_init(|| serde_json::from_slice(&self.text).unwrap_or_default())
    }

    pub(super) fn into_object(self) -> Value {
        self.object();
        self.object.into_inner().unwrap_or_default()
    }
}

/// The version of an object that is not being deleted, at a glance: as nearly all that are answered. `None` where it takes a
/// closer look.
fn living(text: &[u8]) -> Option<ObjectVersion> {
    let kind = value_of(text, 0, "kind")?;
    if text[kind..].starts_with(b"\"Status\"") {
        return None;
    }
    version_in(text, value_of(text, 0, "metadata")?)
}

/// The version in the metadata that begin at `metadata`, unless they say that the object is being deleted.
fn version_in(text: &[u8], metadata: usize) -> Option<ObjectVersion> {
    let (mut uid, mut version) = (None, None);
    for (name, value) in members(text, metadata) {
        match &text[name] {
            b"\"uid\"" => uid = serde_json::from_slice::<Cow<'_, str>>(&text[value]).ok(),
            b"\"resourceVersion\"" => version = serde_json::from_slice::<Cow<'_, str>>(&text[value]).ok(),
            b"\"deletionTimestamp\"" => return None,
            _ => {}
        }
    }
    Some(ObjectVersion { uid: Arc::from(&*uid?), version: version?.parse().ok()? })
}

impl Writer {
    /// Asks for one object.
    pub(super) async fn ask(
        &self,
        request: Result<Request<Vec<u8>>, kube::Error>,
    ) -> Result<Answer, kube::Error> {
        let (head, text) = self.direct.send(request?).await?.into_parts();
        if head.status.is_client_error() || head.status.is_server_error() {
            return Err(kube::Error::Api(refusal(head.status, &head.headers, &text).boxed()));
        }
        Answer::read(text)
    }
}

/// Why the server did not do it, and after how long to ask again: a server that is busy may say that in a header alone.
fn refusal(code: StatusCode, headers: &HeaderMap, text: &[u8]) -> Status {
    let mut status = serde_json::from_slice::<Status>(text).unwrap_or_else(|_| {
        // A proxy, or a server that has no time for more than a word.
        let text = String::from_utf8_lossy(text);
        Status::failure(text.trim(), code.canonical_reason().unwrap_or("Unknown")).with_code(code.as_u16())
    });
    let after = headers.get(http::header::RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    if let Some(after) = after {
        let details = status.details.get_or_insert_with(no_details);
        if details.retry_after_seconds == 0 {
            details.retry_after_seconds = after;
        }
    }
    status
}

fn no_details() -> StatusDetails {
    let (name, group, kind, uid) = (String::new(), String::new(), String::new(), String::new());
    StatusDetails { name, group, kind, uid, causes: Vec::new(), retry_after_seconds: 0 }
}

/// A write under way: in doubt until the answer is in, so that a reconcile that is dropped half-way leaves the doubt behind.
pub(super) struct Doubt<'a> {
    pub(super) writer: &'a Writer,
    pub(super) kind: &'a Kind,
    pub(super) key: &'a Key,
    pub(super) reconciled: &'a Key,
    pub(super) clear: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if !self.clear {
            self.writer.doubt(self.kind, self.key, self.reconciled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(object: &Value) -> Answer {
        Answer::read(object.to_string().into()).unwrap()
    }

    #[test]
    fn an_answer_says_whether_the_object_lives_on() {
        let is_gone = |object: Value| answer(&object).gone;
        assert!(is_gone(json!({"kind": "Status", "status": "Success"})));
        let deleting = |finalizers: Value, grace: i64| {
            json!({"kind": "X", "metadata": {
                "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers, "deletionGracePeriodSeconds": grace,
            }})
        };
        assert!(is_gone(deleting(json!([]), 0)));
        assert!(is_gone(deleting(Value::Null, 0)));
        assert!(!is_gone(deleting(json!(["a/b"]), 0)));
        assert!(!is_gone(deleting(json!([]), 30)));
        let mut namespace = deleting(json!([]), 0);
        namespace["spec"] = json!({"finalizers": ["kubernetes"]});
        assert!(is_gone(namespace.clone()));
        namespace["kind"] = json!("Namespace");
        assert!(!is_gone(namespace));
        assert!(!is_gone(json!({"kind": "X", "metadata": {}})));
    }

    #[test]
    fn an_answer_is_read_as_far_as_somebody_asks() {
        let object =
            json!({"kind": "X", "metadata": {"uid": "u", "resourceVersion": "7"}, "data": {"a": [1]}});
        let answer = answer(&object);
        assert_eq!(answer.object_version, Some(ObjectVersion { uid: "u".into(), version: 7 }));
        assert_eq!(*answer.object(), object);
        assert_eq!(answer.into_object(), object);
        assert_eq!(
            self::answer(&json!({"metadata": {"uid": "u", "resourceVersion": "x"}})).object_version,
            None
        );
        for nonsense in ["", "{", "7", "nul"] {
            assert!(Answer::read(nonsense.into()).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_refusal_says_after_how_long_to_ask_again_wherever_the_server_says_it() {
        let after = |status: &Status| status.details.as_ref().map(|details| details.retry_after_seconds);
        let mut headers = HeaderMap::new();
        let told = json!({"kind": "Status", "status": "Failure", "message": "busy", "reason": "TooManyRequests",
                          "code": 429, "details": {"retryAfterSeconds": 7}});
        let told = told.to_string().into_bytes();
        assert_eq!(after(&refusal(StatusCode::TOO_MANY_REQUESTS, &headers, &told)), Some(7));
        let plain =
            refusal(StatusCode::TOO_MANY_REQUESTS, &headers, b"Too many requests, please try again later.\n");
        assert_eq!((plain.code, after(&plain)), (429, None));
        assert_eq!(plain.message, "Too many requests, please try again later.");
        headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("3"));
        assert_eq!(after(&refusal(StatusCode::TOO_MANY_REQUESTS, &headers, b"no")), Some(3));
        assert_eq!(after(&refusal(StatusCode::TOO_MANY_REQUESTS, &headers, &told)), Some(7), "its own word");
        headers.insert(
            http::header::RETRY_AFTER,
            http::HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"),
        );
        assert_eq!(
            after(&refusal(StatusCode::SERVICE_UNAVAILABLE, &headers, b"\xff")),
            None,
            "a date is none"
        );
    }
}
