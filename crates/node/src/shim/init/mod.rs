//! The first stage of a container: this program, in the container's namespace of processes, until it becomes the container's
//! own program.

mod devices;
mod keyring;
pub(super) mod mounts;
mod pause;
mod root;
mod run;
mod terminal;

use super::protocol::{Joining, Making, Order, Staged};
use super::user_namespace;
use crate::ipc;
use nix::sched::{CloneFlags, setns};
use run::Run;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Why a container's program does not run: the exit code that stands for it, and what to tell.
#[derive(Debug)]
pub struct Fault {
    code: i32,
    message: String,
}

impl Fault {
    /// All that is no fault of the program itself.
    fn during(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { code: 128, message: format!("cannot {}: {error}", what.into()) }
    }
}

/// Becomes a container's program, or says why not.
pub fn enter() -> ExitCode {
    // Standard input is the socket to the shim; a copy of it closes by itself when the program runs.
    let socket = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => UnixStream::from(socket),
        Err(_) => return ExitCode::FAILURE,
    };
    if ipc::send(&socket, &Staged::Up, &[]).is_err() {
        return ExitCode::FAILURE;
    }
    let fault = match ipc::receive::<Order>(&socket) {
        Ok(Some((Order::Make(making), streams))) => make(&socket, *making, streams),
        Ok(Some((Order::Join(joining), descriptors))) => join(&socket, joining, descriptors),
        Ok(Some((Order::Hold, _))) => pause::pause(),
        // The shim died.
        Ok(None) | Err(_) => return ExitCode::FAILURE,
    };
    let code = u8::try_from(fault.code).unwrap_or(128);
    let _ = ipc::send(&socket, &Staged::Failed(fault.code, fault.message), &[]);
    ExitCode::from(code)
}

/// Returns only with what is wrong.
fn make(socket: &UnixStream, making: Making, streams: Vec<OwnedFd>) -> Fault {
    let attempt = || -> Result<std::convert::Infallible, Fault> {
        let container = &making.container;
        let _ = rustix::process::setsid();
        keyring::renew();
        root::build(&making)?;
        let identity = &container.identity;
        let streams = if container.terminal { terminal::open(socket, identity)? } else { streams };
        if making.mapped {
            user_namespace::become_user(identity.user, identity.group)
                .map_err(Fault::during("become the container's user"))?;
        }
        let mut environment = container.environment.clone();
        run::complete(&mut environment, "HOSTNAME", &making.hostname);
        let run = Run {
            command: &container.command,
            environment,
            folder: container.folder.as_deref(),
            identity,
            privileges: &container.privileges,
            terminal: container.terminal,
            mapped: making.mapped,
            first: true,
        };
        Err(run.run(&streams))
    };
    attempt().unwrap_err()
}

/// Returns only with what is wrong.
fn join(socket: &UnixStream, joining: Joining, descriptors: Vec<OwnedFd>) -> Fault {
    let attempt = || -> Result<std::convert::Infallible, Fault> {
        let _ = rustix::process::setsid();
        keyring::renew();
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| Fault::during("be told of namespaces")(io::ErrorKind::NotFound.into()))
        };
        let mounts = next()?;
        let own_users = if joining.mapped { Some(next()?) } else { None };
        let entered = |result: nix::Result<()>| {
            result.map_err(|error| Fault::during("join the container")(error.into()))
        };
        entered(setns(mounts, CloneFlags::CLONE_NEWNS))?;
        let exec = &joining.exec;
        let streams =
            if exec.terminal { terminal::open(socket, &joining.identity)? } else { descriptors.collect() };
        if let Some(own_users) = own_users {
            entered(setns(own_users, CloneFlags::CLONE_NEWUSER))?;
        }
        let run = Run {
            command: &exec.command,
            environment: joining.environment,
            folder: joining.folder.as_deref(),
            identity: &joining.identity,
            privileges: &joining.privileges,
            terminal: exec.terminal,
            mapped: joining.mapped,
            first: false,
        };
        Err(run.run(&streams))
    };
    attempt().unwrap_err()
}
