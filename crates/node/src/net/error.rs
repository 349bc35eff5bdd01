//! What can go wrong when the network is asked for something.

use std::io;

/// Why the network did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// It could not be started.
    #[error("the node's network could not be started: {0}")]
    Start(String),
    /// It runs, but was made of other ranges.
    #[error("the node's network runs with other settings; end it first")]
    Other,
    /// It cannot be reached.
    #[error("the node's network does not answer: {0}")]
    Unreachable(#[source] io::Error),
    /// It did not answer in time.
    #[error("the node's network did not answer in time")]
    Late,
    /// It said no, and why.
    #[error("{0}")]
    Refused(String),
    /// It could not connect to where it was asked to.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
}

impl From<io::Error> for NetError {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}
