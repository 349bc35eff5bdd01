//! Stages: a file that defines how pods behave, by their namespace and labels.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use std::collections::BTreeMap;
use windlass::Selector;

/// How the selected pods behave, unless their own annotations say otherwise.
///
/// ```
/// use windlass_cluster::simulated_kubelet::Stage;
///
/// let stages = Stage::read("
/// - namespace: shop
///   selector: { matchLabels: { app: db } }
///   says: { ready-after: 5s }
/// - says: { start-after: 200ms }
/// ")?;
/// assert_eq!(stages.len(), 2);
/// assert!(Stage::read("- says: { ready: 5s }").is_err());
/// # Ok::<(), windlass_cluster::simulated_kubelet::StageError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stage {
    namespace: Option<String>,
    selector: Option<Selector>,
    pub(super) values: BTreeMap<String, String>,
}

/// A file of stages is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// It is not a list of stages.
    #[error("invalid list of stages")]
    Unreadable(#[source] Box<serde_saphyr::Error>),
    /// A selector is invalid.
    #[error("stage {number}: {why}")]
    Selector {
        /// The stage's number, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A key under `says` is unknown.
    #[error(
        "stage {number}: unknown key {what:?}; known keys are {known}, each also with .CONTAINER appended"
    )]
    Unknown {
        /// The stage's number, from 1.
        number: usize,
        /// The key.
        what: String,
        /// The known keys.
        known: String,
    },
}

/// The known keys, which are the annotations without their prefix.
const KNOWN: [&str; 6] =
    ["start-after", "ready-after", "exit-after", "exit-code", "fail-image", "stop-after"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    selector: Option<LabelSelector>,
    says: BTreeMap<String, String>,
}

impl Stage {
    /// Reads a list of stages from YAML or JSON. The first that matches a pod applies.
    ///
    /// # Errors
    /// [`StageError`] names the invalid stage and says why.
    pub fn read(text: &str) -> Result<Vec<Self>, StageError> {
        let written: Vec<Written> =
            serde_saphyr::from_str(text).map_err(|error| StageError::Unreadable(Box::new(error)))?;
        let stages = written.into_iter().enumerate().map(|(index, written)| Self::of(index + 1, written));
        stages.collect()
    }

    fn of(number: usize, written: Written) -> Result<Self, StageError> {
        let unknown = |what: &&String| {
            let name = what.split_once('.').map_or(what.as_str(), |(name, _)| name);
            !KNOWN.contains(&name)
        };
        if let Some(what) = written.says.keys().find(unknown) {
            return Err(StageError::Unknown { number, what: what.clone(), known: KNOWN.join(", ") });
        }
        let selector = written.selector.as_ref().map(Selector::of).transpose();
        let selector = selector.map_err(|error| StageError::Selector { number, why: error.to_string() })?;
        Ok(Self { namespace: written.namespace, selector, values: written.says })
    }

    pub(super) fn matches(&self, pod: &Pod) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| pod.metadata.namespace.as_ref() == Some(namespace))
            && self.selector.as_ref().is_none_or(|selector| selector.matches(pod.metadata.labels.as_ref()))
    }
}
