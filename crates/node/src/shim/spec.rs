//! The types of a shim's protocol. A shim knows nothing of Kubernetes: the kubelet has resolved everything.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The sandbox of a pod: its namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The pod's UID, which is also the name of its directory.
    pub uid: String,
    /// The pod's directory, which contains the shim's socket, its PID file and the container states.
    pub folder: PathBuf,
    /// The pod's hostname.
    pub hostname: String,
    /// The process whose user namespace is joined first; `None` if the kubelet is root.
    pub user_namespace_of: Option<i32>,
    /// Its network; `None` for the host network.
    pub network: Option<Attachment>,
    /// `emptyDir` volumes in memory.
    #[serde(default)]
    pub memory: Vec<Memory>,
    /// Sysctls, with dotted names.
    #[serde(default)]
    pub sysctls: Vec<(String, String)>,
}

/// An `emptyDir` in memory: a tmpfs on a directory of the host, visible in the pod only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The directory.
    pub path: PathBuf,
    /// Its size limit in bytes; `None` for the kernel's default.
    pub limit: Option<u64>,
}

/// How a pod is attached to the node's network. The shim creates a network namespace, and asks the network process to create an
/// interface in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The socket of the network process.
    pub socket: PathBuf,
    /// The pod's IP.
    pub address: Ipv4Addr,
}

/// A container attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its name in the pod.
    pub name: String,
    /// The restart count, which is part of the names of its log and its state.
    pub attempt: u32,
    /// The program, which is looked up in the container's `PATH`, and its arguments.
    pub command: Vec<String>,
    /// Its complete environment.
    pub environment: Vec<(String, String)>,
    /// Its working directory, which is created if it does not exist.
    pub folder: Option<PathBuf>,
    /// Its root file system.
    pub root: Root,
    /// Files of its image that are written to its root before anything is mounted over them.
    #[serde(default)]
    pub files: Vec<ImageFile>,
    /// Its bind mounts, in order.
    pub binds: Vec<Bind>,
    /// Its user and groups.
    pub identity: Identity,
    /// Whether its root is read-only.
    pub read_only_root: bool,
    /// Whether it gets a terminal (`tty`).
    pub terminal: bool,
    /// Whether its standard input stays open for attach; otherwise it is empty.
    pub stdin: bool,
    /// Whether its standard input is closed when the first attached client disconnects.
    #[serde(default)]
    pub stdin_once: bool,
    /// Its capabilities.
    #[serde(default)]
    pub privileges: Privileges,
    /// Its PID namespace.
    #[serde(default)]
    pub processes: Processes,
    /// Its log, in the CRI format, which the shim rotates.
    pub log: PathBuf,
    /// Its memory limit in bytes; above it is killed, and reported as OOMKilled.
    pub memory_limit: Option<u64>,
    /// The bind mount of its termination message.
    pub termination_message: Option<Bind>,
}

/// The PID namespace of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Processes {
    /// Its own.
    #[default]
    Own,
    /// The pod's (`shareProcessNamespace`).
    OfPod,
    /// That of another container, which has to be running, and with which it terminates.
    Of(String),
}

/// The root file system of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// An empty, writable root into which these paths of the host are mounted, read-only.
    Shown {
        /// The directory of the writable layer.
        writable: PathBuf,
        /// The paths of the host.
        paths: Vec<PathBuf>,
    },
    /// An unpacked root file system. Writes go to an overlay in `writable`, or to a copy if overlays are not possible.
    FileSystem {
        /// The unpacked image.
        image: PathBuf,
        /// The directory of the writable layer.
        writable: PathBuf,
    },
}

/// A file of an image that is an ordinary file of the container: it can be changed, renamed and removed there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFile {
    /// The path on the host, of what is copied with its mode.
    pub from: PathBuf,
    /// The path in the container.
    pub to: PathBuf,
}

/// A bind mount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The path on the host.
    pub from: PathBuf,
    /// What of it is mounted (`subPath`): a path that is resolved below `from` when it is mounted, and may not lead out. A directory is
    /// made where it is absent.
    #[serde(default)]
    pub part: Option<PathBuf>,
    /// The path in the container.
    pub to: PathBuf,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether devices and set-user-ID programs on it work, as on a directory of the machine that a pod asked for.
    #[serde(default)]
    pub devices: bool,
}

/// The user and groups of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The UID.
    pub user: u32,
    /// The primary GID.
    pub group: u32,
    /// Supplementary groups, with fsGroup.
    pub groups: Vec<u32>,
}

/// The capabilities of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges {
    /// Whether `no_new_privs` is set (`allowPrivilegeEscalation: false`).
    pub no_new: bool,
    /// Capabilities that are added to the default ones, without `CAP_`; `ALL` means all.
    pub add: Vec<String>,
    /// Capabilities that are dropped from the default ones; `ALL` means all.
    pub drop: Vec<String>,
}

/// A program to be run in a running container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The program, and its arguments.
    pub command: Vec<String>,
    /// Whether it gets a terminal (`tty`).
    pub terminal: bool,
    /// Whether it gets a standard input; otherwise it is empty.
    pub stdin: bool,
    /// The initial size of its terminal.
    pub size: Option<Size>,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Its width.
    pub columns: u16,
    /// Its height.
    pub rows: u16,
}

/// The resource usage of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The container's name.
    pub name: String,
    /// CPU time since its start, in nanoseconds, with a resolution of a hundredth of a second.
    pub cpu_nanoseconds: u64,
    /// Memory in bytes; what several of its processes share is counted once.
    pub memory_bytes: u64,
    /// The number of its processes.
    pub processes: u32,
}

/// The state of a container attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerState {
    /// Its name.
    pub name: String,
    /// The restart count.
    pub attempt: u32,
    /// Its phase.
    pub phase: Phase,
}

/// The phase of a container attempt. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It is running.
    Running {
        /// The PID of its first process, in the pod's namespace.
        pid: i32,
        /// When it was started.
        started: i64,
    },
    /// It terminated.
    Exited {
        /// When it was started.
        started: i64,
        /// When it terminated.
        finished: i64,
        /// Its exit code; 128 + N after signal N.
        code: i32,
        /// Whether it was OOM killed.
        out_of_memory: bool,
    },
    /// It was not started: the program does not exist or cannot be executed, or a mount failed.
    Failed {
        /// When.
        at: i64,
        /// 127 if the program does not exist, 126 if it cannot be executed, 128 otherwise, as runc has it.
        code: i32,
        /// The message for the user.
        message: String,
    },
}

impl Phase {
    /// The exit code, unless it is running.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Running { .. } => None,
            Self::Exited { code, .. } | Self::Failed { code, .. } => Some(*code),
        }
    }
}
