//! The operator SDK: scaffolding, manifests and images.
//!
//! Every operator's binary answers `describe` ([`description`]). From that answer alone come its manifests ([`generate`]), and whether
//! a change of its CRDs would break stored custom resources ([`breaking`]). All of it is pure, and the same answer always gives the
//! same files; [`files`] writes them. [`image`] builds an OCI image of its binary.
//!
//! [`scaffold`] generates new projects, APIs and controllers.

pub mod breaking;
pub mod description;
pub mod diff;
pub mod files;
pub mod format;
pub mod generate;
pub mod image;
pub mod scaffold;
mod signals;
mod yaml;
