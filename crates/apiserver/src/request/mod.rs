//! What a request says, read once: who sends it ([`Identity`]), what its path names ([`path`]), the parameters of its query,
//! and the media types that it brings and wants.
//!
//! The ground of the request path: everything above takes these as values, and this module knows none of it.

pub(crate) mod identity;
pub(crate) mod media;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod write_options;

pub use identity::Identity;
