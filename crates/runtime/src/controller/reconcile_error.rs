//! Why a reconcile ended early. When it is tried again is in `retry`.

use super::reconcile::PASSES;
use super::retry::Retry;
use crate::metrics::Ended;
use crate::write::WriteError;
use std::time::Duration;

/// Why a reconcile ended early. Unless it is terminal, it is tried again, with a back-off per object.
///
/// ```
/// # use windlass::ReconcileError;
/// let again = ReconcileError::custom("the database does not answer");
/// let not_again = ReconcileError::terminal("the schema is not ours");
/// assert!(!again.is_terminal() && not_again.is_terminal());
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Something could not be written.
    #[error(transparent)]
    Act(#[from] WriteError),
    /// Every pass wrote something.
    #[error("the decision wants something else each time it sees what it did: {PASSES} times in a row")]
    Unsettled,
    /// The code of the decision panicked.
    #[error("the decision panicked: {0}")]
    Panic(String),
    /// It took longer than a reconcile may.
    #[error("the reconcile took longer than {0:?} and was cut off")]
    Timeout(Duration),
    /// A reconciler's own error.
    #[error("the reconciler failed")]
    Custom(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A reconciler's own error that trying again does not mend: nothing is done until something changes.
    #[error("the reconciler failed, and will not try again until something changes")]
    Terminal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ReconcileError {
    /// A reconciler's own error.
    pub fn custom(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Custom(error.into())
    }

    /// One word for it.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Act(error) => error.label(),
            Self::Unsettled => "Unsettled",
            Self::Panic(_) => "Panicked",
            Self::Timeout(_) => "TimedOut",
            Self::Custom(_) | Self::Terminal(_) => "Failed",
        }
    }

    /// A reconciler's own error that trying again does not mend: the object waits for a change.
    pub fn terminal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Terminal(error.into())
    }

    /// Whether it is not tried again until something changes.
    pub fn is_terminal(&self) -> bool {
        Retry::of(self) == Retry::OnChange
    }

    /// Whether it is decided again at once: a claim came too late, or the decision was made on a stale cache.
    pub(super) fn decides_again(&self) -> bool {
        match self {
            Self::Act(WriteError::Conflict(failed)) => failed.verb == "claim",
            Self::Act(WriteError::Unconfirmed) => true,
            _ => false,
        }
    }

    /// As it is counted.
    pub(super) fn ended(&self) -> Ended {
        match self {
            Self::Panic(_) => Ended::Panic,
            Self::Timeout(_) => Ended::Timeout,
            error => match Retry::of(error) {
                Retry::OnChange => Ended::Terminal,
                Retry::Conflict => Ended::Requeue,
                Retry::After(_) | Retry::Backoff { .. } => Ended::Error,
            },
        }
    }
}
