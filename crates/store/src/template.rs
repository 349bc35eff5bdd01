//! Templates of the objects that every cluster begins with: made into bodies without being parsed or encoded again.

use super::body::{Body, Pairs, Text, Traits};
use std::borrow::Cow;
use std::sync::Arc;

/// Stands for a uid in the text of a template.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// Stands for a day, alone or at the beginning of a time.
const DAY: &str = "0000-00-00";

/// And for the rest of a time.
const HOUR: &str = "T00:00:00Z";

/// An object but for its uid and its times. Its text is as [`Body::encode`] would write it.
#[derive(Debug)]
pub struct ObjectTemplate {
    text: Cow<'static, str>,
    /// Where what follows `apiVersion` and `kind` starts, where the version goes, and where uid and days are.
    rest: usize,
    version: usize,
    uid: usize,
    days: Vec<usize>,
    labels: Pairs,
    fields: Pairs,
}

impl ObjectTemplate {
    /// From the text, the labels and the selectable fields of an object; none if it is not of the form.
    pub fn new(
        text: impl Into<Cow<'static, str>>,
        labels: Vec<(Box<str>, Box<str>)>,
        fields: Vec<(Box<str>, Box<str>)>,
    ) -> Option<Self> {
        let text = text.into();
        let kind = text.find(r#","kind":""#)? + r#","kind":""#.len();
        let rest = kind + text[kind..].find("\",")? + 2;
        let member = format!(r#","uid":"{UID}""#);
        let version = text.find(&member)?;
        let uid = version + r#","uid":""#.len();
        let days = text.match_indices(DAY).map(|(at, _)| at).collect();
        let sorted = |mut pairs: Vec<(Box<str>, Box<str>)>| -> Pairs {
            pairs.sort();
            pairs.into()
        };
        Some(Self { text, rest, version, uid, days, labels: sorted(labels), fields: sorted(fields) })
    }

    /// The object with this uid, made at this time (`2026-01-02T03:04:05Z`); none if they are not of their usual length.
    pub fn instantiate(&self, uid: &str, time: &str) -> Option<Body> {
        if uid.len() != UID.len() || time.len() != DAY.len() + HOUR.len() {
            return None;
        }
        let mut bytes = self.text.as_bytes().to_vec();
        bytes[self.uid..self.uid + UID.len()].copy_from_slice(uid.as_bytes());
        for &at in &self.days {
            let whole = self.text[at + DAY.len()..].starts_with(HOUR);
            let given = if whole { time } else { &time[..DAY.len()] };
            bytes[at..at + given.len()].copy_from_slice(given.as_bytes());
        }
        let text = Text::without_version(bytes, self.rest, self.version);
        let traits =
            Traits { uid: uid.into(), labels: self.labels.clone(), fields: self.fields.clone(), unseen: 0 };
        Some(Body { text, traits: Arc::new(traits) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_cast_is_what_encoding_would_have_made() {
        let text = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"since":"0000-00-00"},"metadata":{"creationTimestamp":"0000-00-00T00:00:00Z","labels":{"a":"b"},"name":"n","uid":"00000000-0000-0000-0000-000000000000"}}"#;
        let template = ObjectTemplate::new(text, vec![("a".into(), "b".into())], Vec::new());
        let (uid, time) = ("11111111-2222-4333-8444-555555555555", "2026-01-02T03:04:05Z");
        let cast = template.and_then(|template| template.instantiate(uid, time)).expect("it is of the form");
        let written =
            text.replace(UID, uid).replace("0000-00-00T00:00:00Z", time).replace("0000-00-00", "2026-01-02");
        let value: Value = serde_json::from_str(&written).expect("it is JSON");
        let encoded = Body::encode(&value, Vec::new());
        assert_eq!(cast, encoded);
    }
}
