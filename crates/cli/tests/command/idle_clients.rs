//! Thousands of idle clients: others are served all the same, and each costs little.

use crate::connections::{HTTP1, HTTP2, MAPS, Target};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CROWD: usize = 2_000;
/// How many requests one connection of HTTP/2 may have under way.
const STREAMS: usize = 100;

/// What an idle connection and a silent watch may cost, in kilobytes: about twice what they do.
const CONNECTION_COSTS: usize = 60;
const WATCH_COSTS: usize = 80;
const STREAM_COSTS: usize = 10;

/// Our own ends of the connections are files too.
fn room_for(connections: usize) -> bool {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let enough = most > connections as u64 + 200;
    if !enough {
        println!("skipped: {most} open files are allowed here");
    }
    enough
}

/// What each of the crowd cost, in kilobytes.
fn each(before: u64, after: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap() / 1024 / CROWD
}

#[tokio::test]
async fn thousands_of_idle_connections_leave_room_for_others() {
    if !room_for(CROWD * 2) {
        return;
    }
    let target = Target::start().await;
    let before = target.memory();
    let (mut silent, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..CROWD {
        silent.push(target.connect_only().await);
    }
    let between = target.memory();
    for _ in 0..CROWD {
        idle.push(target.connect(HTTP1).await);
    }
    target.others_are_served("beside-idle-connections").await;
    let (unshaken, shaken) = (each(before, between), each(between, target.memory()));
    println!("{unshaken} KB for a connection that says nothing, {shaken} KB for one that asks nothing");
    assert!(unshaken < CONNECTION_COSTS && shaken < CONNECTION_COSTS, "{unshaken} KB, {shaken} KB");
}

#[tokio::test]
async fn thousands_of_silent_watches_each_on_a_connection_leave_room_for_others() {
    if !room_for(CROWD) {
        return;
    }
    let target = Target::start().await;
    let before = target.memory();
    let mut watches = Vec::new();
    for _ in 0..CROWD {
        let mut stream = target.connect(HTTP1).await;
        let request = format!("GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(read_some(&mut stream).await, b"HTTP/1.1 200 OK");
        watches.push(stream);
    }
    let cost = each(before, target.memory());
    println!("{cost} KB for a silent watch on its own connection");
    assert!(cost < WATCH_COSTS, "{cost} KB");
    target.others_are_served("beside-silent-watches").await;
    for watch in &mut watches {
        // The rest of the head may come first.
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("beside-silent-watches") {
            let mut buffer = [0; 4096];
            let count = watch.read(&mut buffer).await.unwrap();
            assert!(count > 0, "a watch ended");
            seen.extend_from_slice(&buffer[..count]);
        }
    }
}

async fn read_some(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut line = vec![0; 15];
    stream.read_exact(&mut line).await.unwrap();
    line
}

#[tokio::test]
async fn thousands_of_silent_watches_on_few_connections_leave_room_for_others() {
    let target = Target::start().await;
    let before = target.memory();
    let (mut connections, mut watches) = (Vec::new(), Vec::new());
    for _ in 0..CROWD / STREAMS {
        let io = TokioIo::new(target.connect(HTTP2).await);
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..STREAMS {
            watches.push(watch(&mut sender).await);
        }
        connections.push(sender);
    }
    let cost = each(before, target.memory());
    println!("{cost} KB for a silent watch among {STREAMS} on a connection");
    assert!(cost < STREAM_COSTS, "{cost} KB");
    target.others_are_served("beside-silent-streams").await;
    for watch in &mut watches {
        let event = watch.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(String::from_utf8_lossy(&event).contains("beside-silent-streams"));
    }
}

async fn watch(sender: &mut SendRequest<Empty<Bytes>>) -> Response<Incoming> {
    let request = Request::get(format!("https://a{MAPS}?watch=1&resourceVersion=1")).body(Empty::new());
    let response = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    response
}
