//! What names an object and what orders its versions.

use std::fmt;
use std::sync::Arc;

/// A point in the store's history: one number for the whole store, raised by every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which object: its resource, its namespace and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The plural with its group before it: `configmaps`, `apps/deployments`.
    pub resource: Arc<str>,
    /// Empty for what belongs to the whole cluster.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
}

impl Key {
    /// A key of these parts.
    pub fn new(
        resource: impl Into<Arc<str>>,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }

    pub(super) fn path(&self) -> String {
        path(&self.namespace, &self.name)
    }
}

/// Where an object stands among those of its resource. Lists are in the order of these strings, so that `a-b/x` comes
/// before `a/x`, as it does where keys are paths.
pub(super) fn path(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        return name.to_owned();
    }
    let mut path = String::with_capacity(namespace.len() + 1 + name.len());
    path.push_str(namespace);
    path.push('/');
    path.push_str(name);
    path
}
