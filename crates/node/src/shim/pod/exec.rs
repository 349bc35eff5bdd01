//! Programs run in a container that is there, and whoever attaches to it.

use super::super::protocol::{Joining, Order, Reply, Request};
use super::super::running::input;
use super::super::spec::{Exec, Size};
use super::children::{Child, Place};
use super::containers::{Entry, Progress, pipe, staged};
use super::requests::Pod;
use crate::ipc;
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use tokio::net::UnixStream;

/// Runs a program, passes its streams to who asked, tells its end, and kills it where the asker leaves first.
pub async fn exec(pod: &Rc<Pod>, socket: &UnixStream, name: &str, exec: Exec) {
    let size = exec.size;
    let (child, streams) = match begin(pod, name, exec).await {
        Ok(begun) => begun,
        Err(reply) => {
            let _ = ipc::send_async(socket, &reply, &[]).await;
            return;
        }
    };
    let terminal = streams.terminal;
    if let (Some(terminal), Some(size)) = (&terminal, size) {
        resize(terminal, size);
    }
    let told = hand_over(socket, streams.passed).await;
    let mut exit = child.exit;
    if told.is_ok() {
        loop {
            tokio::select! {
                code = &mut exit => {
                    let _ = ipc::send_async(socket, &Reply::Exited(code.unwrap_or(128)), &[]).await;
                    return;
                }
                message = ipc::receive_async::<Request>(socket) => match (message, &terminal) {
                    (Ok(Some((Request::Resize(size), _))), Some(terminal)) => resize(terminal, size),
                    (Ok(Some(_)), _) => {}
                    (Ok(None) | Err(_), _) => break,
                },
            }
        }
    }
    pod.children.kill_group(child.pid);
}

/// Shows a container's output to who asked, and lets it write to the input where there is one.
pub async fn attach(pod: &Rc<Pod>, socket: &UnixStream, name: &str) {
    let refused = match pod.entry(name) {
        None => Reply::NoContainer(name.into()),
        Some(entry) if *entry.progress.borrow() == Progress::Running => match join(&entry) {
            Ok(passed) => return stay(pod, socket, &entry, passed).await,
            Err(error) => Reply::Failed(format!("cannot attach to container {name}: {error}")),
        },
        Some(_) => Reply::NotRunning(name.into()),
    };
    let _ = ipc::send_async(socket, &refused, &[]).await;
}

async fn stay(pod: &Rc<Pod>, socket: &UnixStream, entry: &Rc<Entry>, passed: Vec<OwnedFd>) {
    let told = hand_over(socket, passed).await;
    let (name, attempt) = (&entry.spec.name, entry.spec.attempt);
    while told.is_ok() {
        tokio::select! {
            () = entry.reaches(Progress::Ended) => {
                let code = pod.state(name, attempt).and_then(|state| state.phase.code());
                let _ = ipc::send_async(socket, &Reply::Exited(code.unwrap_or(128)), &[]).await;
                return;
            }
            message = ipc::receive_async::<Request>(socket) => match message {
                Ok(Some((Request::Resize(size), _))) => {
                    if let Some(terminal) = &*entry.terminal.borrow() {
                        resize(terminal, size);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            },
        }
    }
    if entry.spec.stdin_once {
        entry.stdin.take();
    }
}

/// Output, error output, and the input where there is one.
fn join(entry: &Entry) -> io::Result<Vec<OwnedFd>> {
    let (output, errors) = (pipe()?, pipe()?);
    entry.stdout.borrow_mut().push(input(output.1)?);
    let mut passed = vec![output.0, errors.0];
    let stdin = if let Some(terminal) = &*entry.terminal.borrow() {
        Some(terminal.try_clone()?)
    } else {
        entry.stderr.borrow_mut().push(input(errors.1)?);
        entry.stdin.borrow().as_ref().map(OwnedFd::try_clone).transpose()?
    };
    passed.extend(stdin.filter(|_| entry.spec.stdin));
    Ok(passed)
}

/// Passes streams on, and keeps none: a pipe ends when its last holder is gone.
async fn hand_over(socket: &UnixStream, streams: Vec<OwnedFd>) -> io::Result<()> {
    let borrowed: Vec<_> = streams.iter().map(AsFd::as_fd).collect();
    ipc::send_async(socket, &Reply::Done, &borrowed).await
}

fn resize(terminal: &OwnedFd, size: Size) {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    let _ = tcsetwinsize(terminal, size);
}

/// The node's ends of a program's streams.
#[derive(Default)]
struct Ends {
    passed: Vec<OwnedFd>,
    terminal: Option<OwnedFd>,
}

async fn begin(pod: &Rc<Pod>, name: &str, exec: Exec) -> Result<(Child, Ends), Reply> {
    let failed =
        |error: io::Error| Reply::Failed(format!("cannot run a program in container {name}: {error}"));
    let entry = pod.entry(name).ok_or_else(|| Reply::NoContainer(name.into()))?;
    if exec.command.is_empty() {
        return Err(Reply::Failed("there is no command to run".into()));
    }
    let (child, mut ends) = {
        let namespaces = entry.namespaces.borrow();
        let Some(namespaces) = namespaces.as_ref() else { return Err(Reply::NotRunning(name.into())) };
        let mapped = pod.launch.mapped;
        let (mut theirs, mut ends) = (Vec::<OwnedFd>::new(), Ends::default());
        if !exec.terminal {
            let (output, errors) = (pipe().map_err(failed)?, pipe().map_err(failed)?);
            let input = if exec.stdin {
                pipe().map(|(theirs, ours)| (theirs, Some(ours)))
            } else {
                File::open("/dev/null").map(|null| (null.into(), None))
            };
            let (input, ours) = input.map_err(failed)?;
            theirs = vec![input, output.1, errors.1];
            ends.passed = vec![output.0, errors.0];
            ends.passed.extend(ours);
        }
        let order = Order::Join(Joining {
            environment: entry.spec.environment.clone(),
            folder: entry.spec.folder.clone(),
            identity: entry.spec.identity.clone(),
            privileges: entry.spec.privileges.clone(),
            mapped,
            exec,
        });
        let mut descriptors = vec![namespaces.mounts.as_fd()];
        if mapped {
            descriptors.push(namespaces.users.as_fd());
        }
        descriptors.extend(theirs.iter().map(AsFd::as_fd));
        let spawned = pod.children.spawn(&Place::Of(&namespaces.processes), &order, &descriptors);
        (spawned.map_err(failed)?, ends)
    };
    match staged(&child.socket).await {
        Ok(terminal) => ends.terminal = terminal,
        Err((code, message)) => return Err(Reply::NotStarted(code, message)),
    }
    if let Some(terminal) = &ends.terminal {
        // Once to write to and once to read from.
        ends.passed = vec![terminal.try_clone().map_err(failed)?, terminal.try_clone().map_err(failed)?];
    }
    Ok((child, ends))
}
