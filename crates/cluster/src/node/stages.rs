//! Stages: what a file says about the behaviour of pods, by their namespace and labels.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use std::collections::BTreeMap;
use windlass::Selector;

/// What some pods do, unless their own annotations say otherwise.
///
/// ```
/// use windlass_cluster::node::Stage;
///
/// let stages = Stage::read("
/// - namespace: shop
///   selector: { matchLabels: { app: db } }
///   says: { ready-after: 5s }
/// - says: { start-after: 200ms }
/// ")?;
/// assert_eq!(stages.len(), 2);
/// assert!(Stage::read("- says: { ready: 5s }").is_err());
/// # Ok::<(), windlass_cluster::node::StageError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stage {
    namespace: Option<String>,
    selector: Option<Selector>,
    pub(super) says: BTreeMap<String, String>,
}

/// A file of stages that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// It is no list of stages.
    #[error("the stages cannot be read")]
    Unreadable(#[source] Box<serde_saphyr::Error>),
    /// A selector selects nothing that there could be.
    #[error("stage {number}: {why}")]
    Selector {
        /// Which, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Something is said that means nothing.
    #[error("stage {number} says {what:?}: known are {known}, each also with .CONTAINER after it")]
    Unknown {
        /// Which, from 1.
        number: usize,
        /// What it says.
        what: String,
        /// What it could say.
        known: String,
    },
}

/// What can be said.
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
    /// Reads a list of stages, as YAML or JSON. Of those that fit a pod, the first counts.
    ///
    /// # Errors
    /// [`StageError`], which says which stage cannot be used and why.
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
        Ok(Self { namespace: written.namespace, selector, says: written.says })
    }

    pub(super) fn fits(&self, pod: &Pod) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| pod.metadata.namespace.as_ref() == Some(namespace))
            && self.selector.as_ref().is_none_or(|selector| selector.matches(pod.metadata.labels.as_ref()))
    }
}
