//! Clients that are slow, or stop half way: others are served all the same, and what they were sent is not kept for them.

use crate::connections::{HTTP1, MAPS, Target};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_clock::Clock;

const SLOW: usize = 100;

/// What all slow clients of a test may hold, in megabytes.
const HELD: u64 = 60;

#[tokio::test]
async fn heads_and_bodies_that_come_byte_by_byte_hold_nobody_up() {
    let target = Target::start().await;
    let map = r#"{"metadata":{"name":"slow-writer"},"data":{"k":"v"}}"#;
    let request = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{map}",
        map.len()
    );
    let mut writers = Vec::new();
    for _ in 0..SLOW {
        writers.push(target.connect(HTTP1).await);
    }
    for (number, byte) in request.bytes().enumerate() {
        for writer in &mut writers {
            writer.write_all(&[byte]).await.unwrap();
            writer.flush().await.unwrap();
        }
        if number % 40 == 0 {
            target.others_are_served(&format!("beside-slow-writers-{number}")).await;
        }
    }
    // Slow is not wrong: one of them made the object, and the others are told that it is there.
    let mut made = 0;
    for writer in &mut writers {
        let mut line = [0; 12];
        writer.read_exact(&mut line).await.unwrap();
        made += usize::from(&line == b"HTTP/1.1 201");
        assert!(&line == b"HTTP/1.1 201" || &line == b"HTTP/1.1 409", "{line:?}");
    }
    assert_eq!(made, 1);
}

#[tokio::test]
async fn bodies_that_stop_half_way_hold_nobody_up() {
    let target = Target::start().await;
    let before = target.memory();
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    );
    let mut halves = Vec::new();
    for _ in 0..SLOW {
        let mut stream = target.connect(HTTP1).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; 500_000]).await.unwrap();
        halves.push(stream);
    }
    target.others_are_served("beside-halves").await;
    let held = target.memory().saturating_sub(before) / 1_000_000;
    println!("{held} MB for {SLOW} halves of a megabyte");
    // What came is there, in buffers that double as they grow.
    assert!(held < 100 + HELD, "{held} MB");
    drop(halves);
    target.others_are_served("after-halves").await;
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_nobody_up() {
    let target = Target::start().await;
    let mut writer = target.connect(HTTP1).await;
    let text = "x".repeat(500_000);
    for number in 0..20 {
        let map = format!(r#"{{"metadata":{{"name":"large-{number}"}},"data":{{"k":"{text}"}}}}"#);
        let head = format!("POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
        let request = format!("{head}Connection: close\r\nContent-Length: {}\r\n\r\n{map}", map.len());
        writer.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // It may hang up without saying so.
        let _ = writer.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 201"), "{:?}", answer.get(..12));
        writer = target.connect(HTTP1).await;
    }
    let before = target.memory();
    let mut readers = Vec::new();
    for _ in 0..SLOW {
        let mut stream = target.connect(HTTP1).await;
        let request = format!("GET {MAPS} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        readers.push(stream);
    }
    // Each was answered with ten megabytes, of which only the sockets hold a part.
    for reader in &mut readers {
        let mut byte = [0];
        let first = Clock::real().timeout(Duration::from_secs(20), reader.read_exact(&mut byte)).await;
        first.expect("an answer").unwrap();
    }
    target.others_are_served("beside-slow-readers").await;
    let held = target.memory().saturating_sub(before) / 1_000_000;
    println!("{held} MB for {SLOW} answers of ten megabytes that are not read");
    assert!(held < HELD, "{held} MB");
}
