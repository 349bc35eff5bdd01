//! Which failed reconciles are tried again, and when.
//!
//! | error | tried again |
//! |---|---|
//! | the plan or the controller is wrong: an undeclared kind, no name, no namespace, no JSON | when something changes |
//! | the reconciler's own [`ReconcileError::Terminal`] | when something changes |
//! | another field manager holds a field ([`WriteError::Contested`]) | after the time that the error names |
//! | a conflict (409), or an absence that was not so when it was looked for live: the cache was stale | with back-off, and not counted as an error |
//! | the server is busy (429, or 5xx) and sends `Retry-After` | with back-off, and not before that time |
//! | everything else: no answer, refused by the server, a panic, a timeout, the reconciler's own error | with back-off |
//!
//! The back-off is per object, and over with the first reconcile that succeeds ([`Backoff`](crate::queue::Backoff)). Whatever
//! the delay, a change of the object, or of something that it owns or watches, starts a reconcile at once.

use super::reconcile_error::ReconcileError;
use crate::plan::GenerateError;
use crate::write::WriteError;
use std::time::Duration;

/// A busy server is not left alone for longer, whatever it asks for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(600);

/// When a reconcile that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// Not before something changes.
    OnChange,
    /// After this time; the back-off starts anew.
    After(Duration),
    /// After the back-off of the object: somebody else was faster, which is no failure.
    Conflict,
    /// After the back-off of the object, and not before this time.
    Backoff {
        /// What the server asked for.
        at_least: Duration,
    },
}

impl Retry {
    /// What follows from an error.
    pub(super) fn of(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::Terminal(_) => Self::OnChange,
            ReconcileError::Act(error) => Self::of_write(error),
            ReconcileError::Unsettled
            | ReconcileError::Panic(_)
            | ReconcileError::Timeout(_)
            | ReconcileError::Custom(_) => Self::Backoff { at_least: Duration::ZERO },
        }
    }

    fn of_write(error: &WriteError) -> Self {
        match error {
            // Only another plan helps.
            WriteError::OtherNamespace { .. }
            | WriteError::NoNamespace { .. }
            | WriteError::Undeclared(_)
            | WriteError::UndeclaredWrite { .. }
            | WriteError::NoName(_)
            | WriteError::UnknownAction(_)
            | WriteError::Unserializable(_)
            | WriteError::Generate(GenerateError::Place(_)) => Self::OnChange,
            WriteError::Contested { retry_after, .. } => Self::After(*retry_after),
            WriteError::Conflict(_) | WriteError::Unconfirmed => Self::Conflict,
            WriteError::Busy(_) | WriteError::Ambiguous(_) => {
                Self::Backoff { at_least: asked_for(error).unwrap_or_default() }
            }
            WriteError::Refused(_)
            | WriteError::NotOurs { .. }
            | WriteError::NotRelated { .. }
            | WriteError::NotWatched { .. }
            | WriteError::TooManyActions(_)
            | WriteError::Generate(_) => Self::Backoff { at_least: Duration::ZERO },
        }
    }
}

/// How long the server asks to be left alone, if it says so.
fn asked_for(error: &WriteError) -> Option<Duration> {
    let seconds = error.status()?.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::kind::Kind;

    fn answered(code: u16, retry_after_seconds: u32) -> Retry {
        let status = serde_json::json!({"code": code, "details": {"retryAfterSeconds": retry_after_seconds}});
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        let kind = Kind::of::<k8s_openapi::api::core::v1::ConfigMap>();
        let key = Key::new("c".into(), None, "n");
        let error = WriteError::from_request("apply", &kind, &key, kube::Error::Api(status.boxed()));
        Retry::of(&error.into())
    }

    fn backoff(seconds: u64) -> Retry {
        Retry::Backoff { at_least: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_busy_server_is_left_alone_as_long_as_it_asks_for_and_not_for_ever() {
        assert_eq!(answered(429, 3), backoff(3));
        assert_eq!(answered(503, 3), backoff(3));
        assert_eq!(answered(429, 0), backoff(0));
        assert_eq!(answered(422, 3), backoff(0), "it refused, and is not busy");
        assert_eq!(answered(429, u32::MAX), Retry::Backoff { at_least: LONGEST_RETRY_AFTER });
    }

    #[test]
    fn a_conflict_and_a_mistake_are_told_from_failures() {
        assert_eq!(answered(409, 0), Retry::Conflict);
        assert_eq!(Retry::of(&WriteError::NoName("Pod".into()).into()), Retry::OnChange);
        assert_eq!(Retry::of(&ReconcileError::terminal("no")), Retry::OnChange);
        assert_eq!(Retry::of(&ReconcileError::custom("no")), backoff(0));
    }
}
