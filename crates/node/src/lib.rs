//! A node that runs pods as processes, on Linux, without a container runtime.
//!
//! Three kinds of process take part, all of them the one `windlass` program under hidden subcommands:
//!
//! - the **node** itself, an ordinary API client: it watches the pods that are bound to it, decides, and reports;
//! - one **network** process, which owns the namespaces all pods of the node share an interest in: the network namespace
//!   with the bridge and, for an unprivileged user, the user namespace. It answers DNS and carries Services;
//! - one **shim** per pod, process 1 of the pod's own namespaces: it starts, reaps and signals containers and writes their logs.
//!   It outlives the node, and ending it ends everything in the pod.

pub mod logs;
pub mod net;
pub mod server;
pub mod shim;
