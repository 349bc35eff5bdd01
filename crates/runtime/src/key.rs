//! Which object: a cluster, a namespace and a name. What queues, caches and logs speak of.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Names one object of a kind, on one cluster. Cheap to clone.
///
/// ```
/// # use windlass::Key;
/// let key = Key::new("local".into(), Some("shop"), "db");
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "db"));
/// assert_eq!(key.to_string(), "shop/db");
/// ```
#[derive(Debug, Clone, Eq, PartialOrd, Ord)]
pub struct Key(Arc<Names>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        // Mostly it is the very same, handed on.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Held once for all who speak of the object: caches, indexes and queues have a pointer each.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Names {
    cluster: Arc<str>,
    namespace: Option<Arc<str>>,
    name: Box<str>,
}

impl Key {
    /// The object called `name`, in `namespace` if its kind has namespaces.
    pub fn new(cluster: Arc<str>, namespace: Option<&str>, name: &str) -> Self {
        Self::sharing(cluster, namespace.map(Arc::from), name)
    }

    /// The object that carries this metadata; one without a name has the empty name, which no server stores.
    pub fn of(cluster: Arc<str>, meta: &ObjectMeta) -> Self {
        Self::new(cluster, meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    /// Another object of the same cluster; of the same namespace too, they share it.
    pub(crate) fn beside(&self, namespace: Option<&str>, name: &str) -> Self {
        let shared = self.0.namespace.clone().filter(|shared| Some(&**shared) == namespace);
        Self::sharing(self.0.cluster.clone(), shared.or_else(|| namespace.map(Arc::from)), name)
    }

    /// The same of parts that are shared already.
    pub(crate) fn sharing(cluster: Arc<str>, namespace: Option<Arc<str>>, name: &str) -> Self {
        Self(Arc::new(Names { cluster, namespace, name: name.into() }))
    }

    /// The cluster's id, as given to the [`Manager`](crate::Manager).
    pub fn cluster(&self) -> &Arc<str> {
        &self.0.cluster
    }

    /// The namespace, if it is in one.
    pub fn namespace(&self) -> Option<&str> {
        self.0.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.0.name),
            None => f.write_str(&self.0.name),
        }
    }
}
