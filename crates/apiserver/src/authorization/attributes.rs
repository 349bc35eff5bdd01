//! What is asked of an authorizer: who wants to do what to what.

use crate::request::Identity;

/// One action that somebody wants to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) verb: &'a str,
    pub(crate) on: On<'a>,
}

/// What an action is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum On<'a> {
    Resource(ResourceAttributes<'a>),
    /// A path that belongs to no resource, such as `/healthz`.
    Path(&'a str),
}

/// An object, a collection or a subresource. What is not said is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ResourceAttributes<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Which objects of a collection it is about, by their fields.
    pub(crate) field_selector: &'a str,
    /// And by their labels.
    pub(crate) label_selector: &'a str,
}

impl Attributes<'_> {
    /// The namespace that it is in; empty for what is in none.
    pub(crate) fn namespace(&self) -> &str {
        match self.on {
            On::Resource(resource) => resource.namespace,
            On::Path(_) => "",
        }
    }
}
