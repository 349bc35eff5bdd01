//! Rules: which requests they match, which of those they act on, and how.

use super::RequestInfo;
use crate::read::Hold;
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use windlass_store::Revision;

/// Acts on some of the requests that match a pattern.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Which requests it counts.
    pub pattern: Pattern,
    /// Which of those it acts on.
    pub which: Which,
    /// What it does.
    pub act: Act,
}

/// Which requests match: those that equal it in everything that it asks for.
#[derive(Debug, Clone, Default)]
pub struct Pattern {
    /// One of these; empty for any.
    pub verbs: Vec<String>,
    /// As in [`RequestInfo::resource`].
    pub resource: Option<String>,
    /// As in [`RequestInfo::subresource`]: `Some("")` matches only requests for the object itself.
    pub subresource: Option<String>,
    /// As in [`RequestInfo::namespace`].
    pub namespace: Option<String>,
    /// As in [`RequestInfo::name`].
    pub name: Option<String>,
    /// As in [`RequestInfo::user`].
    pub user: Option<String>,
    /// A part of [`RequestInfo::user_agent`].
    pub user_agent: Option<String>,
}

/// Which matches count, the first being number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    Every,
    /// This one.
    Nth(u64),
    /// This one and all that follow.
    From(u64),
    /// All up to this one.
    UpTo(u64),
}

/// What a rule does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answers with this instead of handling the request.
    Refuse(Box<Status>),
    /// Loses the connection before the request took effect.
    LoseRequest,
    /// Waits before the request is handled.
    Delay(Duration),
    /// Answers gets, lists and watches from the past; a watch stays there until the rule is removed.
    ServePast(Past),
    /// Holds back the events of a watch that begins, until the rule is removed.
    HoldEvents(Hold),
    /// Does something before the request is handled.
    Before(Effect),
    /// Changes the object that is written, as a mutating webhook does: after its managed fields are set, before it is
    /// validated.
    Mutate(Mutation),
    /// Waits after the request took effect, before it is answered.
    DelayResponse(Duration),
    /// Loses the connection after the request took effect.
    LoseResponse,
    /// Breaks the answer off in its middle; a watch, as soon as it began.
    CutResponse,
    /// Does something after the request took effect, before it is answered.
    After(Effect),
}

/// What becomes of an object on its way into the store.
#[derive(Clone)]
pub struct Mutation(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Mutation {
    /// By a function, which must not block.
    pub fn by(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    pub(crate) fn carry_out(&self, object: &mut Value) {
        (self.0)(object);
    }
}

impl std::fmt::Debug for Mutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mutation")
    }
}

/// Which past is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// As of this revision.
    At(Revision),
    /// The number of revisions behind the newest.
    Behind(u64),
}

/// Something that happens at a request.
#[derive(Clone)]
pub enum Effect {
    /// Forgets all history.
    Compact,
    /// Breaks off watches.
    DropWatches(Pattern),
    /// Holds watches back or lets them go.
    HoldWatches(Pattern, Hold),
    /// Calls back, such as to stop the one who asks. It runs on the request's way and must not block.
    Call(Arc<dyn Fn(&RequestInfo<'_>) + Send + Sync>),
}

impl Pattern {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Every request that changes something.
    pub fn writes() -> Self {
        Self::any().verbs(&["create", "update", "patch", "delete", "deletecollection"])
    }

    /// Every watch.
    pub fn watches() -> Self {
        Self::any().verbs(&["watch"])
    }

    /// Only these verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        self
    }

    /// Only this resource.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only this subresource; empty for the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Only programs whose name has this in it.
    #[must_use]
    pub fn user_agent(mut self, part: impl Into<String>) -> Self {
        self.user_agent = Some(part.into());
        self
    }

    /// Does `request` match?
    pub fn matches(&self, request: &RequestInfo<'_>) -> bool {
        let equal =
            |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        (self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == request.verb))
            && equal(&self.resource, request.resource)
            && equal(&self.subresource, request.subresource)
            && equal(&self.namespace, request.namespace)
            && equal(&self.name, request.name)
            && equal(&self.user, request.user)
            && (self.user.is_some() || !request.is_of_the_cluster())
            && self.user_agent.as_ref().is_none_or(|part| request.user_agent.contains(part.as_str()))
    }

    /// A rule that does `act` to `which` of these.
    pub fn then(self, which: Which, act: Act) -> Rule {
        Rule { pattern: self, which, act }
    }
}

impl Which {
    pub(super) fn includes(self, number: u64) -> bool {
        match self {
            Self::Every => true,
            Self::Nth(wanted) => number == wanted,
            Self::From(first) => number >= first,
            Self::UpTo(last) => number <= last,
        }
    }
}

impl std::fmt::Debug for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compact => f.write_str("Compact"),
            Self::DropWatches(pattern) => f.debug_tuple("DropWatches").field(pattern).finish(),
            Self::HoldWatches(pattern, hold) => {
                f.debug_tuple("HoldWatches").field(pattern).field(hold).finish()
            }
            Self::Call(_) => f.write_str("Call"),
        }
    }
}
