//! AdmissionReviews: what a webhook is asked, and what its answer must be.

use super::configuration::Webhook;
use crate::webhook_client::{document, go_kind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const GROUP: &str = "admission.k8s.io";

/// What is asked, and by which name it is answered.
pub(crate) struct Question {
    pub(super) body: Bytes,
    uid: String,
    version: &'static str,
}

/// An answer, read and checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) allowed: bool,
    pub(crate) patch: Vec<u8>,
    pub(crate) patch_type: String,
    pub(crate) result: Option<Value>,
    pub(crate) warnings: Vec<String>,
    pub(crate) audit_annotations: BTreeMap<String, String>,
}

/// Why an answer is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InvalidReply {
    /// It is no review that could be read.
    Unreadable(String),
    /// It does not answer the question.
    Invalid(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Review {
    api_version: String,
    kind: String,
    response: Option<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    uid: String,
    allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

impl Question {
    /// The question, in the first version that the webhook understands; `request` is all of it but its UID.
    ///
    /// # Errors
    /// When there is no such version.
    pub(crate) fn new(webhook: &Webhook, mut request: Value, uid: String) -> Result<Self, String> {
        let known = webhook.review_versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let version = known.ok_or("webhook does not accept known AdmissionReview versions (v1, v1beta1)")?;
        request["uid"] = json!(uid);
        let api_version = format!("{GROUP}/{version}");
        let review = json!({ "kind": "AdmissionReview", "apiVersion": api_version, "request": request });
        Ok(Self { body: Bytes::from(review.to_string()), uid, version })
    }

    /// Reads what was answered.
    pub(super) fn reply(&self, answered: &[u8], mutating: bool) -> Result<Reply, InvalidReply> {
        let unreadable = InvalidReply::Unreadable;
        let answered = document(answered)
            .map_err(|why| unreadable(format!("couldn't get version/kind; json parse error: {why}")))?;
        let review = match answered {
            Value::Null => Review::default(),
            answered => Review::deserialize(answered).map_err(|error| unreadable(error.to_string()))?,
        };
        let registered = format!("{GROUP}/{}", self.version);
        if !matches!(review.kind.as_str(), "" | "AdmissionReview") {
            let version = if review.api_version.is_empty() { &registered } else { &review.api_version };
            return Err(unreadable(format!(
                "no kind {:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"",
                review.kind
            )));
        }
        self.checked(review, mutating).map_err(InvalidReply::Invalid)
    }

    fn checked(&self, review: Review, mutating: bool) -> Result<Reply, String> {
        let response = review.response.ok_or("webhook response was absent")?;
        let strict = self.version == "v1";
        if strict && response.uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {:?}", self.uid, response.uid));
        }
        if strict
            && (review.api_version.as_str(), review.kind.as_str())
                != ("admission.k8s.io/v1", "AdmissionReview")
        {
            let got = go_kind(&review.api_version, &review.kind);
            return Err(format!("expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {got}"));
        }
        let patch = match response.patch.as_deref() {
            Some(patch) => STANDARD.decode(patch).map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        let patch_type = match (strict, mutating) {
            (false, _) => "JSONPatch".to_owned(),
            (true, true) => mutating_type(patch.is_empty(), response.patch_type)?,
            (true, false) if !patch.is_empty() => {
                return Err("validating webhook may not return response.patch".to_owned());
            }
            (true, false) if response.patch_type.is_some() => {
                return Err("validating webhook may not return response.patchType".to_owned());
            }
            (true, false) => String::new(),
        };
        Ok(Reply {
            allowed: response.allowed,
            patch: if mutating { patch } else { Vec::new() },
            patch_type,
            result: response.status,
            warnings: response.warnings.unwrap_or_default(),
            audit_annotations: response.audit_annotations.unwrap_or_default(),
        })
    }
}

/// A patch and its type come together.
fn mutating_type(unpatched: bool, given: Option<String>) -> Result<String, String> {
    match (given, unpatched) {
        (None, true) => Ok(String::new()),
        (None, false) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (Some(_), true) => Err("webhook returned response.patchType but not response.patch".to_owned()),
        (Some(empty), false) if empty.is_empty() => {
            Err("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        (Some(given), false) => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(version: &'static str, review: Value, mutating: bool) -> Result<Reply, InvalidReply> {
        let question = Question { body: Bytes::new(), uid: "u".to_owned(), version };
        question.reply(review.to_string().as_bytes(), mutating)
    }

    fn v1(response: Value) -> Value {
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})
    }

    fn invalid(review: Value, mutating: bool) -> String {
        match reply("v1", review, mutating).unwrap_err() {
            InvalidReply::Invalid(why) | InvalidReply::Unreadable(why) => why,
        }
    }

    #[test]
    fn an_answer_must_be_to_the_question() {
        assert!(reply("v1", v1(json!({"uid": "u", "allowed": true})), true).unwrap().allowed);
        assert_eq!(invalid(v1(json!({"uid": "x"})), true), "expected response.uid=\"u\", got \"x\"");
        assert_eq!(invalid(v1(Value::Null), true), "webhook response was absent");
        assert_eq!(
            invalid(json!({"response": {"uid": "u"}}), true),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
        );
    }

    #[test]
    fn what_is_no_object_is_no_answer() {
        let question = Question { body: Bytes::new(), uid: "u".to_owned(), version: "v1" };
        let why = |answer: &str| match question.reply(answer.as_bytes(), true).unwrap_err() {
            InvalidReply::Invalid(why) | InvalidReply::Unreadable(why) => why,
        };
        assert!(why("hello").contains("json: cannot unmarshal string into Go value of type struct"));
        assert!(why("[1]").contains("cannot unmarshal array"));
        assert_eq!(why("   "), "webhook response was absent");
        assert!(why("{").contains("unexpected end of JSON input"));
        let yaml =
            "kind: AdmissionReview\napiVersion: admission.k8s.io/v1\nresponse: {uid: u, allowed: true}\n";
        assert!(question.reply(yaml.as_bytes(), false).unwrap().allowed);
    }

    #[test]
    fn the_older_review_is_taken_as_it_comes() {
        let answer = json!({"response": {"uid": "x", "allowed": true, "patch": STANDARD.encode("[]")}});
        let read = reply("v1beta1", answer.clone(), true).unwrap();
        assert_eq!((read.patch.as_slice(), read.patch_type.as_str()), (&b"[]"[..], "JSONPatch"));
        assert!(reply("v1beta1", answer, false).unwrap().patch.is_empty());
    }

    #[test]
    fn a_patch_has_a_type_and_only_mutating_webhooks_have_patches() {
        let patch = STANDARD.encode("[]");
        let with = |fields: Value| {
            let mut response = json!({"uid": "u", "allowed": true});
            for (name, value) in fields.as_object().unwrap() {
                response[name] = value.clone();
            }
            v1(response)
        };
        let both = with(json!({"patch": patch, "patchType": "JSONPatch"}));
        assert_eq!(reply("v1", both.clone(), true).unwrap().patch_type, "JSONPatch");
        assert_eq!(invalid(both, false), "validating webhook may not return response.patch");
        assert_eq!(
            invalid(with(json!({"patchType": "JSONPatch"})), false),
            "validating webhook may not return response.patchType"
        );
        assert_eq!(
            invalid(with(json!({"patch": patch})), true),
            "webhook returned response.patch but not response.patchType"
        );
        assert_eq!(
            invalid(with(json!({"patchType": "JSONPatch"})), true),
            "webhook returned response.patchType but not response.patch"
        );
        assert!(invalid(with(json!({"patch": "%"})), true).starts_with("Invalid symbol"));
    }
}
