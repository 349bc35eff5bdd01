//! A kubelet that runs pods as processes, on Linux, without a container runtime.
//!
//! Three kinds of process take part, all of them the one `windlass` program under hidden subcommands:
//!
//! - the **kubelet** itself, an ordinary API client: it watches the pods that are bound to its node, syncs them, and reports their
//!   status;
//! - one **network** process, which owns the namespaces that all pods of the node depend on: the network namespace with the bridge
//!   and, for an unprivileged user, the user namespace. It serves DNS and proxies Services;
//! - one **shim** per pod, PID 1 of the pod's own namespaces: it starts, reaps and signals containers and writes their logs. It
//!   outlives the kubelet, and killing it kills everything in the pod.
//!
//! | module | what |
//! |---|---|
//! | `kubelet` | [`Kubelet`]: joins a cluster and starts everything below |
//! | `pods` | the pod workers: observe, decide, act, report |
//! | `eviction` | the eviction manager: node pressure, and who is evicted |
//! | `probes` | startup, readiness and liveness probes, and lifecycle hooks |
//! | `volumes`, `references` | volumes, and the objects and fields that they and the environment are made of |
//! | [`images`] | images without a registry: programs and archives of this machine |
//! | [`logs`], [`server`] | container logs, and the HTTPS server that kubectl reaches through the API |
//! | [`shim`] | the sandbox of a pod and its containers |
//! | [`net`] | the network of the node: pod IPs, DNS, Services |
//! | [`doctor`] | whether this machine can run pods as processes |
//! | `file_tree`, `path_below` | trees and paths that pods can change while they are used |
//! | `program`, `process_record`, `ipc`, `stderr_log` | what the three kinds of process have in common |

pub mod doctor;
mod eviction;
pub mod file_tree;
pub mod images;
mod ipc;
mod kubelet;
pub mod logs;
pub mod net;
mod path_below;
mod pods;
mod probes;
mod process_record;
mod program;
mod references;
pub mod server;
pub mod shim;
mod stderr_log;
mod volumes;

pub use eviction::{EvictionConfig, InvalidThreshold, Pressure, Signal, Threshold};
pub use kubelet::{Clients, JoinError, Kubelet, Options, has_processes, kill_processes};
pub use program::{Program, close_inherited_descriptors};

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the hidden subcommand that these arguments (without the program's name) name, if they do. A program that hosts a kubelet
/// calls this first of all, before it has a second thread: a process with several threads cannot enter namespaces.
pub fn run_hidden_subcommand(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let subcommand = arguments.next()?;
    let rest = || arguments.collect::<Vec<_>>();
    let subcommand = subcommand.to_str()?;
    if subcommand.starts_with("pod-") {
        close_inherited_descriptors();
    }
    match subcommand {
        "pod-doctor" => Some(doctor::run_checks(&rest())),
        "pod-network" => Some(net::main(&rest())),
        "pod-shim" => Some(shim::launch()),
        "pod-shim-inside" => Some(shim::serve()),
        "pod-container" => Some(shim::enter()),
        _ => None,
    }
}
