//! ConversionReviews: what a webhook is asked, and what its answer must be.

use crate::object::{text, uid};
use crate::typed;
use crate::webhook_client::{document, go_kind};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";

/// A question, and by which name it is answered.
pub(super) struct Review {
    pub(super) body: Bytes,
    uid: String,
    version: &'static str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    api_version: String,
    kind: String,
    response: Option<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    uid: String,
    converted_objects: Option<Vec<Value>>,
    result: Option<Outcome>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outcome {
    status: String,
    message: String,
}

impl Review {
    /// The question, in the first version that the webhook understands.
    ///
    /// # Errors
    /// When there is no such version.
    pub(super) fn new(versions: &[String], objects: &[Value], api_version: &str) -> Result<Self, String> {
        let known = versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let version = known.ok_or("no supported conversion review versions")?;
        let uid = uid();
        let review = json!({
            "kind": KIND, "apiVersion": format!("{GROUP}/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
            // The reference sends an empty answer along.
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        Ok(Self { body: Bytes::from(review.to_string()), uid, version })
    }

    /// The objects of an answer.
    pub(super) fn converted(&self, answered: &[u8]) -> Result<Vec<Value>, String> {
        let answered = document(answered)
            .map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))?;
        let answer = match answered {
            Value::Null => Answer::default(),
            answered => Answer::deserialize(answered).map_err(|error| error.to_string())?,
        };
        let asked = format!("{GROUP}/{}", self.version);
        let kind = if answer.kind.is_empty() { KIND } else { &answer.kind };
        let version = if answer.api_version.is_empty() { &asked } else { &answer.api_version };
        let known = [format!("{GROUP}/v1"), format!("{GROUP}/v1beta1")];
        if kind != KIND || !known.contains(version) {
            return Err(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
        if *version != asked {
            let (got, wanted) = (version.rsplit('/').next().unwrap_or_default(), self.version);
            return Err(format!("converting ({got}.{KIND}) to ({wanted}.{KIND}): unknown conversion"));
        }
        // The older version was never checked.
        let strict = self.version == "v1";
        if strict && (answer.api_version.as_str(), answer.kind.as_str()) != (&asked, KIND) {
            let got = go_kind(&answer.api_version, &answer.kind);
            return Err(format!("expected webhook response of {GROUP}/v1, Kind={KIND}, got {got}"));
        }
        let response = answer.response.ok_or("no response provided")?;
        if strict && response.uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {:?}", self.uid, response.uid));
        }
        let result = response.result.unwrap_or_default();
        match (result.status.as_str(), result.message) {
            ("Success", _) => Ok(response.converted_objects.unwrap_or_default()),
            (status, message) if message.is_empty() => {
                Err(format!("response.result.status was '{status}', not 'Success'"))
            }
            (_, message) => Err(message),
        }
    }
}

/// One of the objects of an answer, which must at least say what it is.
pub(super) fn object(converted: Value) -> Result<Value, String> {
    match &converted {
        Value::Null => Err("unexpected end of JSON input".to_owned()),
        Value::Object(_) if text(&converted, &["kind"]).is_empty() => {
            Err(format!("Object 'Kind' is missing in '{converted}'"))
        }
        Value::Object(_) => Ok(converted),
        other => {
            let shape = typed::shape(other);
            Err(format!("json: cannot unmarshal {shape} into Go value of type map[string]interface {{}}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(version: &str) -> Review {
        Review::new(&["v7".to_owned(), version.to_owned()], &[json!({"kind": "W"})], "example.com/v2")
            .unwrap()
    }

    fn answered(review: &Review, response: Value) -> Result<Vec<Value>, String> {
        let answer = json!({"kind": KIND, "apiVersion": format!("{GROUP}/v1"), "response": response});
        review.converted(answer.to_string().as_bytes())
    }

    #[test]
    fn the_first_version_that_is_known_is_spoken() {
        let body = |version: &str| -> Value { serde_json::from_slice(&review(version).body).unwrap() };
        assert_eq!(body("v1")["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(body("v1beta1")["request"]["desiredAPIVersion"], "example.com/v2");
        let none = Review::new(&["v2".to_owned()], &[], "example.com/v2");
        assert_eq!(none.err().unwrap(), "no supported conversion review versions");
    }

    #[test]
    fn an_answer_must_be_to_the_question() {
        let review = review("v1");
        let success = json!({"status": "Success"});
        let good = json!({"uid": review.uid, "result": success, "convertedObjects": [{}]});
        assert_eq!(answered(&review, good).unwrap(), [json!({})]);
        let other = json!({"uid": "x", "result": success});
        assert!(answered(&review, other).unwrap_err().starts_with("expected response.uid="));
        assert_eq!(answered(&review, Value::Null).unwrap_err(), "no response provided");
        let failed = json!({"uid": review.uid, "result": {"status": "Failure", "message": "not today"}});
        assert_eq!(answered(&review, failed).unwrap_err(), "not today");
        let failed = json!({"uid": review.uid});
        assert_eq!(answered(&review, failed).unwrap_err(), "response.result.status was '', not 'Success'");
    }

    #[test]
    fn the_older_review_is_taken_as_it_comes() {
        let answer =
            json!({"response": {"uid": "x", "result": {"status": "Success"}, "convertedObjects": []}});
        let answer = answer.to_string();
        assert_eq!(review("v1beta1").converted(answer.as_bytes()).unwrap(), [] as [Value; 0]);
        assert!(review("v1").converted(answer.as_bytes()).is_err());
    }

    #[test]
    fn garbage_is_no_answer() {
        for garbage in
            ["hello", "{", "[1]", "  ", "\u{0}", r#"{"kind":"Pod"}"#, r#"{"response":{"result":7}}"#]
        {
            assert!(review("v1").converted(garbage.as_bytes()).is_err(), "{garbage}");
        }
        assert!(object(json!("text")).unwrap_err().starts_with("json: cannot unmarshal string"));
        assert_eq!(object(Value::Null).unwrap_err(), "unexpected end of JSON input");
        assert_eq!(object(json!({"a": 1})).unwrap_err(), "Object 'Kind' is missing in '{\"a\":1}'");
    }
}
