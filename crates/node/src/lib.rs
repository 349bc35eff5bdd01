//! A node that runs pods as processes, on Linux, without a container runtime.
//!
//! Three kinds of process take part, all of them the one `windlass` program under hidden subcommands:
//!
//! - the **node** itself, an ordinary API client: it watches the pods that are bound to it, decides, and reports;
//! - one **network** process, which owns the namespaces all pods of the node share an interest in: the network namespace
//!   with the bridge and, for an unprivileged user, the user namespace. It answers DNS and carries Services;
//! - one **shim** per pod, process 1 of the pod's own namespaces: it starts, reaps and signals containers and writes their logs.
//!   It outlives the node, and ending it ends everything in the pod.

mod aside;
pub mod doctor;
pub mod images;
pub mod logs;
pub mod net;
mod node;
mod pods;
mod pressure;
mod probes;
pub mod server;
pub mod shim;
mod volumes;

pub use node::{JoinError, Node, Options, end_processes};
pub use pressure::{Eviction, Least, NoThreshold, Short, Signal};

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the hidden subcommand that these arguments (without the program's name) ask for, if they ask for one. A program that
/// hosts a node calls this first of all, before it has a second thread: namespaces cannot be entered by one thread of several.
pub fn hidden(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let subcommand = arguments.next()?;
    let rest = || arguments.collect::<Vec<_>>();
    match subcommand.to_str()? {
        "pod-doctor" => Some(doctor::try_out(&rest())),
        "pod-network" => Some(net::main(&rest())),
        "pod-shim" => Some(shim::launch()),
        "pod-shim-inside" => Some(shim::serve()),
        "pod-container" => Some(shim::enter()),
        _ => None,
    }
}
