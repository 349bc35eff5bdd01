//! What the node and a shim say to each other: one connection for each request.

use super::spec::{Container, ContainerState, Exec, Identity, Privileges, Sandbox, Size, Usage};
use crate::program::Program;
use serde::{Deserialize, Serialize};

/// What stage 0 is told on its standard input, and hands on to the shim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    /// How to run ourselves.
    pub program: Program,
    /// What to make.
    pub sandbox: Sandbox,
    /// Whether the pod is in a user namespace, in which only one user exists.
    pub mapped: bool,
}

/// What a shim says on its standard output when it listens, or why it cannot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Launched {
    /// It listens.
    Ready,
    /// Another one holds the folder.
    Taken,
    /// It gave up.
    Failed(String),
}

/// What a shim is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Are you there?
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
    /// How is each container?
    States,
    /// Answer when the states are newer than this version.
    Changed {
        /// What the asker knows.
        since: u64,
    },
    /// Run a program in a container; the connection stays.
    Exec {
        /// Which container.
        name: String,
        /// What.
        exec: Exec,
    },
    /// Join a container's streams; the connection stays.
    Attach {
        /// Which container.
        name: String,
    },
    /// On the connection of an exec or an attach: its terminal has another size now.
    Resize(Size),
    /// What does each container hold?
    Usage,
    /// Connect to a port of the pod's loopback: the connection comes with the answer.
    Connect {
        /// Which port.
        port: u16,
    },
    /// End everything.
    End,
}

/// What a shim answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// It is done. File descriptors come with it where streams were asked for.
    Done,
    /// The states.
    States(Vec<ContainerState>),
    /// The version of the states.
    Version(u64),
    /// What is held.
    Usage(Vec<Usage>),
    /// The program that was run ended so.
    Exited(i32),
    /// No container of this name was ever started.
    NoContainer(String),
    /// It is not running.
    NotRunning(String),
    /// It could not be started: the exit code that stands for it, and why.
    NotStarted(i32, String),
    /// Something else went wrong.
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
    /// The terminal's other side comes with this.
    Terminal,
    /// It could not be run: 127, 126 or 128, and why.
    Failed(i32, String),
}
