//! The shim itself: `pod-shim` creates the namespaces, and `pod-shim-inside` is PID 1 in them.

mod children;
mod connect;
mod containers;
mod exec;
mod logs;
mod memory;
mod output;
mod own_program;
mod requests;
mod setup;

use super::protocol::{Launch, Launched};
use super::{capabilities, user_namespace};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::process::{ExitCode, Stdio};

pub use setup::serve;

/// Creates a pod's namespaces, starts PID 1 in them, and exits. Only children enter a new PID namespace, so this takes two
/// processes.
pub fn launch() -> ExitCode {
    match begin() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&Launched::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn begin() -> io::Result<()> {
    let mut launch = read_launch()?;
    // Whoever started the node may end it from a terminal; the pods stay.
    let _ = rustix::process::setsid();
    launch.mapped = user_namespace::enter(launch.sandbox.user_namespace_of)
        .map_err(because("enter the user namespace"))?;
    let mut namespaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    if launch.sandbox.network.is_some() {
        namespaces |= CloneFlags::CLONE_NEWNET;
    }
    unshare(namespaces).map_err(because("create namespaces"))?;
    if launch.mapped {
        capabilities::keep_over_exec().map_err(because("keep the rights of the user namespace"))?;
    }
    follow_the_host()?;
    launch.program = own_program::seal(&launch.sandbox.folder, &launch.program)
        .map_err(because("keep this program from the pod"))?;
    let log = OpenOptions::new().create(true).append(true).open(launch.sandbox.folder.join("shim.log"))?;
    let mut command = launch.program.command("pod-shim-inside");
    command.arg(&launch.sandbox.uid).stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(log);
    let mut inside = command.spawn().map_err(because("run the shim"))?;
    let mut input = inside.stdin.take().expect("it was asked for");
    input.write_all(&serde_json::to_vec(&launch)?)
}

/// What the host mounts or unmounts is followed, and nothing mounted here is seen there.
fn follow_the_host() -> io::Result<()> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)
        .map_err(because("part from the host's mounts"))
}

/// Reads the input of the shim.
fn read_launch() -> io::Result<Launch> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Reports to the kubelet.
fn report(launched: &Launched) {
    let text = serde_json::to_vec(launched).unwrap_or_default();
    let _ = io::stdout().lock().write_all(&text);
    let _ = io::stdout().lock().flush();
}

/// An error that says during what.
fn because<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> io::Error {
    move |error| io::Error::other(format!("cannot {what}: {error}"))
}
