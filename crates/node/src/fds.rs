//! Messages with a file descriptor in them, over a Unix socket: how processes of a node hand each other what cannot be named.
//!
//! A frame is its length in four bytes, then that many bytes; a descriptor travels with the length. All of it by safe calls:
//! what is received is owned from the first moment, and closed by whoever drops it.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// The largest frame: a table of some hundred thousand endpoints. A length beyond it is no frame of ours.
const LARGEST: usize = 64 << 20;

/// What came in one frame.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Its bytes.
    pub(crate) body: Vec<u8>,
    /// What travelled with it.
    pub(crate) descriptor: Option<OwnedFd>,
}

/// Sends one frame.
pub(crate) async fn send(
    stream: &mut UnixStream,
    body: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let length = length_of(body)?;
    stream.async_io(Interest::WRITABLE, || send_head(stream.as_fd(), length, descriptor.as_slice())).await?;
    stream.write_all(body).await
}

/// Receives one frame; none where the other side has closed.
pub(crate) async fn receive(stream: &mut UnixStream) -> io::Result<Option<Frame>> {
    let Some((length, descriptor)) =
        stream.async_io(Interest::READABLE, || receive_head(stream.as_fd())).await?
    else {
        return Ok(None);
    };
    let mut body = Vec::new();
    (&mut *stream).take(length as u64).read_to_end(&mut body).await?;
    whole(body, length, descriptor).map(Some)
}

/// Sends one frame, and waits for it to be taken.
pub(crate) fn send_blocking(
    stream: &mut BlockingStream,
    body: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    send_head(stream.as_fd(), length_of(body)?, descriptor.as_slice())?;
    stream.write_all(body)
}

/// Receives one frame, and waits for it; none where the other side has closed.
pub(crate) fn receive_blocking(stream: &mut BlockingStream) -> io::Result<Option<Frame>> {
    let Some((length, descriptor)) = receive_head(stream.as_fd())? else { return Ok(None) };
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body)?;
    whole(body, length, descriptor).map(Some)
}

/// Calls `dial` with a path to `socket` that fits into an address, however deep its folder is.
///
/// # Errors
/// The folder cannot be opened, or `dial` fails.
pub(crate) fn through_folder<T>(socket: &Path, dial: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd;
    /// What `sockaddr_un` holds, with the zero at its end.
    const FITS: usize = 107;
    if socket.as_os_str().len() <= FITS {
        return dial(socket);
    }
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::Error::other("the path of a socket names no file"));
    };
    let folder = std::fs::File::open(folder)?;
    dial(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

fn length_of(body: &[u8]) -> io::Result<usize> {
    if body.len() > LARGEST { Err(io::Error::other("too large for one message")) } else { Ok(body.len()) }
}

fn send_head(stream: BorrowedFd<'_>, length: usize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let head = u32::try_from(length).map_err(io::Error::other)?.to_be_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("one descriptor at a time"));
    }
    let sent = retrying(|| sendmsg(stream, &[IoSlice::new(&head)], &mut control, SendFlags::NOSIGNAL))?;
    if sent == head.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

fn receive_head(stream: BorrowedFd<'_>) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
    let mut head = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let received = retrying(|| recvmsg(stream, &mut [IoSliceMut::new(&mut head)], &mut control, flags))?;
    let descriptor = control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => Some(descriptors.next()),
            _ => None,
        })
        .flatten();
    match received.bytes {
        0 => Ok(None),
        4 => {
            let length = u32::from_be_bytes(head) as usize;
            if length > LARGEST {
                Err(io::ErrorKind::InvalidData.into())
            } else {
                Ok(Some((length, descriptor)))
            }
        }
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn whole(body: Vec<u8>, length: usize, descriptor: Option<OwnedFd>) -> io::Result<Frame> {
    if body.len() == length {
        Ok(Frame { body, descriptor })
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn retrying<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[tokio::test]
    async fn a_descriptor_arrives_with_its_frame() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"inside").unwrap();
        send(&mut here, b"{}", Some(file.as_fd())).await.unwrap();
        send(&mut here, b"bare", None).await.unwrap();
        drop(here);

        let first = receive(&mut there).await.unwrap().unwrap();
        assert_eq!(first.body, b"{}");
        let mut same = std::fs::File::from(first.descriptor.unwrap());
        same.rewind().unwrap();
        assert_eq!(io::read_to_string(same).unwrap(), "inside");
        let second = receive(&mut there).await.unwrap().unwrap();
        assert_eq!((second.body.as_slice(), second.descriptor.is_none()), (&b"bare"[..], true));
        assert!(receive(&mut there).await.unwrap().is_none(), "closed");
    }

    #[tokio::test]
    async fn what_is_no_frame_is_refused() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(&[255, 255, 255, 255]).await.unwrap();
        assert_eq!(receive(&mut there).await.unwrap_err().kind(), io::ErrorKind::InvalidData);

        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(&[0, 0, 0, 9, 1]).await.unwrap();
        drop(here);
        assert_eq!(receive(&mut there).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
