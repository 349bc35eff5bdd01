//! The custom resources, by version.

pub mod v1alpha1;
