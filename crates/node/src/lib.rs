//! A node that runs pods as processes, on Linux, without a container runtime.
//!
//! Three kinds of process take part, all of them the one `windlass` program under hidden subcommands:
//!
//! - the **node** itself, an ordinary API client: it watches the pods that are bound to it, decides, and reports;
//! - one **network** process, which owns the namespaces all pods of the node share an interest in: the network namespace
//!   with the bridge and, for an unprivileged user, the user namespace. It answers DNS and carries Services;
//! - one **shim** per pod, process 1 of the pod's own namespaces: it starts, reaps and signals containers and writes their logs.
//!   It outlives the node, and ending it ends everything in the pod.

mod fds;
pub mod logs;
pub mod net;
pub mod server;
pub mod shim;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the hidden subcommand that these arguments (without the program's name) ask for, if they ask for one. A program that hosts a
/// node calls this first of all, before it has a second thread:
/// namespaces cannot be entered by one thread of several.
pub fn hidden(arguments: &[OsString]) -> Option<ExitCode> {
    let (subcommand, arguments) = arguments.split_first()?;
    match subcommand.to_str()? {
        "pod-network" => Some(net::main(arguments)),
        "pod-shim" => Some(shim::launch()),
        "pod-shim-inside" => Some(shim::serve()),
        "pod-container" => Some(shim::enter()),
        _ => None,
    }
}
