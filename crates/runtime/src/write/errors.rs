//! What a failed request means: whether it was done, and whether asking again can help.

use super::fights::{Contest, LONGEST_TRUCE};
use crate::key::Key;
use crate::kind::Kind;
use crate::plan::{GenerateError, Unserializable};
use std::time::Duration;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {kind} {key}")]
pub struct Failed {
    /// What was tried.
    pub verb: &'static str,
    /// On which kind.
    pub kind: String,
    /// On which object.
    pub key: Key,
    /// What came back.
    #[source]
    pub answer: kube::Error,
}

/// Why a step was not carried out, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Somebody was faster, or what was seen is old: look and decide again.
    #[error("the object is not as it was seen")]
    Conflict(#[source] Box<Failed>),
    /// It may or may not be done: the next reconcile reads live before it decides.
    #[error("no clear answer from the server")]
    Ambiguous(#[source] Box<Failed>),
    /// The server is busy; nothing was done.
    #[error("the server is busy")]
    Busy(#[source] Box<Failed>),
    /// The server refuses, and would again: the same request cannot succeed until something else changes.
    #[error("the server refuses")]
    Refused(#[source] Box<Failed>),
    /// An object of that name is there and belongs to somebody else.
    #[error("{kind} {key} exists and is not ours{}", owner.as_ref().map(|owner| format!(": it belongs to {owner}")).unwrap_or_default())]
    NotOurs {
        /// Its kind.
        kind: String,
        /// Which.
        key: Key,
        /// Whose it is, if it says so.
        owner: Option<String>,
    },
    /// A plan writes to an object that others own and that its object is not related to.
    #[error("{kind} {key} is not among those that the object is related to")]
    NotRelated {
        /// Its kind.
        kind: String,
        /// Which.
        key: Key,
    },
    /// Somebody else holds a field that is to be otherwise, and takes it back each time, or must not be overruled.
    #[error("{kind} {key} is contested{}", contested(contests))]
    Contested {
        /// Its kind.
        kind: String,
        /// Which.
        key: Key,
        /// The fields, as far as they could be told.
        contests: Vec<Contest>,
        /// When to try again.
        retry_after: Duration,
    },
    /// An owner cannot have children in another namespace, or in none, unless the controller says so.
    #[error(
        "{kind} {key} is in another namespace than the object that would own it: declare it with .owns_anywhere if you mean it"
    )]
    OtherNamespace {
        /// Its kind.
        kind: String,
        /// Which.
        key: Key,
    },
    /// An object of a kind that lives in namespaces is in none, and so is the object whose plan it is in.
    #[error("{kind} {key} in the plan needs a namespace")]
    NoNamespace {
        /// Its kind.
        kind: String,
        /// Which.
        key: Key,
    },
    /// It was created in a namespace that this process does not watch.
    #[error(
        "{kind} {key} was created in a namespace that this operator does not watch: it would be created again and again"
    )]
    NotWatched {
        /// Its kind.
        kind: String,
        /// Which.
        key: Key,
    },
    /// Something was about to be removed because something else was not observed, and a cache may lag behind; or a child was
    /// not observed that is there. The caches were brought up to date, and it is decided again.
    #[error("the caches are brought up to date first, and it is decided again")]
    Unconfirmed,
    /// The plan touches a kind that the controller did not declare with `.owns`.
    #[error("the plan touches {0}, which the controller does not own: add .owns for it")]
    Undeclared(String),
    /// The plan does to a kind what the controller did not declare.
    #[error("the plan {declare} a {kind}, which the controller does not declare: add .{declare}::<{kind}>()")]
    UndeclaredWrite {
        /// Which kind.
        kind: String,
        /// The builder's method that declares it.
        declare: &'static str,
    },
    /// An object in the plan has no name.
    #[error("a {0} in the plan has no name")]
    NoName(String),
    /// The plan asks for an action that the controller does not have.
    #[error("the plan asks for action {0}, which the controller does not have: add .action for it")]
    UnknownAction(String),
    /// Too many actions of the object are under way.
    #[error("{0} actions are under way for the object, and no more are begun until one ends")]
    TooManyActions(usize),
    /// Something in the plan could not be serialized.
    #[error(transparent)]
    Unserializable(Unserializable),
    /// A value could not be generated.
    #[error("a value could not be generated")]
    Generate(#[source] GenerateError),
}

impl WriteError {
    /// Whether people must hear of it, in the object's conditions and by an event: retrying soon is pointless.
    pub fn is_reported(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::NotOurs { .. }
                | Self::NotRelated { .. }
                | Self::Contested { .. }
                | Self::NoNamespace { .. }
                | Self::NotWatched { .. }
                | Self::OtherNamespace { .. }
                | Self::Undeclared(_)
                | Self::UndeclaredWrite { .. }
                | Self::NoName(_)
                | Self::UnknownAction(_)
                | Self::Unserializable(_)
                | Self::Generate(GenerateError::Place(_) | GenerateError::Certificate(_))
        )
    }

    /// The HTTP status of the server's answer, if there was one.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// Whether the server refused to create what is there already. A conflict of another sort has the same code.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.is_already_exists())
    }

    pub(crate) fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Conflict(failed) | Self::Ambiguous(failed) | Self::Busy(failed) | Self::Refused(failed) => {
                match &failed.answer {
                    kube::Error::Api(status) => Some(status),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What the server said, if it answered.
    pub fn message(&self) -> Option<&str> {
        self.status().map(|status| status.message.as_str())
    }

    /// Its name as a condition's reason and a metric's label.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "Conflict",
            Self::Unconfirmed => "Unconfirmed",
            Self::Ambiguous(_) => "NoClearAnswer",
            Self::Busy(_) => "ServerBusy",
            Self::Refused(_) => "RefusedByServer",
            Self::NotOurs { .. } => "NotOurs",
            Self::NotRelated { .. } => "NotRelated",
            Self::Contested { .. } => "Contested",
            Self::OtherNamespace { .. } => "OtherNamespace",
            Self::NoNamespace { .. } => "NoNamespace",
            Self::NotWatched { .. } => "NotWatched",
            Self::Undeclared(_) => "UndeclaredKind",
            Self::UndeclaredWrite { .. } => "UndeclaredWrite",
            Self::NoName(_) => "NoName",
            Self::UnknownAction(_) => "UnknownAction",
            Self::TooManyActions(_) => "TooManyActions",
            Self::Unserializable(_) => Unserializable::LABEL,
            Self::Generate(_) => "GenerationFailed",
        }
    }

    pub(crate) fn from_request(verb: &'static str, kind: &Kind, key: &Key, error: kube::Error) -> Self {
        let meaning = meaning(&error);
        if let Some(contests) = conflicts_in(&error) {
            let (kind, key) = (kind.kind.to_string(), key.clone());
            return Self::Contested { kind, key, contests, retry_after: LONGEST_TRUCE };
        }
        let failed = Box::new(Failed { verb, kind: kind.kind.to_string(), key: key.clone(), answer: error });
        match meaning {
            Meaning::Conflict => Self::Conflict(failed),
            Meaning::Ambiguous => Self::Ambiguous(failed),
            Meaning::Busy => Self::Busy(failed),
            Meaning::Refused => Self::Refused(failed),
        }
    }
}

fn contested(contests: &[Contest]) -> String {
    let fields = contests.iter().map(|contest| format!("{} is held by {}", contest.field, contest.manager));
    let fields: Vec<String> = fields.collect();
    if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) }
}

/// The fields that others hold, if that is why the server refuses.
fn conflicts_in(error: &kube::Error) -> Option<Vec<Contest>> {
    let kube::Error::Api(status) = error else { return None };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    let contests: Vec<Contest> = conflicts
        .map(|cause| Contest {
            field: cause.field.clone(),
            // As the server says it: conflict with "them" using v1.
            manager: cause.message.split('"').nth(1).unwrap_or("somebody").to_owned(),
        })
        .collect();
    (!contests.is_empty()).then_some(contests)
}

#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Conflict,
    Ambiguous,
    Busy,
    Refused,
}

fn meaning(error: &kube::Error) -> Meaning {
    match error {
        kube::Error::Api(status) => match status.code {
            409 => Meaning::Conflict,
            429 => Meaning::Busy,
            400..=499 => Meaning::Refused,
            _ => Meaning::Ambiguous,
        },
        // These never left the house.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) | kube::Error::Auth(_) => Meaning::Refused,
        _ => Meaning::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16) -> kube::Error {
        kube::Error::Api(kube::core::Status { code, ..Default::default() }.boxed())
    }

    #[test]
    fn only_a_clear_answer_is_clear() {
        assert_eq!(meaning(&api(409)), Meaning::Conflict);
        assert_eq!(meaning(&api(422)), Meaning::Refused);
        assert_eq!(meaning(&api(429)), Meaning::Busy);
        for code in [500, 503, 504] {
            assert_eq!(meaning(&api(code)), Meaning::Ambiguous, "{code} may have been done");
        }
        assert_eq!(meaning(&kube::Error::Service("cut off".into())), Meaning::Ambiguous);
    }
}
