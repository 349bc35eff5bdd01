//! Why something is done, awaited or refused: an enumerated name for machines and a sentence for people.

use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Implemented, usually with nothing in its body, by an operator's own enum of reasons:
///
/// ```
/// use windlass::{Reason, Reasoned};
///
/// #[derive(Debug)]
/// enum Why { RunsTheServer, WaitsFor(String) }
/// impl Reasoned for Why {}
///
/// assert_eq!(Reason::from(Why::RunsTheServer).to_string(), "RunsTheServer: runs the server");
/// assert_eq!(Reason::from(Why::WaitsFor("db".into())).name(), "WaitsFor");
/// ```
pub trait Reasoned: fmt::Debug {
    /// The CamelCase name that events and conditions carry: the variant's name, unless said otherwise.
    fn name(&self) -> Cow<'static, str> {
        Cow::Owned(leading_identifier(&format!("{self:?}")).to_owned())
    }

    /// One sentence for people: the variant's name as words, unless said otherwise.
    fn message(&self) -> String {
        words(&self.name())
    }
}

/// An enumerated reason, erased: what plans carry, and what becomes the event, the condition and the log line.
///
/// ```
/// # use windlass::Reason;
/// let reason = Reason::new("BackedUp", "backed up to the bucket");
/// assert_eq!(reason.to_string(), "BackedUp: backed up to the bucket");
/// assert_eq!(reason.saying("backed up again").name(), "BackedUp");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Reason {
    name: Cow<'static, str>,
    message: String,
}

impl Reason {
    /// A reason without an enum of its own. The name should be CamelCase: conditions accept nothing else.
    pub fn new(name: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into() }
    }

    /// The CamelCase name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same name with another sentence.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}

impl<T: Reasoned> From<T> for Reason {
    fn from(reasoned: T) -> Self {
        Self { name: reasoned.name(), message: reasoned.message() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

/// A decided no: what was declared cannot or must not be done. It shows in the object's conditions, nothing is pruned,
/// and the next change of what was seen decides again.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::{Observed, Plan, Reasoned, Refusal};
/// #[derive(Debug)]
/// enum Why { HasNoData }
/// impl Reasoned for Why {}
///
/// fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
///     let _data = map.data.as_ref().ok_or(Why::HasNoData)?;
///     Ok(Plan::new())
/// }
/// let refusal = decide(&ConfigMap::default(), &Observed::empty()).unwrap_err();
/// assert_eq!(refusal.reason().message(), "has no data");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    reason: Reason,
}

impl Refusal {
    /// Refuses for this reason.
    pub fn new(reason: impl Into<Reason>) -> Self {
        Self { reason: reason.into() }
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

impl<T: Reasoned> From<T> for Refusal {
    fn from(reasoned: T) -> Self {
        Self::new(reasoned)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for Refusal {}

fn leading_identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// `WaitsForIt` as `waits for it`.
fn words(camel: &str) -> String {
    let mut text = String::with_capacity(camel.len() + 8);
    for (position, c) in camel.chars().enumerate() {
        if c.is_uppercase() && position > 0 {
            text.push(' ');
        }
        text.extend(c.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    enum Why {
        HoldsTheKey,
        Missing {
            #[expect(dead_code, reason = "shows that fields stay out of the name")]
            name: &'static str,
        },
    }
    impl Reasoned for Why {}

    #[test]
    fn a_variant_is_its_own_name_and_sentence() {
        let reason = Reason::from(Why::HoldsTheKey);
        assert_eq!((reason.name(), reason.message()), ("HoldsTheKey", "holds the key"));
        assert_eq!(Reason::from(Why::Missing { name: "x" }).name(), "Missing");
    }

    #[test]
    fn a_reason_becomes_a_refusal_by_the_question_mark() {
        fn decide() -> Result<(), Refusal> {
            Err(Why::HoldsTheKey)?
        }
        assert_eq!(decide().unwrap_err().reason().name(), "HoldsTheKey");
    }
}
