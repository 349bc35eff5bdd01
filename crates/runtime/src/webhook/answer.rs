//! What a question over HTTP is answered with, before it is bytes.

use http::StatusCode;
use serde_json::Value;

/// An answer to one question.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// A review.
    Review(Value),
    /// No review: the question was none, or could not be answered. The API server then does what the webhook's failure policy says.
    Failed(StatusCode, String),
}

impl Answer {
    pub(super) fn bad(why: impl Into<String>) -> Self {
        Self::Failed(StatusCode::BAD_REQUEST, why.into())
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Review(_) => StatusCode::OK,
            Self::Failed(status, _) => *status,
        }
    }
}

/// The head of any review: what it is, in which version.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

impl Head {
    /// Its `apiVersion`, if it is a review of this kind in a version that is known.
    pub(super) fn version(&self, group: &str, kind: &str) -> Result<&str, Answer> {
        let known = |version: &str| format!("{group}/{version}") == self.api_version;
        if self.kind == kind && ["v1", "v1beta1"].into_iter().any(known) {
            return Ok(&self.api_version);
        }
        Err(Answer::bad(format!(
            "expected {kind} ({group}/v1 or {group}/v1beta1), found {:?} ({:?})",
            self.kind, self.api_version
        )))
    }
}
