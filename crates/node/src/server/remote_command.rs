//! Running a command or joining a process, whatever the streams come over.

use super::backend::{Backend, ContainerRef, Exit, HttpError, Size, Streams};
use super::route::Wants;
use super::spdy;
use super::stream_writer::StreamWriter;
use super::upgrade::Protocol;
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use windlass_clock::Clock;

/// How many messages wait to be sent.
const QUEUE: usize = 16;

/// How much input waits for a process before the connection does.
const BUFFER: usize = 64 * 1024;

/// How many sizes of a terminal wait for a process.
const SIZES: usize = 8;

/// The maximum length of a resize message.
const SIZE_TEXT: usize = 1024;

/// How long a client may take to open all its streams.
const OPENING: Duration = Duration::from_secs(30);

/// How long a client may take to disconnect after the end.
const LEAVING: Duration = Duration::from_secs(5);

/// How often a client that says nothing is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// What is to be done with the streams.
pub(super) enum Work {
    Exec(Vec<String>),
    Attach,
}

impl Work {
    /// Does it, and says how it went as a Status.
    async fn run<B: Backend>(self, backend: &B, container: &ContainerRef, streams: Streams) -> Value {
        let ended = match self {
            Self::Exec(command) => backend.exec(container, command, streams).await,
            Self::Attach => backend.attach(container, streams).await,
        };
        status(ended)
    }
}

fn status(ended: Result<Exit, HttpError>) -> Value {
    match ended {
        Ok(Exit(0)) => json!({"metadata": {}, "status": "Success"}),
        Ok(Exit(code)) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(refusal) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("Internal error occurred: {refusal}"),
            "reason": "InternalError",
            "details": {"causes": [{"message": refusal.message}]},
            "code": 500,
        }),
    }
}

/// The message with the status of the command.
fn status_message(status: &Value, protocol: Protocol) -> Option<String> {
    match protocol {
        Protocol::Channels => status["message"].as_str().map(str::to_owned),
        _ => Some(status.to_string()),
    }
}

/// Serves a client that speaks WebSocket: each message begins with the number of its channel. Who speaks the newest
/// of its protocols tells when a channel is done.
pub(super) async fn over_websocket<B: Backend, S: AsyncRead + AsyncWrite + Send + Unpin>(
    socket: WebSocketStream<S>,
    protocol: Protocol,
    wants: Wants,
    backend: &B,
    container: &ContainerRef,
    work: Work,
) {
    let (mut sink, source) = socket.split();
    let (sender, mut queue) = mpsc::channel(QUEUE);
    let outlet = |channel| {
        let message = move |data: Bytes, _| Some(message(channel, &data));
        Box::new(StreamWriter::new(sender.clone(), message).quiet())
    };
    let (pipe, stdin) = tokio::io::duplex(BUFFER);
    let (resized, sizes) = mpsc::channel(SIZES);
    let streams = Streams {
        stdin: wants.stdin.then(|| Box::new(stdin) as _),
        stdout: wants.stdout.then(|| outlet(STDOUT) as _),
        stderr: wants.stderr.then(|| outlet(STDERR) as _),
        sizes,
        tty: wants.tty,
    };
    let first = if wants.stdout {
        STDOUT
    } else if wants.stderr {
        STDERR
    } else {
        ERROR
    };
    let working = async move {
        // Something at once, so that the client knows that it is connected.
        let _ = sender.send(message(first, &[])).await;
        let status = work.run(backend, container, streams).await;
        if let Some(text) = status_message(&status, protocol) {
            let _ = sender.send(message(ERROR, text.as_bytes())).await;
        }
        let _ = sender.send(goodbye()).await;
    };
    let writing = async move {
        let clock = Clock::real();
        loop {
            let message = tokio::select! {
                message = queue.recv() => message,
                () = clock.sleep(PING) => Some(Message::Ping(Bytes::new())),
            };
            let Some(message) = message else { return Ok(()) };
            sink.feed(message).await?;
            if queue.is_empty() {
                sink.flush().await?;
            }
        }
    };
    let mut reading = pin!(read_messages(source, pipe, resized, protocol == Protocol::ChannelsV5));
    tokio::select! {
        () = &mut reading => return,
        written = async { tokio::join!(working, writing).1 } => {
            let written: Result<(), Error> = written;
            if written.is_err() {
                return;
            }
        }
    }
    // What the client sends until it knows is read, or its kernel would take back what it was sent last.
    let _ = Clock::real().timeout(LEAVING, reading).await;
}

/// The end, as planned: clients take an end without a reason for a failure.
pub(super) fn goodbye() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() }))
}

fn message(channel: u8, data: &[u8]) -> Message {
    let mut bytes = Vec::with_capacity(data.len() + 1);
    bytes.push(channel);
    bytes.extend_from_slice(data);
    Message::Binary(bytes.into())
}

/// Takes what the client sends to where it belongs, until it leaves.
async fn read_messages<S>(mut source: S, pipe: DuplexStream, resized: mpsc::Sender<Size>, closes: bool)
where
    S: futures::Stream<Item = Result<Message, Error>> + Unpin,
{
    let mut stdin = Some(pipe);
    while let Some(Ok(message)) = source.next().await {
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            _ => continue,
        };
        match data.split_first() {
            Some((&STDIN, data)) => {
                if let Some(pipe) = &mut stdin {
                    // A process that does not read it any more does not miss it.
                    let _ = pipe.write_all(data).await;
                }
            }
            Some((&RESIZE, data)) => {
                if let Ok(size) = serde_json::from_slice(data) {
                    // Where so many wait, the process does not look at them.
                    let _ = resized.try_send(size);
                }
            }
            Some((&CLOSE, [STDIN])) if closes => stdin = None,
            _ => {}
        }
    }
}

/// Serves a client that speaks SPDY: it opens a stream for each that is wanted.
pub(super) async fn over_spdy<B: Backend, S: AsyncRead + AsyncWrite + Send + Unpin>(
    io: S,
    wants: Wants,
    backend: &B,
    container: &ContainerRef,
    work: Work,
) {
    let (session, mut opened, carrying) = spdy::open(io);
    let mut carrying = pin!(carrying);
    let working = async {
        let Ok(mut streams) = Clock::real().timeout(OPENING, gather(&mut opened, wants)).await else {
            return;
        };
        let Some(error) = streams.remove("error") else { return };
        let mut ends = Vec::new();
        let mut output = |stream: Option<spdy::Stream>| {
            let stream = stream?;
            ends.push(stream.id);
            Some(Box::new(stream.output.quiet()) as _)
        };
        let (resized, sizes) = mpsc::channel(SIZES);
        let streams_of_process = Streams {
            stdin: streams.remove("stdin").map(|stream| Box::new(stream.input) as _),
            stdout: output(streams.remove("stdout")),
            stderr: output(streams.remove("stderr")),
            sizes,
            tty: wants.tty,
        };
        let resize = streams.remove("resize");
        let resizing = async {
            if let Some(stream) = resize {
                // A client that sends nonsense has a terminal of the size that it had.
                let _ = read_sizes(stream.input, &resized).await;
            }
            std::future::pending::<()>().await;
        };
        let status = tokio::select! {
            status = work.run(backend, container, streams_of_process) => status,
            () = resizing => return,
        };
        for id in ends {
            session.end(id, Bytes::new()).await;
        }
        session.end(error.id, status.to_string().into()).await;
        session.close().await;
    };
    tokio::select! {
        _ = &mut carrying => return,
        () = working => {}
    }
    let _ = Clock::real().timeout(LEAVING, carrying).await;
}

/// The streams that a client opens, by their type, when all that are to come are there.
async fn gather(opened: &mut mpsc::Receiver<spdy::Stream>, wants: Wants) -> HashMap<String, spdy::Stream> {
    let expected = [
        ("error", true),
        ("stdin", wants.stdin),
        ("stdout", wants.stdout),
        ("stderr", wants.stderr),
        ("resize", wants.tty),
    ];
    let mut streams = HashMap::new();
    while expected.iter().any(|&(kind, wanted)| wanted && !streams.contains_key(kind)) {
        let Some(stream) = opened.recv().await else { break };
        let kind = stream.headers.get("streamtype").unwrap_or_default().to_owned();
        if expected.iter().any(|&(known, wanted)| wanted && known == kind) {
            streams.insert(kind, stream);
        }
    }
    streams
}

/// Sizes one after the other, as JSON with nothing between them but white space.
async fn read_sizes(mut input: impl AsyncRead + Unpin, resized: &mpsc::Sender<Size>) -> io::Result<()> {
    let mut text = Vec::new();
    loop {
        if input.read_buf(&mut text).await? == 0 {
            return Ok(());
        }
        let mut sizes = serde_json::Deserializer::from_slice(&text).into_iter();
        for size in sizes.by_ref() {
            match size {
                Ok(size) => {
                    let _ = resized.try_send(size);
                }
                Err(error) if error.is_eof() => break,
                Err(error) => return Err(error.into()),
            }
        }
        let read = sizes.byte_offset();
        text.drain(..read);
        if text.len() > SIZE_TEXT {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_how_a_command_ended() {
        assert_eq!(status(Ok(Exit(0)))["status"], "Success");
        let failed = status(Ok(Exit(3)));
        assert_eq!(failed["reason"], "NonZeroExitCode");
        assert_eq!(failed["details"]["causes"][0], json!({"reason": "ExitCode", "message": "3"}));
        assert_eq!(
            status(Err(HttpError::internal("no such file")))["message"],
            "Internal error occurred: no such file"
        );
        // In the oldest protocol only what went wrong is told, and in words.
        assert_eq!(status_message(&status(Ok(Exit(0))), Protocol::Channels), None);
        let words = "command terminated with non-zero exit code: exit status 3";
        assert_eq!(status_message(&failed, Protocol::Channels).as_deref(), Some(words));
        assert!(status_message(&failed, Protocol::ChannelsV4).unwrap().starts_with('{'));
    }

    #[tokio::test]
    async fn sizes_are_read_in_whatever_pieces_they_come() {
        let (mut client, input) = tokio::io::duplex(64);
        let (resized, mut sizes) = mpsc::channel(SIZES);
        let reading = tokio::spawn(async move { read_sizes(input, &resized).await });
        for piece in ["{\"Width\":80,\"Hei", "ght\":24}\n{\"Width\":100,\"Height\":30}", "\n"] {
            client.write_all(piece.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
        assert_eq!(sizes.recv().await, Some(Size { width: 80, height: 24 }));
        assert_eq!(sizes.recv().await, Some(Size { width: 100, height: 30 }));
        client.write_all(b"nonsense").await.unwrap();
        assert!(reading.await.unwrap().is_err());
    }
}
