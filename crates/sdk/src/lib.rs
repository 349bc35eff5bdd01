//! What follows from an operator's own words.
//!
//! Every operator's binary answers `describe`. From that answer alone come its manifests ([`generate`]), and whether a change of
//! its kinds would break what is stored ([`breaking`]). All of it is pure, and the same answer always gives the same files;
//! [`files`] puts them on disk. [`image`] makes an OCI image of its binary.
//!
//! [`scaffold`] makes the operators themselves: new projects, kinds and controllers.

pub mod breaking;
pub mod described;
pub mod diff;
pub mod files;
pub mod format;
pub mod generate;
pub mod image;
mod quiet;
pub mod scaffold;
mod yaml;
