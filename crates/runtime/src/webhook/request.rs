//! What is asked of the API server, as far as a webhook is told.

use serde::Deserialize;

/// A request to the API server that an admission webhook decides about.
///
/// Tests make one with [`Request::create`], [`Request::update`] and [`Request::delete`].
#[derive(Debug, Clone, PartialEq)]
pub struct Request<K> {
    operation: Operation,
    old: Option<K>,
    user: User,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
    dry_run: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// Another state of an object that is there.
    Update,
    /// The end of an object. The handler is given the object as it is.
    Delete,
    /// A connection to a subresource.
    Connect,
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name.
    #[serde(rename = "username")]
    pub name: String,
    /// The UID.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Operation {
    /// As rules of webhooks write it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl<K> Request<K> {
    /// To create the object.
    pub fn create() -> Self {
        Self::of(Operation::Create, None)
    }

    /// To change it from this state.
    pub fn update(old: K) -> Self {
        Self::of(Operation::Update, Some(old))
    }

    /// To delete it.
    pub fn delete() -> Self {
        Self::of(Operation::Delete, None)
    }

    pub(super) fn of(operation: Operation, old: Option<K>) -> Self {
        let (user, namespace, name, subresource) = (User::default(), None, None, None);
        Self { operation, old, user, namespace, name, subresource, dry_run: false }
    }

    /// Asked by this user.
    #[must_use]
    pub fn by(mut self, user: User) -> Self {
        self.user = user;
        self
    }

    /// Concerning this object; no namespace for one outside of namespaces.
    #[must_use]
    pub fn about(mut self, namespace: Option<String>, name: Option<String>) -> Self {
        (self.namespace, self.name) = (namespace, name);
        self
    }

    /// Concerning a subresource, such as `status`.
    #[must_use]
    pub fn of_subresource(mut self, subresource: Option<String>) -> Self {
        self.subresource = subresource;
        self
    }

    /// Only tried out, if so.
    #[must_use]
    pub fn dry_run_is(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// What is to be done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The object as it is, where it is to be changed.
    pub fn old(&self) -> Option<&K> {
        self.old.as_ref()
    }

    /// Who asks.
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The namespace of the object; `None` outside of namespaces.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name of the object; `None` where the API server is yet to generate it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The subresource; `None` for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.subresource.as_deref()
    }

    /// Whether nothing is to be stored.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}
