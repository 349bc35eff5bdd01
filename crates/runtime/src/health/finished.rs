//! Whether a Job has ended, and how.

use k8s_openapi::api::batch::v1::Job;

/// How a Job has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// All that it was to do is done.
    Complete,
    /// It will not be done.
    Failed {
        /// Why, as a CamelCase name, such as `BackoffLimitExceeded`.
        reason: String,
        /// Why, as a sentence.
        message: String,
    },
}

impl Finished {
    /// Whether all that it was to do is done.
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

/// How a Job has ended, or `None` while it has not: by its conditions, which are written once all its pods have ended. Its
/// counts are no sign: `status.failed` counts pods that are tried again.
///
/// ```
/// use k8s_openapi::api::batch::v1::Job;
/// use windlass::health::{self, Finished};
/// let job = |conditions: serde_json::Value| -> Job {
///     serde_json::from_value(serde_json::json!({"status": {"failed": 1, "conditions": conditions}})).unwrap()
/// };
/// assert_eq!(health::finished(&job(serde_json::json!([{"type": "FailureTarget", "status": "True"}]))), None);
/// let complete = health::finished(&job(serde_json::json!([{"type": "Complete", "status": "True"}])));
/// assert_eq!(complete, Some(Finished::Complete));
/// ```
pub fn finished(job: &Job) -> Option<Finished> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.filter(|condition| condition.status == "True").find_map(|condition| {
        match condition.type_.as_str() {
            "Complete" => Some(Finished::Complete),
            "Failed" => Some(Finished::Failed {
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
            }),
            _ => None,
        }
    })
}
