//! Which objects of a store are asked for: by name, labels, selector or index, in one namespace or in all.

use super::index::AnyIndex;
use super::object::AnyObject;
use crate::selector::Selector;
use std::collections::{BTreeMap, BTreeSet};

/// How objects are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Select {
    Names(BTreeSet<String>),
    Labels(BTreeMap<String, String>),
    Selector(Selector),
    /// Those with a term in an index.
    Term(AnyIndex, String),
    All,
}

/// Objects of a namespace, or of any where it is `None`, that are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    pub(crate) select: Select,
}

/// What of an object a selection looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selectable<'a> {
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) labels: Option<&'a BTreeMap<String, String>>,
    pub(crate) object: &'a dyn AnyObject,
}

impl<'a> From<&'a dyn AnyObject> for Selectable<'a> {
    fn from(object: &'a dyn AnyObject) -> Self {
        let meta = object.meta();
        Self {
            object,
            namespace: meta.namespace.as_deref(),
            name: meta.name.as_deref().unwrap_or_default(),
            labels: meta.labels.as_ref(),
        }
    }
}

impl Selection {
    /// The names that it asks for, if it asks by name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let names = match &self.select {
            Select::Names(names) => Some(names),
            Select::Labels(_) | Select::Selector(_) | Select::Term(..) | Select::All => None,
        };
        names.into_iter().flatten().map(String::as_str)
    }

    pub(crate) fn matches(&self, object: Selectable<'_>) -> bool {
        if self.namespace.is_some() && self.namespace.as_deref() != object.namespace {
            return false;
        }
        match &self.select {
            Select::Names(names) => names.contains(object.name),
            Select::Labels(wanted) => wanted
                .iter()
                .all(|(key, value)| object.labels.and_then(|labels| labels.get(key)) == Some(value)),
            Select::Selector(selector) => selector.matches(object.labels),
            Select::Term(index, term) => index.terms(object.object).contains(term),
            Select::All => true,
        }
    }
}
