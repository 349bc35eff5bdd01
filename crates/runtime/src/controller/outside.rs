//! What actions and facts reach the world outside with, and how they say that it failed.

use crate::key::Key;
use kube::Client;
use std::fmt;
use windlass_clock::Clock;

/// What an action or a poller is given besides its object.
#[derive(Clone)]
pub struct Context {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) key: Key,
}

impl Context {
    /// A client on the controller's cluster. Where there is an election, it writes only while this process leads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Which object it is for.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Why an action or a poll failed: any error, by the question mark, or a sentence.
///
/// ```
/// use windlass::Failure;
/// fn read(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(read("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(Failure::new("no answer").to_string(), "no answer");
/// ```
// Not an error itself: then it could not be made from all others.
pub struct Failure(Box<dyn std::error::Error + Send + Sync>);

impl Failure {
    /// Failed for this reason.
    pub fn new(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(why.into())
    }

    /// With its causes.
    pub(super) fn chain(&self) -> String {
        crate::act::chain(&*self.0)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
