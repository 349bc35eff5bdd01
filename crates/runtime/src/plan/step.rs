//! The steps of a plan: what is to be done to one object, and why.

use super::delete::Propagation;
use super::generated::Generate;
use crate::action::Action;
use crate::kind::Kind;
use crate::reason::Reason;
use serde::Serialize;
use serde_json::{Value, json};

/// One thing to do, with its reason.
///
/// ```
/// # use k8s_openapi::api::core::v1::Secret;
/// # use windlass::{Plan, Reason};
/// let plan = Plan::new().delete::<Secret>("old", Reason::new("Rotates", "a new one is in use"));
/// let step = &plan.steps()[0];
/// assert_eq!((step.effect.verb(), step.effect.name(), step.reason.name()), ("delete", "old", "Rotates"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What to do.
    pub effect: Effect,
    /// Why.
    pub reason: Reason,
}

/// What can be done: to an object, or by an action.
#[derive(Clone, PartialEq)]
pub enum Effect {
    /// Make it so, by server-side apply; nothing is sent when it is so already.
    Apply {
        /// Its kind.
        kind: Kind,
        /// The fields that are to be as given.
        object: Value,
        /// Of these, as JSON pointers, those that are set at creation only.
        initially: Vec<String>,
        /// If it cannot be changed into this, delete it to create it anew, with this for its dependents.
        recreate: Option<Propagation>,
    },
    /// Create it if it is not there, with values made up for it; once there, leave it alone.
    CreateOnce {
        /// Its kind.
        kind: Kind,
        /// All but the generated values.
        object: Value,
        /// What to make up.
        generate: Generate,
    },
    /// Change it if it is still as it was seen, or create it if it is still not there; then the reconcile begins anew.
    Claim {
        /// Its kind.
        kind: Kind,
        /// The whole of it, with the resourceVersion that was seen, or without one if there was none.
        object: Value,
    },
    /// Change fields of an object that others own and that the controller is related to; nothing is sent when they are so.
    Patch {
        /// Its kind.
        kind: Kind,
        /// Its name, in the namespace of the object whose plan this is.
        name: String,
        /// What to change, as a JSON merge patch.
        patch: Value,
    },
    /// Have an action done, beside the reconcile.
    Act(Action),
    /// Delete it if it is there and ours.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Its namespace, or that of the object whose plan this is.
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// What becomes of its dependents.
        propagation: Propagation,
    },
}

impl Effect {
    /// Whether it cannot be carried out by the metadata alone of the object that is there.
    pub(crate) fn needs_contents(&self) -> bool {
        match self {
            Self::Claim { .. } => true,
            Self::Apply { initially, .. } => !initially.is_empty(),
            Self::CreateOnce { .. } | Self::Patch { .. } | Self::Act(_) | Self::Delete { .. } => false,
        }
    }

    /// Whether it wants a child to be there.
    pub(crate) fn makes(&self) -> bool {
        matches!(self, Self::Apply { .. } | Self::CreateOnce { .. } | Self::Claim { .. })
    }

    /// Whether the object may be deleted to be created anew.
    pub(crate) fn recreates(&self) -> bool {
        matches!(self, Self::Apply { recreate: Some(_), .. })
    }

    /// The kind of the object it is about; an action is about none.
    pub fn kind(&self) -> Option<&Kind> {
        match self {
            Self::Apply { kind, .. }
            | Self::CreateOnce { kind, .. }
            | Self::Claim { kind, .. }
            | Self::Patch { kind, .. }
            | Self::Delete { kind, .. } => Some(kind),
            Self::Act(_) => None,
        }
    }

    /// The name of the object it is about, empty if the plan's author forgot it; or the action's.
    pub fn name(&self) -> &str {
        match self {
            Self::Apply { object, .. } | Self::CreateOnce { object, .. } | Self::Claim { object, .. } => {
                written(object, "name").unwrap_or_default()
            }
            Self::Patch { name, .. } | Self::Delete { name, .. } => name,
            Self::Act(action) => action.name(),
        }
    }

    /// The namespace that the plan's author wrote, if any.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Apply { object, .. } | Self::CreateOnce { object, .. } | Self::Claim { object, .. } => {
                written(object, "namespace")
            }
            Self::Delete { namespace, .. } => namespace.as_deref(),
            Self::Patch { .. } | Self::Act(_) => None,
        }
    }

    /// The word for it, as printed and as the event's action.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::CreateOnce { .. } => "create once",
            Self::Claim { .. } => "claim",
            Self::Patch { .. } => "patch",
            Self::Act(_) => "act",
            Self::Delete { .. } => "delete",
        }
    }
}

/// A text in an object's metadata.
fn written<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get("metadata")?.get(field)?.as_str()
}

/// Prints objects with whatever a Secret holds blacked out.
impl std::fmt::Debug for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct(self.verb());
        if let Some(kind) = self.kind() {
            out.field("kind", &kind.kind);
        }
        match self {
            Self::Apply { kind, object, .. } | Self::Claim { kind, object } => {
                out.field("object", &redacted(kind, object))
            }
            Self::CreateOnce { kind, object, generate } => {
                out.field("object", &redacted(kind, object)).field("generate", generate)
            }
            Self::Patch { kind, name, patch } => {
                out.field("name", name).field("patch", &redacted(kind, patch))
            }
            Self::Act(action) => out.field("action", action),
            Self::Delete { namespace, name, propagation, .. } => {
                out.field("namespace", namespace).field("name", name).field("propagation", propagation)
            }
        };
        out.finish()
    }
}

/// As printed: with whatever a Secret holds blacked out.
impl Serialize for Effect {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = match self {
            Self::Apply { kind, object, initially, recreate } => {
                let mut shown = json!({"apply": redacted(kind, object)});
                if !initially.is_empty() {
                    shown["initially"] = json!(initially);
                }
                if let Some(dependents) = recreate {
                    shown["recreate"] = json!(dependents);
                }
                shown
            }
            Self::CreateOnce { kind, object, generate } => {
                json!({"createOnce": redacted(kind, object), "generate": generate})
            }
            Self::Claim { kind, object } => json!({"claim": redacted(kind, object)}),
            Self::Patch { kind, name, patch } => {
                json!({"patch": {"kind": kind, "name": name, "patch": redacted(kind, patch)}})
            }
            Self::Act(action) => json!({"act": action}),
            Self::Delete { kind, namespace, name, propagation } => json!({"delete": {
                "kind": kind, "namespace": namespace, "name": name, "propagationPolicy": propagation,
            }}),
        };
        shown.serialize(serializer)
    }
}

/// The object without what a Secret keeps: the names of its entries stay, their values do not.
fn redacted(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if kind.group.is_empty() && kind.kind == "Secret" {
        for field in ["data", "stringData"] {
            if let Some(Value::Object(entries)) = object.get_mut(field) {
                entries.values_mut().for_each(|value| *value = Value::from("(redacted)"));
            }
        }
    }
    object
}
