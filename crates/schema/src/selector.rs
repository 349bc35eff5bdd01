//! Label and field selectors of lists, watches and deletions.

mod fields;
mod labels;

pub use fields::{FieldRequirement, Fields};
pub use labels::{LabelOperator, LabelRequirement, Labels};

use thiserror::Error;

/// A selector that cannot be read, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SelectorError(String);
