//! What a shim is told and what it tells. It knows nothing of Kubernetes: the node has resolved it all.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A pod's own namespaces, to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The pod's UID: also the name of its folder.
    pub uid: String,
    /// The pod's folder: the shim keeps its socket, its pid and its state there, and finds them again.
    pub folder: PathBuf,
    /// What the pod calls its machine.
    pub hostname: String,
    /// The process whose user namespace is joined first; none where the node is root.
    pub user_namespace_of: Option<i32>,
    /// Its network; none for a pod on the host's network.
    pub network: Option<Attachment>,
    /// Volumes that are memory.
    #[serde(default)]
    pub memory: Vec<Memory>,
    /// Settings of the kernel in the pod's namespaces: names with dots between their parts, and values.
    #[serde(default)]
    pub sysctls: Vec<(String, String)>,
}

/// A volume that is memory: mounted over a folder of the host, and seen only in the pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The folder.
    pub path: PathBuf,
    /// How many bytes it may hold; none for half of the machine's memory.
    pub limit: Option<u64>,
}

/// How a pod is joined to the node's network. The shim makes a network namespace, and asks the network process over its socket
/// to put an interface into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Where the network process listens.
    pub socket: PathBuf,
    /// The pod's address.
    pub address: Ipv4Addr,
}

/// One container, to be started once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its name in the pod.
    pub name: String,
    /// How many times it was started before: names its log and its state.
    pub attempt: u32,
    /// The program, and its arguments; the program is looked up in the container's own `PATH`.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Where it starts; made if it is absent.
    pub folder: Option<PathBuf>,
    /// What it sees as `/`.
    pub root: Root,
    /// What is shown in it, in the order in which it is mounted.
    pub binds: Vec<Bind>,
    /// As whom it runs.
    pub identity: Identity,
    /// Whether `/` cannot be written.
    pub read_only_root: bool,
    /// Whether its streams are a terminal.
    pub terminal: bool,
    /// Whether its standard input stays open for who attaches; otherwise it is empty.
    pub stdin: bool,
    /// Whether its standard input ends when the first who attached leaves.
    #[serde(default)]
    pub stdin_once: bool,
    /// With which rights it runs.
    #[serde(default)]
    pub privileges: Privileges,
    /// Whose processes it sees.
    #[serde(default)]
    pub processes: Processes,
    /// Where its log is written, in the format of the CRI; rotated by the shim.
    pub log: PathBuf,
    /// The most memory it may hold, in bytes; above it is killed, and reported as such.
    pub memory_limit: Option<u64>,
    /// Where it may leave its last words, as a path in the container, and the file of the host that holds them.
    pub termination_message: Option<Bind>,
}

/// Whose processes a container sees, and can signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Processes {
    /// Its own alone.
    #[default]
    Own,
    /// Those of all containers of the pod that say the same.
    OfPod,
    /// Those of another container, which has to run, and with which it ends.
    Of(String),
}

/// What a container sees as its root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// An own, empty and writable root (kept in this folder) in which these paths of the host are shown, read-only.
    Shown {
        /// Where what the container writes outside its volumes is kept.
        writable: PathBuf,
        /// Paths of the host.
        paths: Vec<PathBuf>,
    },
    /// An unpacked root file system: writes go to the folder `writable` where overlays are possible, otherwise into a copy.
    FileSystem {
        /// The unpacked image.
        image: PathBuf,
        /// Where writes are kept.
        writable: PathBuf,
    },
}

/// A path of the host, shown in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// On the host.
    pub from: PathBuf,
    /// In the container.
    pub to: PathBuf,
    /// Whether the container cannot write it.
    pub read_only: bool,
}

/// As whom a container runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// User.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Further groups (fsGroup is one).
    pub groups: Vec<u32>,
}

/// With which rights a container runs, beside those of its user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges {
    /// Whether no program it runs may gain rights (`allowPrivilegeEscalation: false`).
    pub no_new: bool,
    /// Capabilities beyond the usual, without `CAP_`; `ALL` means all.
    pub add: Vec<String>,
    /// Capabilities of the usual that it does without; `ALL` means all.
    pub drop: Vec<String>,
}

/// A program to run in a container that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The program, and its arguments.
    pub command: Vec<String>,
    /// Whether its streams are a terminal.
    pub terminal: bool,
    /// Whether it is given a standard input; otherwise it is empty.
    pub stdin: bool,
    /// How large its terminal is at first.
    pub size: Option<Size>,
}

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Its width.
    pub columns: u16,
    /// Its height.
    pub rows: u16,
}

/// What a container holds, and what it has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The container's name.
    pub name: String,
    /// Processor time since its start, in nanoseconds; counted in hundredths of a second.
    pub cpu_nanoseconds: u64,
    /// Memory it holds now, in bytes; what several of its processes share is counted once.
    pub memory_bytes: u64,
    /// How many processes it has.
    pub processes: u32,
}

/// Where a container is in its life, as its shim saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerState {
    /// Its name.
    pub name: String,
    /// Which start of it.
    pub attempt: u32,
    /// What became of it.
    pub phase: Phase,
}

/// What became of a container. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It runs.
    Running {
        /// Its first process, as the pod's namespace counts.
        pid: i32,
        /// Since when.
        started: i64,
    },
    /// It ended.
    Exited {
        /// Since when it ran.
        started: i64,
        /// When it ended.
        finished: i64,
        /// Its exit code; 128 + the signal's number where a signal ended it.
        code: i32,
        /// Whether it was killed for the memory it held.
        out_of_memory: bool,
    },
    /// It never ran: the program is absent, is no program, or a mount failed.
    Failed {
        /// When.
        at: i64,
        /// 127 where the program is absent, 126 where it cannot be run, 128 for all else, as runc has it.
        code: i32,
        /// What to tell the user.
        message: String,
    },
}

impl Phase {
    /// The exit code, of one that ended or never ran.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Running { .. } => None,
            Self::Exited { code, .. } | Self::Failed { code, .. } => Some(*code),
        }
    }
}
