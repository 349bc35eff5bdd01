//! A directory over a connection, and back: a tar archive that is never whole in memory.
//!
//! The files are read and written where blocking is allowed; a short queue of pieces leads to the connection and from it.

use bytes::Bytes;
use std::io::{self, Read, Write};
use std::path::Path;
use tokio::sync::mpsc;

/// How many pieces may wait.
const QUEUE: usize = 16;
/// How large a piece is at most.
const PIECE: usize = 128 * 1024;

/// What a piece is on its way.
pub(super) type Piece = Result<Bytes, io::Error>;

/// Both ends of a queue.
pub(super) fn queue() -> (mpsc::Sender<Piece>, mpsc::Receiver<Piece>) {
    mpsc::channel(QUEUE)
}

/// Writes a directory as a tar archive.
pub(super) fn write(directory: &Path, to: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    archive.follow_symlinks(false);
    archive.append_dir_all("", directory)?;
    archive.into_inner()?.flush()
}

/// Unpacks a tar archive into a directory that is there. Nothing is written beside it.
pub(super) fn unpack(from: impl Read, directory: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(from);
    archive.set_preserve_mtime(false);
    archive.set_preserve_permissions(true);
    archive.unpack(directory)
}

/// Writes into a queue.
pub(super) struct QueueWriter {
    queue: mpsc::Sender<Piece>,
    piece: Vec<u8>,
}

impl QueueWriter {
    pub(super) fn new(queue: mpsc::Sender<Piece>) -> Self {
        Self { queue, piece: Vec::with_capacity(PIECE) }
    }

    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads it any more");
        self.queue.blocking_send(Ok(piece.into())).map_err(gone)
    }
}

impl Write for QueueWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        if self.piece.len() == PIECE {
            self.send()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() { Ok(()) } else { self.send() }
    }
}

/// Reads from a queue; its end is the end.
pub(super) struct QueueReader {
    queue: mpsc::Receiver<Piece>,
    piece: Bytes,
}

impl QueueReader {
    pub(super) fn new(queue: mpsc::Receiver<Piece>) -> Self {
        Self { queue, piece: Bytes::new() }
    }
}

impl Read for QueueReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.queue.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let count = to.len().min(self.piece.len());
        to[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_queue_carries_everything_and_an_error_is_no_end() {
        let (sender, receiver) = queue();
        let broken = sender.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut writer = QueueWriter::new(sender);
            writer.write_all(&vec![1; 3 * PIECE + 5])?;
            writer.flush()
        });
        let read = tokio::task::spawn_blocking(move || {
            let mut reader = QueueReader::new(receiver);
            let mut whole = vec![0; 3 * PIECE + 5];
            reader.read_exact(&mut whole).unwrap();
            (whole, reader.read_to_end(&mut Vec::new()))
        });
        written.await.unwrap().unwrap();
        broken.send(Err(io::Error::other("cut off"))).await.unwrap();
        drop(broken);
        let (whole, rest) = read.await.unwrap();
        assert!(whole.iter().all(|byte| *byte == 1));
        assert_eq!(rest.unwrap_err().to_string(), "cut off");
    }
}
