//! What is deleted, and what becomes of its dependents.

use serde::Serialize;

/// What becomes of the dependents of an object that is deleted: the objects that name it as their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub enum Propagation {
    /// The object is gone at once, and its dependents are deleted after it.
    #[default]
    Background,
    /// The object is gone once its dependents are.
    Foreground,
    /// The dependents stay, without an owner. One that comes to be under the same name, with a selector that fits, adopts them.
    Orphan,
}

impl Propagation {
    /// As `propagationPolicy` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// An object to delete, for [`Plan::delete`](crate::Plan::delete). A name becomes one by itself; write it out to say more.
///
/// ```
/// # use k8s_openapi::api::batch::v1::Job;
/// # use windlass::{Delete, Plan, Propagation, Reason};
/// let keep_its_pods = Delete::new("import").propagation(Propagation::Orphan);
/// let plan = Plan::new()
///     .delete::<Job>("export", Reason::new("Exported", "the export is done"))
///     .delete::<Job>(keep_its_pods, Reason::new("Imported", "its logs are still wanted"))
///     .delete::<Job>(Delete::new("copy").in_namespace("archive"), Reason::new("Copied", "the copy is there"));
/// assert!(plan.deletes::<Job>("import"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "nothing is deleted until a plan has it"]
pub struct Delete {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) propagation: Propagation,
}

impl Delete {
    /// The object of this name, in the namespace of the object whose plan it is, with its dependents in the background.
    pub fn new(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into(), propagation: Propagation::default() }
    }

    /// In another namespace than that of the object whose plan it is.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// What becomes of its dependents.
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = propagation;
        self
    }
}

impl From<&str> for Delete {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<&String> for Delete {
    fn from(name: &String) -> Self {
        Self::new(name)
    }
}

impl From<String> for Delete {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}
