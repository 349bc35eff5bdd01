//! JSON patch and JSON merge patch, as the real server applies them.
//!
//! The `json-patch` crate follows RFC 6902 to the letter. The server's library does not: replacing a missing field adds
//! it, an absent field passes a test for null, negative indices count from the end; and its errors reach the user.

mod merge;
mod operations;

pub use merge::merge;
pub use operations::json_patch;

use thiserror::Error;

/// Why a patch was not applied, with the server's error text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatchError {
    /// It is not a patch at all: a bad request.
    #[error("{0}")]
    Malformed(String),
    /// It has too many operations: an entity too large.
    #[error("The allowed maximum operations in a JSON patch is {most}, got {got}")]
    TooMany {
        /// How many are allowed.
        most: usize,
        /// How many there are.
        got: usize,
    },
    /// It does not fit the object: unprocessable.
    #[error("{0}")]
    DoesNotApply(String),
}
