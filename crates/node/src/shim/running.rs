//! A program that was run in a container, or a container one has attached to, as seen from the node.

use super::client::ShimError;
use super::protocol::{Reply, Request};
use super::spec::Size;
use crate::ipc;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// A program that runs in a container. Dropping it kills what [`Shim::exec`](super::Shim::exec) ran, and only leaves what
/// [`Shim::attach`](super::Shim::attach) joined.
#[derive(Debug)]
pub struct Running {
    /// Its standard input; dropping it ends the input, except that of a terminal.
    pub stdin: Option<Input>,
    /// Its standard output; of a terminal, all output.
    pub stdout: Option<Output>,
    /// Its standard error; a terminal has none.
    pub stderr: Option<Output>,
    /// What is left when its streams are taken.
    pub control: Control,
}

/// The part of a [`Running`] that resizes and waits.
#[derive(Debug)]
pub struct Control(UnixStream);

impl Control {
    /// Tells a terminal its size; without a terminal nothing happens.
    ///
    /// # Errors
    /// [`ShimError::Gone`].
    pub async fn resize(&self, size: Size) -> Result<(), ShimError> {
        ipc::send_async(&self.0, &Request::Resize(size), &[]).await.map_err(|_| ShimError::Gone)
    }

    /// Waits for its end, and returns its exit code: 128 and the signal's number where a signal ended it.
    ///
    /// # Errors
    /// [`ShimError::Gone`] where the whole pod ended.
    pub async fn wait(&self) -> Result<i32, ShimError> {
        match ipc::receive_async(&self.0).await {
            Ok(Some((Reply::Exited(code), _))) => Ok(code),
            Ok(Some(_)) => Err(ShimError::UnexpectedReply),
            Ok(None) | Err(_) => Err(ShimError::Gone),
        }
    }
}

impl Running {
    pub(super) fn of_exec(
        socket: UnixStream,
        descriptors: Vec<OwnedFd>,
        terminal: bool,
        stdin: bool,
    ) -> Result<Self, ShimError> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(ShimError::UnexpectedReply);
        let control = Control(socket);
        if terminal {
            let (stdin, stdout) = (input(next()?)?, Output::new(next()?)?);
            return Ok(Self { stdin: Some(stdin), stdout: Some(stdout), stderr: None, control });
        }
        let (stdout, stderr) = (Some(Output::new(next()?)?), Some(Output::new(next()?)?));
        let stdin = if stdin { Some(input(next()?)?) } else { None };
        Ok(Self { stdin, stdout, stderr, control })
    }

    /// Output, error output, and the input where there is one.
    pub(super) fn of_attach(socket: UnixStream, descriptors: Vec<OwnedFd>) -> Result<Self, ShimError> {
        let stdin = descriptors.len() > 2;
        Self::of_exec(socket, descriptors, false, stdin)
    }
}

/// What is read from a program: a pipe's end, or a terminal's other side.
#[derive(Debug)]
pub struct Output(Receiver);

/// What a program reads: a pipe's end, or a terminal's other side.
pub type Input = Sender;

impl Output {
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        never_block(&descriptor)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(descriptor)?))
    }
}

pub(super) fn input(descriptor: OwnedFd) -> io::Result<Input> {
    never_block(&descriptor)?;
    Sender::from_owned_fd_unchecked(descriptor)
}

fn never_block(descriptor: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    Ok(rustix::fs::fcntl_setfl(descriptor, flags | rustix::fs::OFlags::NONBLOCK)?)
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(context, buffer)) {
            // So a terminal says that its last program is gone.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Poll::Ready(Ok(()))
            }
            other => Poll::Ready(other),
        }
    }
}
