//! The protocol of a shim: one connection per request.

use super::spec::{Container, ContainerState, Exec, Identity, Privileges, Sandbox, Size, Usage};
use crate::program::Program;
use serde::{Deserialize, Serialize};

/// The input of `pod-shim`, which passes it on to the shim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    /// How to run this program.
    pub program: Program,
    /// The sandbox.
    pub sandbox: Sandbox,
    /// Whether the pod is in a user namespace, with a single user.
    pub mapped: bool,
}

/// The output of a shim, once it listens or has failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Launched {
    /// It listens.
    Ready,
    /// Another shim is running in the directory.
    Taken,
    /// It failed.
    Failed(String),
}

/// A request to a shim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Ping.
    Hello,
    /// Start a container.
    Start(Box<Container>),
    /// Send a signal to a container's first process.
    Signal {
        /// Which container.
        name: String,
        /// Which signal.
        signal: i32,
    },
    /// List the container states.
    States,
    /// Wait until the states are newer than this version.
    Changed {
        /// The version that the client has.
        since: u64,
    },
    /// Run a program in a container; the connection stays open.
    Exec {
        /// Which container.
        name: String,
        /// What.
        exec: Exec,
    },
    /// Attach to a container's streams; the connection stays open.
    Attach {
        /// Which container.
        name: String,
    },
    /// Resize the terminal, on the connection of an exec or attach.
    Resize(Size),
    /// Report the resource usage of all containers.
    Usage,
    /// Connect to a port of the pod's loopback; the reply has the connection as a file descriptor.
    Connect {
        /// Which port.
        port: u16,
    },
    /// Kill everything.
    End,
}

/// A reply of a shim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// Done; with file descriptors, if streams were requested.
    Done,
    /// The states.
    States(Vec<ContainerState>),
    /// The version of the states.
    Version(u64),
    /// The resource usage.
    Usage(Vec<Usage>),
    /// The exit code of the program.
    Exited(i32),
    /// No container of this name was ever started.
    NoContainer(String),
    /// It is not running.
    NotRunning(String),
    /// It could not be started: the exit code, and why.
    NotStarted(i32, String),
    /// Another error.
    Failed(String),
}

/// What the first stage of a container is told, with file descriptors: its three streams (for a terminal, none), and for
/// [`Order::Join`] the namespaces to join before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Order {
    /// Make a root and run the container in it.
    Make(Box<Making>),
    /// Run a program in a container that is there.
    Join(Joining),
    /// Hold a namespace of processes that containers share, and do nothing else.
    Hold,
}

/// What making a container takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Making {
    /// The container.
    pub container: Container,
    /// What the pod calls its machine.
    pub hostname: String,
    /// Memory that the pod's containers share, as a folder.
    pub shared_memory: std::path::PathBuf,
    /// Whether the pod is in a user namespace.
    pub mapped: bool,
    /// Whether the pod has a network of its own.
    pub own_network: bool,
}

/// What running another program in a container takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Joining {
    /// What to run.
    pub exec: Exec,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Where.
    pub folder: Option<std::path::PathBuf>,
    /// As whom.
    pub identity: Identity,
    /// With which rights.
    pub privileges: Privileges,
    /// Whether the pod is in a user namespace; the container's own comes as the second descriptor then.
    pub mapped: bool,
}

/// What the first stage answers. Where the program runs, the socket is closed without an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Staged {
    /// It runs, and can be told what to do: nothing else has to be run from its own program's mount.
    Up,
    /// The terminal's other side comes with this.
    Terminal,
    /// It could not be run: 127, 126 or 128, and why.
    Failed(i32, String),
}
