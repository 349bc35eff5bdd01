//! Messages over a Unix socket: a length, JSON, and file descriptors with the first byte.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Blocking;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// No message is longer: a container's environment is by far the longest thing that is told.
const LONGEST: usize = 16 << 20;
/// No message carries more file descriptors.
const MOST_DESCRIPTORS: usize = 8;

/// Sends a message, waiting where the other side is slow.
pub fn send(socket: &Blocking, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    let bytes = encode(message)?;
    let mut sent = 0;
    while sent < bytes.len() {
        let with = if sent == 0 { descriptors } else { &[] };
        match send_some(socket.as_fd(), &bytes[sent..], with) {
            Ok(more) => sent += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives a message; none where the other side closed the socket first.
pub fn receive<T: DeserializeOwned>(socket: &Blocking) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut incoming = Incoming::default();
    loop {
        match incoming.read(socket.as_fd()) {
            Ok(Step::More) => {}
            Ok(Step::Closed) => return Ok(None),
            Ok(Step::Whole) => return incoming.decode().map(Some),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends a message without blocking the thread.
pub async fn send_async(
    socket: &UnixStream,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    let bytes = encode(message)?;
    let mut sent = 0;
    while sent < bytes.len() {
        let with = if sent == 0 { descriptors } else { &[] };
        sent +=
            socket.async_io(Interest::WRITABLE, || send_some(socket.as_fd(), &bytes[sent..], with)).await?;
    }
    Ok(())
}

/// Receives a message without blocking the thread; none where the other side closed the socket first.
pub async fn receive_async<T: DeserializeOwned>(socket: &UnixStream) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut incoming = Incoming::default();
    loop {
        match socket.async_io(Interest::READABLE, || incoming.read(socket.as_fd())).await? {
            Step::More => {}
            Step::Closed => return Ok(None),
            Step::Whole => return incoming.decode().map(Some),
        }
    }
}

fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > LONGEST {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("a message of {length} bytes, of at most {LONGEST}"),
        ));
    }
    bytes[..4].copy_from_slice(&u32::try_from(length).expect("far below 4 GiB").to_le_bytes());
    Ok(bytes)
}

fn send_some(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Error::new(ErrorKind::InvalidInput, "too many file descriptors for one message"));
    }
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// A message on its way in. Each read takes no more than belongs to it, so that the next one's descriptors stay with it.
#[derive(Default)]
struct Incoming {
    header: [u8; 4],
    body: Option<Vec<u8>>,
    filled: usize,
    descriptors: Vec<OwnedFd>,
}

enum Step {
    More,
    Closed,
    Whole,
}

impl Incoming {
    fn read(&mut self, socket: BorrowedFd<'_>) -> Result<Step> {
        let target = match &mut self.body {
            None => &mut self.header[self.filled..],
            Some(body) => &mut body[self.filled..],
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(target)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        if got.bytes == 0 {
            let midway = self.filled > 0 || self.body.is_some();
            return if midway { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(Step::Closed) };
        }
        self.filled += got.bytes;
        if self.body.is_none() && self.filled == self.header.len() {
            let length = u32::from_le_bytes(self.header) as usize;
            if length == 0 || length > LONGEST {
                return Err(Error::new(ErrorKind::InvalidData, format!("a message of {length} bytes")));
            }
            self.body = Some(vec![0; length]);
            self.filled = 0;
            return Ok(Step::More);
        }
        let whole = self.body.as_ref().is_some_and(|body| body.len() == self.filled);
        Ok(if whole { Step::Whole } else { Step::More })
    }

    fn decode<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>)> {
        let body = self.body.take().unwrap_or_default();
        Ok((serde_json::from_slice(&body)?, std::mem::take(&mut self.descriptors)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn messages_arrive_in_order_each_with_its_descriptors() {
        let (here, there) = Blocking::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&here, &"first", &[]).unwrap();
        send(&here, &"second", &[writer.as_fd()]).unwrap();
        drop((here, writer));
        let (first, none): (String, _) = receive(&there).unwrap().unwrap();
        let (second, mut one): (String, Vec<OwnedFd>) = receive(&there).unwrap().unwrap();
        assert_eq!((first.as_str(), none.len(), second.as_str(), one.len()), ("first", 0, "second", 1));
        std::fs::File::from(one.remove(0)).write_all(b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert!(receive::<String>(&there).unwrap().is_none());
    }

    #[test]
    fn a_length_beyond_reason_is_refused_and_not_allocated() {
        let (mut here, there) = Blocking::pair().unwrap();
        here.write_all(&u32::MAX.to_le_bytes()).unwrap();
        assert_eq!(receive::<String>(&there).unwrap_err().kind(), ErrorKind::InvalidData);
        let (mut here, there) = Blocking::pair().unwrap();
        here.write_all(&[9, 0, 0, 0, b'"']).unwrap();
        drop(here);
        assert_eq!(receive::<String>(&there).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
