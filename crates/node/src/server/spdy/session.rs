//! One connection: streams that the client opens come out, and what is written to them goes in.

use super::frame::{self, Received, Sent};
use super::headers::{Deflater, Headers, Inflater};
use crate::server::stream_writer::StreamWriter;
use bytes::Bytes;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter, DuplexStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How many streams one connection may have at once: a forwarded connection takes two.
const STREAMS: usize = 512;

/// How much of a stream waits to be read before the connection does.
const BUFFER: usize = 64 * 1024;

/// How long a client may say nothing: those of Kubernetes ping every few seconds.
const IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// How many frames wait to be sent.
const QUEUE: usize = 16;

/// A stream that the client opened.
#[derive(Debug)]
pub(in crate::server) struct Stream {
    pub(in crate::server) id: u32,
    pub(in crate::server) headers: Headers,
    /// What the client sends, until it ends or resets the stream.
    pub(in crate::server) input: DuplexStream,
    /// What the client gets.
    pub(in crate::server) output: StreamWriter<Sent>,
    /// Cancelled when the client wants no more of it.
    pub(in crate::server) reset: CancellationToken,
    /// Counts until it is gone.
    pub(in crate::server) _place: OwnedSemaphorePermit,
}

/// What is left to say to a client besides its streams.
#[derive(Debug, Clone)]
pub(in crate::server) struct Session(mpsc::Sender<Sent>);

impl Session {
    /// Sends a last piece of a stream, and its end.
    pub(in crate::server) async fn end(&self, id: u32, data: Bytes) {
        // A client that is gone misses nothing.
        let _ = self.0.send(Sent::Data { id, ended: true, data }).await;
    }

    /// Says that nothing comes any more, after all that was sent before.
    pub(in crate::server) async fn close(&self) {
        // A client that is gone needs no goodbye.
        let _ = self.0.send(Sent::GoAway).await;
    }
}

/// A session on `io`: a future that carries it until either side ends it, and the streams as they are opened.
pub(in crate::server) fn open<S: AsyncRead + AsyncWrite + Send + Unpin>(
    io: S,
) -> (Session, mpsc::Receiver<Stream>, impl Future<Output = io::Result<()>> + Send) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let (opened, streams) = mpsc::channel(QUEUE);
    let (reader, writer) = tokio::io::split(io);
    let session = Session(sender.clone());
    let carrying = async move {
        let reading =
            Reading { sender, opened, places: Arc::new(Semaphore::new(STREAMS)), live: HashMap::new() };
        let mut reading = std::pin::pin!(reading.run(BufReader::new(reader)));
        tokio::select! {
            read = &mut reading => read,
            written = write(BufWriter::new(writer), queue) => {
                written?;
                // A socket that is closed with something unread in it takes back what was sent last.
                reading.await
            }
        }
    };
    (session, streams, carrying)
}

/// Sends what is queued, until the goodbye.
async fn write<W: AsyncWrite + Unpin>(
    mut writer: BufWriter<W>,
    mut queue: mpsc::Receiver<Sent>,
) -> io::Result<()> {
    let mut deflater = Deflater::new()?;
    while let Some(frame) = queue.recv().await {
        writer.write_all(&frame::head(&frame, &mut deflater)?).await?;
        if let Sent::Data { data, .. } = &frame {
            writer.write_all(data).await?;
        }
        if frame == Sent::GoAway {
            break;
        }
        if queue.is_empty() {
            writer.flush().await?;
        }
    }
    writer.shutdown().await
}

struct Reading {
    sender: mpsc::Sender<Sent>,
    opened: mpsc::Sender<Stream>,
    places: Arc<Semaphore>,
    live: HashMap<u32, Live>,
}

/// A stream that the client has not ended.
struct Live {
    pipe: DuplexStream,
    reset: CancellationToken,
}

impl Reading {
    async fn run<R: AsyncRead + Unpin>(mut self, mut reader: BufReader<R>) -> io::Result<()> {
        let (clock, mut inflater) = (Clock::real(), Inflater::new());
        while let Ok(read) = clock.timeout(IDLE, frame::read(&mut reader, &mut inflater)).await {
            let Some(frame) = read? else { break };
            match frame {
                Received::Open { id, ended, headers } => self.open(id, ended, headers).await,
                Received::Data { id, ended, data } => self.data(id, ended, &data).await,
                Received::Reset { id } => {
                    if let Some(live) = self.live.remove(&id) {
                        live.reset.cancel();
                    }
                }
                // Ours would have even numbers; we send none.
                Received::Ping { id } if id % 2 == 1 => self.send(Sent::Pong { id }).await,
                Received::Ping { .. } | Received::GoAway | Received::Other => {}
            }
        }
        Ok(())
    }

    async fn open(&mut self, id: u32, ended: bool, headers: Headers) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return self.send(Sent::Refuse { id }).await;
        };
        if id == 0 || self.live.contains_key(&id) {
            return self.send(Sent::Refuse { id }).await;
        }
        let (pipe, input) = tokio::io::duplex(BUFFER);
        let reset = CancellationToken::new();
        let output = StreamWriter::new(self.sender.clone(), move |data: Bytes, ended| {
            Some(Sent::Data { id, ended, data })
        });
        let stream = Stream { id, headers, input, output, reset: reset.clone(), _place: place };
        self.send(Sent::Reply { id }).await;
        if self.opened.send(stream).await.is_err() {
            return self.send(Sent::Refuse { id }).await;
        }
        if !ended {
            self.live.insert(id, Live { pipe, reset });
        }
    }

    async fn data(&mut self, id: u32, ended: bool, data: &[u8]) {
        let Some(live) = self.live.get_mut(&id) else { return };
        // Whoever does not read it any more does not miss it.
        let _ = live.pipe.write_all(data).await;
        if ended {
            let _ = live.pipe.shutdown().await;
            self.live.remove(&id);
        }
    }

    /// Sends, as long as there is someone who takes it.
    async fn send(&self, frame: Sent) {
        let _ = self.sender.send(frame).await;
    }
}
