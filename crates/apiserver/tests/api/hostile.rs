//! Clients that mean harm, or do it without meaning to: others are served all the same.

use crate::support::{Client as InProcess, JSON};
use crate::tls::{HTTP2, NAMESPACES, Server, Shows};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use windlass_apiserver::store::Options;
use windlass_apiserver::{Api, Config, Serving};
use windlass_clock::Clock;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An API over plain TCP.
struct Plain {
    api: Api,
    serving: Serving,
}

impl Plain {
    async fn start() -> Self {
        Self::with(Options::default()).await
    }

    async fn with(store: Options) -> Self {
        let api = Api::new(Config { store, ..Config::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let serving = api.serve_tcp(listener).unwrap();
        Self { api, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.serving.address()).await.unwrap()
    }

    /// Sends bytes as they are, and reads the first line of what comes back.
    async fn first_line(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // It may answer, and hang up, before all was sent.
        let _ = stream.write_all(bytes).await;
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line).await;
        line
    }

    /// Somebody else is served as ever.
    async fn others_are_served(&self) {
        let line = self.first_line(b"GET /api/v1/namespaces HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    }

    async fn watch(&self) -> TcpStream {
        let mut stream = self.connect().await;
        let request = format!("GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_harms_nobody() {
    let server = Plain::start().await;
    let long = "a".repeat(1024 * 1024);
    let many: String = (0..2000).map(|number| format!("h{number}: v\r\n")).collect();
    for request in [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /a b c HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET /api HTTP/1.1\r\nHost: a\r\nx: {long}\r\n\r\n"),
        format!("GET /api HTTP/1.1\r\nHost: a\r\n{many}\r\n"),
        "POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n".to_owned(),
        "POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n".to_owned(),
        "POST /api HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n".to_owned(),
    ] {
        let line = server.first_line(request.as_bytes()).await;
        assert!(line.is_empty() || line.starts_with("HTTP/1.1 4"), "{line}");
        server.others_are_served().await;
    }
}

#[tokio::test]
async fn a_request_that_is_never_finished_holds_nobody_up() {
    let server = Plain::start().await;
    let mut halves = Vec::new();
    for _ in 0..200 {
        let mut stream = server.connect().await;
        stream
            .write_all(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
            .await
            .unwrap();
        halves.push(stream);
        let mut stream = server.connect().await;
        stream.write_all(b"GET /api/v1/names").await.unwrap();
        halves.push(stream);
    }
    server.others_are_served().await;
    drop(halves);
    server.others_are_served().await;
}

#[tokio::test]
async fn hundreds_of_idle_connections_and_watches_leave_room_for_others() {
    let server = Plain::start().await;
    let (mut idle, mut watches) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        idle.push(server.connect().await);
        watches.push(BufReader::new(server.watch().await));
    }
    server.others_are_served().await;
    write(&server, 0..1).await;
    for watch in &mut watches {
        assert!(next_event(watch).await.is_some_and(|line| line.contains("\"name\":\"m0\"")));
    }
}

/// Makes config maps of a kilobyte each.
async fn write(server: &Plain, numbers: std::ops::Range<usize>) {
    let client = InProcess { api: server.api.clone() };
    let text = "x".repeat(1024);
    for number in numbers {
        let map = format!(r#"{{"metadata":{{"name":"m{number}"}},"data":{{"k":"{text}"}}}}"#);
        client.send("POST", MAPS, JSON, map).await.expect(201);
    }
}

/// The next line of a watch that is an event; nothing when it ended.
async fn next_event(watch: &mut BufReader<TcpStream>) -> Option<String> {
    loop {
        let mut line = Vec::new();
        // The last chunk has no length; the connection could be used again.
        if watch.read_until(b'\n', &mut line).await.ok()? == 0 || line == b"0\r\n" {
            return None;
        }
        if line.starts_with(b"{") {
            return Some(String::from_utf8_lossy(&line).into_owned());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_does_not_read_is_left_behind_and_others_see_all() {
    const EVENTS: usize = 10_000;
    const KEPT: usize = 1_000;
    let server = Plain::with(Options { history_events: KEPT, ..Options::default() }).await;
    let mut silent = BufReader::new(server.watch().await);
    let mut reading = BufReader::new(server.watch().await);
    let (seen, mut progress) = tokio::sync::watch::channel(0);
    let reader = tokio::spawn(async move {
        for number in 0..EVENTS {
            let event = next_event(&mut reading).await.expect("the watch goes on");
            assert!(event.contains(&format!("\"name\":\"m{number}\"")), "{number}: {event}");
            seen.send_replace(number + 1);
        }
    });
    for from in (0..EVENTS).step_by(KEPT / 2) {
        write(&server, from..from + KEPT / 2).await;
        // Who reads at all is not left behind.
        progress.wait_for(|seen| *seen >= from + KEPT / 2).await.expect("the reader reads");
    }
    reader.await.unwrap();
    server.others_are_served().await;
    // Of the other, only what was on its way is there; then, as on the reference, its watch ends.
    let read_to_its_end = async {
        let mut events = 0;
        while next_event(&mut silent).await.is_some() {
            events += 1;
        }
        events
    };
    let ended = Clock::real().timeout(Duration::from_secs(30), read_to_its_end).await;
    let events = ended.expect("the watch was ended");
    assert!(events < EVENTS, "all came through");
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_harm_nobody() {
    let server = Server::start().await;
    let admin = Shows::Certificate(&server.credentials);
    let io = TokioIo::new(server.connect(HTTP2, &admin).await);
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    for _ in 0..2000 {
        let request =
            Request::get(format!("https://a{MAPS}?watch=1")).body(Full::<Bytes>::default()).unwrap();
        let mut sender = sender.clone();
        if sender.ready().await.is_err() {
            break;
        }
        // Sent, and reset before the answer.
        let mut answer = Box::pin(sender.send_request(request));
        let _ = futures::poll!(answer.as_mut());
        drop(answer);
        tokio::task::yield_now().await;
    }
    let response = server.send(HTTP2, &admin, "GET", NAMESPACES, "").await;
    assert_eq!(response.status(), 200);
    assert!(!response.into_body().collect().await.unwrap().to_bytes().is_empty());
    connection.abort();
}
