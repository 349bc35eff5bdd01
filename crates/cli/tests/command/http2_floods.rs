//! Floods of HTTP/2 frames: each ends the connection that it comes on or is answered, costs no memory to speak of, and
//! others are served all the same.

use crate::connections::{HTTP2, MAPS, Target};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use windlass_clock::Clock;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// How much a flood may leave behind, in megabytes.
const HELD: u64 = 40;

/// How long a flood may go on, read or not.
const FLOOD: Duration = Duration::from_secs(20);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header that is spelled out and not remembered.
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        let (mut rest, first) = (text.len(), 0x7f);
        if rest < first {
            bytes.push(u8::try_from(rest).unwrap());
        } else {
            bytes.push(0x7f);
            rest -= first;
            while rest >= 0x80 {
                bytes.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
                rest /= 0x80;
            }
            bytes.push(u8::try_from(rest).unwrap());
        }
        bytes.extend(text.as_bytes());
    }
    bytes
}

fn request(method: &str, path: &str) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "https"), (":authority", "a"), (":path", path)];
    fields.iter().flat_map(|(name, value)| header(name, value)).collect()
}

/// The numbers that clients give their requests.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| number * 2 + 1)
}

/// Sends frames and reads what comes, until the server hangs up or all was sent; the kinds of frames that came.
async fn flood(stream: TlsStream<TcpStream>, frames: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let read = async {
        let mut kinds = Vec::new();
        let mut head = [0; 9];
        while reading.read_exact(&mut head).await.is_ok() {
            kinds.push(head[3]);
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if reading.read_exact(&mut vec![0; length]).await.is_err() || head[3] == GOAWAY {
                break;
            }
        }
        kinds
    };
    let write = async {
        writing.write_all(PREFACE).await.ok()?;
        writing.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()?;
        for frame in frames {
            writing.write_all(&frame).await.ok()?;
        }
        // What is asked last is answered last.
        writing.write_all(&frame(PING, 0, 0, b"the last")).await.ok()?;
        writing.shutdown().await.ok()
    };
    let both = async { futures::join!(read, write).0 };
    Clock::real().timeout(FLOOD, both).await.expect("the flood ended")
}

async fn survives(name: &str, frames: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let target = Target::start().await;
    target.others_are_served("before").await;
    let before = target.memory();
    let kinds = flood(target.connect(HTTP2).await, frames).await;
    target.others_are_served("after").await;
    let held = target.memory().saturating_sub(before) / 1_000_000;
    println!("{name}: {held} MB, {} frames came back, the last {:?}", kinds.len(), kinds.last());
    assert!(held < HELD, "{held} MB");
    kinds
}

#[tokio::test]
async fn a_head_without_an_end_is_cut_off() {
    let filler = header("x-filler", &"a".repeat(16_000));
    let begun = frame(HEADERS, END_STREAM, 1, &request("GET", MAPS));
    let goes_on = (0..10_000).map(move |_| frame(CONTINUATION, 0, 1, &filler));
    let kinds = survives("a head without an end", std::iter::once(begun).chain(goes_on)).await;
    assert_eq!(kinds.last(), Some(&GOAWAY));
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let filler = header("x-filler", &"a".repeat(16_000));
    let heads = streams(200).flat_map(move |number| {
        let begun = frame(HEADERS, END_STREAM, number, &request("GET", MAPS));
        let more = (0..3).map(|_| frame(CONTINUATION, 0, number, &filler));
        let end = frame(CONTINUATION, END_HEADERS, number, &filler);
        let more: Vec<_> = std::iter::once(begun).chain(more).chain([end]).collect();
        more
    });
    let kinds = survives("heads that are too large", heads).await;
    // Each is answered (431) or reset.
    assert!(kinds.iter().any(|kind| [HEADERS, RESET, GOAWAY].contains(kind)), "{kinds:?}");
}

#[tokio::test]
async fn more_requests_than_are_allowed_at_once_are_refused() {
    let watch = request("GET", &format!("{MAPS}?watch=1"));
    let watches = streams(20_000).map(move |number| frame(HEADERS, END_HEADERS | END_STREAM, number, &watch));
    let kinds = survives("requests without number", watches).await;
    assert!(kinds.iter().any(|kind| [RESET, GOAWAY].contains(kind)), "{:?}", kinds.last());
}

#[tokio::test]
async fn requests_that_are_reset_at_once_are_cut_off() {
    let list = request("GET", MAPS);
    let resets = streams(20_000).flat_map(move |number| {
        [
            frame(HEADERS, END_HEADERS | END_STREAM, number, &list),
            frame(RESET, 0, number, &8_u32.to_be_bytes()),
        ]
    });
    survives("requests and resets", resets).await;
}

#[tokio::test]
async fn questions_about_the_connection_are_answered_within_bounds() {
    survives("pings", (0..20_000).map(|_| frame(PING, 0, 0, b"12345678"))).await;
    survives("settings", (0..20_000).map(|_| frame(SETTINGS, 0, 0, &[]))).await;
}

#[tokio::test]
async fn bodies_of_nothing_are_bounded() {
    let mut post = request("POST", MAPS);
    post.extend(header("content-type", "application/json"));
    let begun = std::iter::once(frame(HEADERS, END_HEADERS, 1, &post));
    survives("empty pieces", begun.chain((0..20_000).map(|_| frame(DATA, 0, 1, &[])))).await;
    let windows = (0..20_000).map(|_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()));
    survives("windows", windows).await;
}
