//! Why a manager did not run, or stopped.

use crate::command::CommandError;
use crate::config::InvalidOption;
use crate::controller::ConfigError;
use crate::election::Lost;
use crate::error_chain::chain;
use crate::kind::Kind;
use crate::webhook::VersionsError;
use std::net::SocketAddr;
use std::time::Duration;

/// The result of a manager.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a manager did not run, or stopped.
///
/// `Debug` prints it as a sentence with its causes, since that is what `fn main() -> windlass::Result<()>` prints.
///
/// ```
/// let error = windlass::Error::TaskTwice("backup".into());
/// assert_eq!(format!("{error:?}"), "two tasks are named \"backup\": name one of them otherwise");
/// ```
#[derive(thiserror::Error)]
pub enum Error {
    /// No cluster is configured: neither a kubeconfig nor the environment of a pod.
    #[error("no cluster to talk to")]
    NoCluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A flag, an environment variable or a line of the configuration file is invalid.
    #[error(transparent)]
    InvalidOption(#[from] InvalidOption),
    /// A command of the binary could not be answered.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Workers were set for a controller that there is not.
    #[error("there is no controller {unknown:?} to set the concurrency of: there are {}", known.join(", "))]
    NoController {
        /// The name that was given.
        unknown: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A controller cannot be run as described.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two tasks could not be told apart.
    #[error("two tasks are named {0:?}: name one of them otherwise")]
    TaskTwice(String),
    /// Two webhooks could not be told apart.
    #[error("two webhooks are at {0}: name one of them otherwise (Webhook::named)")]
    WebhookTwice(String),
    /// The versions of a kind are not of one kind.
    #[error(transparent)]
    Versions(#[from] VersionsError),
    /// The server for metrics, for probes or for webhooks could not start.
    #[error("cannot serve at {address}; choose another address, or 0 for none")]
    NotServed {
        /// Where it was to be.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Some kinds could not be listed in time: they do not exist, or must not be read.
    #[error("not listed after {after:?}: {}", kinds.iter().map(|kind| format!("{} ({})", kind.kind, kind.api_version())).collect::<Vec<_>>().join(", "))]
    NotSynced {
        /// Those kinds.
        kinds: Vec<Kind>,
        /// How long was waited.
        after: Duration,
    },
    /// A watch broke down in a way that cannot happen; the process should start anew.
    #[error("a watch broke down; nothing more can be observed from here")]
    Broken,
    /// Another replica leads now, or may; the process should start anew and stand by.
    #[error("no longer leading")]
    NotLeading(#[source] Lost),
    /// Reconciles or tasks did not end in time when the manager was stopped, and were cut off.
    #[error("stopped, but some work did not end within {within:?} and was cut off")]
    CutOff {
        /// How long was waited.
        within: Duration,
    },
    /// A second signal came while it was shutting down, and it exited at once.
    #[error("stopped by a second signal, before everything had ended")]
    SecondSignal,
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&chain(self))
    }
}
