//! Forwarding ports: connections of the client's machine, each as a pair of streams, to ports inside of a pod.

use super::backend::{Backend, PodRef};
use super::remote_command::goodbye;
use super::spdy;
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use windlass_clock::Clock;

/// How much of a connection waits.
const BUFFER: usize = 64 * 1024;

/// How many messages wait to be sent.
const QUEUE: usize = 16;

/// How often a client that says nothing is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);

/// How many halves of connections wait for their other half.
const WAITING: usize = 64;

/// Serves a client that opens two streams for each connection, one for its data and one for what goes wrong.
pub(super) async fn over_spdy<B: Backend, S: AsyncRead + AsyncWrite + Send + Unpin>(
    io: S,
    backend: Arc<B>,
    pod: PodRef,
) {
    let (session, mut opened, carrying) = spdy::open(io);
    let pod = Arc::new(pod);
    let forwarding = async {
        let mut connections = JoinSet::new();
        let mut halves = HashMap::new();
        loop {
            let stream = tokio::select! {
                stream = opened.recv() => stream,
                Some(_) = connections.join_next() => continue,
            };
            let Some(stream) = stream else { return };
            let request = stream.headers.get("requestid").unwrap_or_default().to_owned();
            match halves.remove(&request) {
                None if halves.len() >= WAITING => {}
                None => {
                    halves.insert(request, stream);
                }
                Some(other) => {
                    let is_data = |stream: &spdy::Stream| stream.headers.get("streamtype") == Some("data");
                    let (data, error) = if is_data(&stream) { (stream, other) } else { (other, stream) };
                    let (backend, pod, session) = (backend.clone(), pod.clone(), session.clone());
                    connections.spawn(async move { connect(&*backend, &pod, &session, data, error).await });
                }
            }
        }
    };
    tokio::select! {
        _ = carrying => {}
        () = forwarding => {}
    }
}

/// Carries one connection to its end.
async fn connect<B: Backend>(
    backend: &B,
    pod: &PodRef,
    session: &spdy::Session,
    data: spdy::Stream,
    error: spdy::Stream,
) {
    let spdy::Stream { id, headers, input, output, reset, _place } = data;
    let port = headers.get("port").and_then(|port| port.parse::<u16>().ok()).filter(|&port| port > 0);
    let mut outside = tokio::io::join(input, output);
    let problem = match port {
        None => Some("the port of a stream is no port".to_owned()),
        Some(port) => match backend.connect(pod, port).await {
            Err(refusal) => Some(format!("error forwarding port {port} to pod {}: {refusal}", pod.name)),
            Ok(mut inside) => {
                tokio::select! {
                    () = reset.cancelled() => {}
                    // How a connection breaks off is between its two ends.
                    _ = tokio::io::copy_bidirectional(&mut outside, &mut inside) => {}
                }
                None
            }
        },
    };
    session.end(error.id, problem.unwrap_or_default().into()).await;
    if !outside.writer().is_ended() {
        session.end(id, Bytes::new()).await;
    }
}

/// Carries SPDY inside of the messages of a WebSocket.
pub(super) async fn tunnelled<B: Backend, S: AsyncRead + AsyncWrite + Send + Unpin>(
    socket: WebSocketStream<S>,
    backend: Arc<B>,
    pod: PodRef,
) {
    let (mut sink, mut source) = socket.split();
    let (inner, outer) = tokio::io::duplex(BUFFER);
    let (mut from_inner, mut to_inner) = tokio::io::split(outer);
    let writing = async {
        let clock = Clock::real();
        let mut buffer = vec![0; BUFFER];
        loop {
            let message = tokio::select! {
                read = from_inner.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(read) => Message::Binary(Bytes::copy_from_slice(&buffer[..read])),
                },
                () = clock.sleep(PING) => Message::Ping(Bytes::new()),
            };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        let _ = sink.send(goodbye()).await;
    };
    let reading = async {
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(data) if to_inner.write_all(&data).await.is_err() => return,
                Message::Close(_) => return,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = over_spdy(inner, backend, pod) => {}
        () = writing => {}
        () = reading => {}
    }
}

/// Serves a client that names its ports beforehand, one connection for each: an even channel for its data, the odd one after
/// it for what goes wrong.
pub(super) async fn over_websocket<B: Backend, S: AsyncRead + AsyncWrite + Send + Unpin>(
    socket: WebSocketStream<S>,
    ports: Vec<u16>,
    backend: Arc<B>,
    pod: PodRef,
) {
    let (mut sink, mut source) = socket.split();
    let (sender, mut queue) = mpsc::channel(QUEUE);
    let pod = Arc::new(pod);
    let mut connections = JoinSet::new();
    let mut inlets = Vec::new();
    for (index, &port) in ports.iter().enumerate() {
        let Ok(channel) = u8::try_from(index * 2) else { break };
        let (inlet, input) = tokio::io::duplex(BUFFER);
        inlets.push(inlet);
        let (backend, pod, sender) = (backend.clone(), pod.clone(), sender.clone());
        connections
            .spawn(async move { forward_channel(&*backend, &pod, port, channel, input, sender).await });
    }
    drop(sender);
    let writing = async {
        let clock = Clock::real();
        loop {
            let message = tokio::select! {
                message = queue.recv() => message,
                () = clock.sleep(PING) => Some(Message::Ping(Bytes::new())),
            };
            let Some(message) = message else { break };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        let _ = sink.send(goodbye()).await;
    };
    let reading = async {
        while let Some(Ok(message)) = source.next().await {
            let Message::Binary(data) = message else { continue };
            let Some((&channel, data)) = data.split_first() else { continue };
            // On a channel of errors there is nothing to say.
            let inlet = inlets.get_mut(usize::from(channel / 2)).filter(|_| channel % 2 == 0);
            if let Some(inlet) = inlet {
                let _ = inlet.write_all(data).await;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
}

async fn forward_channel<B: Backend>(
    backend: &B,
    pod: &PodRef,
    port: u16,
    channel: u8,
    mut input: tokio::io::DuplexStream,
    sender: mpsc::Sender<Message>,
) {
    let message = |channel: u8, data: &[u8]| {
        let mut bytes = vec![channel];
        bytes.extend_from_slice(data);
        Message::Binary(bytes.into())
    };
    // Both channels begin with the port.
    for channel in [channel, channel + 1] {
        let _ = sender.send(message(channel, &port.to_le_bytes())).await;
    }
    let inside = match backend.connect(pod, port).await {
        Ok(inside) => inside,
        Err(refusal) => {
            let why = format!("error forwarding port {port} to pod {}: {refusal}", pod.name);
            let _ = sender.send(message(channel + 1, why.as_bytes())).await;
            return;
        }
    };
    let (mut from_pod, mut to_pod) = tokio::io::split(inside);
    let receiving = async {
        let mut buffer = vec![0; BUFFER / 2];
        while let Ok(read @ 1..) = from_pod.read(&mut buffer).await {
            if sender.send(message(channel, &buffer[..read])).await.is_err() {
                return;
            }
        }
    };
    let sending = async {
        let _ = tokio::io::copy(&mut input, &mut to_pod).await;
        let _ = to_pod.shutdown().await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = receiving => {}
        () = sending => {}
    }
}

#[cfg(test)]
mod tests;
