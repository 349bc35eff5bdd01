//! Which objects of a kind a cache holds: those of all namespaces or of some, and of those the ones that fit selectors.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use windlass_schema::selector::{Fields, Labels, SelectorError};

/// All namespaces, or some.
///
/// ```
/// use windlass::cache::Namespaces;
///
/// assert_eq!(Namespaces::from("shop"), Namespaces::from(vec!["shop".to_string()]));
/// assert_eq!(Namespaces::from(None::<String>), Namespaces::All);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Namespaces {
    /// Every one, now and later.
    #[default]
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl From<Option<String>> for Namespaces {
    fn from(namespace: Option<String>) -> Self {
        namespace.map_or(Self::All, |namespace| Self::Only([namespace].into()))
    }
}

impl From<&str> for Namespaces {
    fn from(namespace: &str) -> Self {
        Self::Only([namespace.to_owned()].into())
    }
}

impl From<Vec<String>> for Namespaces {
    fn from(namespaces: Vec<String>) -> Self {
        Self::Only(namespaces.into_iter().collect())
    }
}

impl From<BTreeSet<String>> for Namespaces {
    fn from(namespaces: BTreeSet<String>) -> Self {
        Self::Only(namespaces)
    }
}

/// Which objects of a kind are watched and held. By default all those in the cache's namespaces.
///
/// ```
/// use windlass::cache::Scope;
///
/// let scope = Scope::default().within("shop").labelled("app=web, tier!=test")?;
/// assert_eq!(scope.to_string(), "in shop, labelled app=web,tier!=test");
/// assert!(Scope::default().labelled("app in").is_err());
/// # Ok::<(), windlass::cache::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    namespaces: Option<Namespaces>,
    labels: Labels,
    fields: Fields,
}

impl Scope {
    /// In these namespaces, instead of the cache's.
    #[must_use]
    pub fn within(mut self, namespaces: impl Into<Namespaces>) -> Self {
        self.namespaces = Some(namespaces.into());
        self
    }

    /// Only those whose labels fit a selector, written as for kubectl.
    ///
    /// # Errors
    /// [`SelectorError`] when it cannot be read.
    pub fn labelled(mut self, selector: &str) -> Result<Self, SelectorError> {
        self.labels = Labels::parse(selector)?;
        Ok(self)
    }

    /// Only those whose fields fit a selector, written as for kubectl: `spec.nodeName=n1`. Which fields can be selected by
    /// is the server's choice.
    ///
    /// # Errors
    /// [`SelectorError`] when it cannot be read.
    pub fn with_fields(mut self, selector: &str) -> Result<Self, SelectorError> {
        self.fields = Fields::parse(selector)?;
        Ok(self)
    }

    /// The same, in `namespaces` unless it says otherwise; outside namespaces for a kind that has none.
    pub(super) fn resolve(mut self, namespaces: &Namespaces, namespaced: bool) -> Self {
        let wanted = self.namespaces.take().unwrap_or_else(|| namespaces.clone());
        self.namespaces = Some(if namespaced { wanted } else { Namespaces::All });
        self
    }

    /// What is watched apart: each namespace, or all of them at once.
    pub(super) fn parts(&self) -> Vec<Option<Arc<str>>> {
        match &self.namespaces {
            None | Some(Namespaces::All) => vec![None],
            Some(Namespaces::Only(some)) => some.iter().map(|name| Some(Arc::from(name.as_str()))).collect(),
        }
    }

    /// The selectors as parameters of a request, each with a `&` before it.
    pub(super) fn query(&self) -> String {
        let mut query = String::new();
        for (name, value) in
            [("labelSelector", self.labels.to_string()), ("fieldSelector", self.fields.to_string())]
        {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", super::wire::escape(&value)));
            }
        }
        query
    }

    /// Whether the server would select the object in a text.
    pub(super) fn selects_text(&self, text: &[u8]) -> bool {
        (self.labels.is_empty() && self.fields.is_empty())
            || serde_json::from_slice(text).is_ok_and(|object| self.selects(&object))
    }

    /// Whether the server would select this object.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let label = |name: &str| object.get("metadata")?.get("labels")?.get(name)?.as_str();
        self.labels.matches(label)
            && self.fields.requirements().iter().all(|wanted| {
                let there = wanted.field.split('.').try_fold(object, |at, step| at.get(step));
                (text_of(there) == wanted.value) == wanted.equals
            })
    }
}

/// A field as selectors see it; what is absent is empty.
fn text_of(field: Option<&Value>) -> String {
    match field {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespaces {
            None => out.write_str("in the cache's namespaces")?,
            Some(Namespaces::All) => out.write_str("everywhere")?,
            Some(Namespaces::Only(some)) => {
                write!(out, "in {}", some.iter().map(String::as_str).collect::<Vec<_>>().join(", "))?;
            }
        }
        if !self.labels.is_empty() {
            write!(out, ", labelled {}", self.labels)?;
        }
        if !self.fields.is_empty() {
            write!(out, ", with {}", self.fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_server_would_select_is_selected() {
        let pod = json!({
            "metadata": {"name": "a", "labels": {"app": "web"}},
            "spec": {"nodeName": "n1", "hostNetwork": true},
        });
        let fields = |selector: &str| Scope::default().with_fields(selector).unwrap().selects(&pod);
        assert!(fields("metadata.name=a,spec.nodeName=n1,spec.hostNetwork=true,status.phase="));
        assert!(
            !fields("spec.nodeName=n2") && !fields("metadata.name!=a") && !fields("status.phase=Running")
        );
        let labels = |selector: &str| Scope::default().labelled(selector).unwrap().selects(&pod);
        assert!(labels("app=web") && labels("app in (web,db),!tier"));
        assert!(!labels("tier") && !labels("app!=web"));
    }

    #[test]
    fn a_kind_outside_namespaces_has_one_part() {
        let scope = Scope::default().within(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(scope.clone().resolve(&Namespaces::All, true).parts().len(), 2);
        assert_eq!(scope.resolve(&Namespaces::All, false).parts(), [None]);
        assert_eq!(Scope::default().resolve(&"c".into(), true).parts(), [Some(Arc::from("c"))]);
    }
}
