//! What users declare, by version.

pub mod v1alpha1;
