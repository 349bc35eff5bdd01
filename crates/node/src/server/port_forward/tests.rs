//! Clients that name their ports beforehand, such as kube's: kubectl does not speak so.

use super::*;
use crate::logs::{LogOptions, LogStream};
use crate::server::{ContainerRef, Duplex, Exit, HttpError, Streams, Summary};
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Has one port, which gives back what it gets.
struct Echo(u16);

impl Backend for Echo {
    async fn find(&self, _: &ContainerRef) -> Result<(), HttpError> {
        Ok(())
    }

    async fn find_pod(&self, _: &PodRef) -> Result<(), HttpError> {
        Ok(())
    }

    async fn logs(&self, _: &ContainerRef, _: LogOptions) -> Result<LogStream, HttpError> {
        Ok(LogStream::empty())
    }

    async fn exec(&self, _: &ContainerRef, _: Vec<String>, _: Streams) -> Result<Exit, HttpError> {
        Err(HttpError::bad_request("not here"))
    }

    async fn attach(&self, _: &ContainerRef, _: Streams) -> Result<Exit, HttpError> {
        Err(HttpError::bad_request("not here"))
    }

    async fn connect(&self, _: &PodRef, port: u16) -> Result<Box<dyn Duplex>, HttpError> {
        if port != self.0 {
            return Err(HttpError::internal("connection refused"));
        }
        let (inside, outside) = tokio::io::duplex(64);
        let (mut from, mut into) = tokio::io::split(inside);
        tokio::spawn(async move { tokio::io::copy(&mut from, &mut into).await });
        Ok(Box::new(outside))
    }

    async fn stats(&self) -> Summary {
        unreachable!("no figures are asked for")
    }

    async fn pods(&self) -> Value {
        Value::Null
    }
}

async fn next(client: &mut WebSocketStream<DuplexStream>) -> (u8, Vec<u8>) {
    loop {
        if let Message::Binary(data) = client.next().await.unwrap().unwrap() {
            return (data[0], data[1..].to_vec());
        }
    }
}

#[tokio::test]
async fn each_port_has_a_channel_for_data_and_one_for_errors() {
    let (near, far) = tokio::io::duplex(BUFFER);
    let socket = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
    let pod = PodRef { namespace: "n".into(), name: "web".into(), uid: None };
    let serving = tokio::spawn(over_websocket(socket, vec![80, 81], Arc::new(Echo(80)), pod));
    let mut client = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    let (mut ports, mut problem) = (Vec::new(), None);
    while ports.len() < 4 || problem.is_none() {
        let (channel, data) = next(&mut client).await;
        match <[u8; 2]>::try_from(data.as_slice()) {
            Ok(port) => ports.push((channel, u16::from_le_bytes(port))),
            Err(_) => problem = Some((channel, String::from_utf8(data).unwrap())),
        }
    }
    ports.sort_unstable();
    assert_eq!(ports, [(0, 80), (1, 80), (2, 81), (3, 81)]);
    let why = "error forwarding port 81 to pod web: connection refused";
    assert_eq!(problem, Some((3, why.to_owned())));
    client.send(Message::Binary(b"\0hello".to_vec().into())).await.unwrap();
    let mut back = Vec::new();
    while back.len() < 5 {
        let (channel, data) = next(&mut client).await;
        assert_eq!(channel, 0);
        back.extend(data);
    }
    assert_eq!(back, b"hello");
    drop(client);
    serving.await.unwrap();
}
