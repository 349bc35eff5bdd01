//! From a container's output to its log, and to whoever is attached.

use super::super::running::{Input, Output};
use super::logs::{Lines, Log};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_clock::Clock;

/// How much is read at once: a container that writes faster than the disk waits for its pipe.
const CHUNK: usize = 32 << 10;
/// Who is attached and does not read holds the container up for this long, and is let go then.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who is attached to one stream.
pub type Attached = Rc<RefCell<Vec<Input>>>;

/// Carries one stream until its end.
pub async fn pump(
    mut from: Output,
    name: &'static str,
    log: Rc<RefCell<Log>>,
    attached: Attached,
    clock: Clock,
) {
    let mut lines = Lines::new(name);
    let (mut chunk, mut entries) = (vec![0; CHUNK], Vec::new());
    loop {
        let count = match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let now = clock.now();
        lines.take(&chunk[..count], now, &mut entries);
        log.borrow_mut().write(&entries, now);
        entries.clear();
        show(&chunk[..count], &attached, &clock).await;
    }
    let now = clock.now();
    lines.finish(now, &mut entries);
    log.borrow_mut().write(&entries, now);
    attached.borrow_mut().clear();
}

async fn show(bytes: &[u8], attached: &Attached, clock: &Clock) {
    if attached.borrow().is_empty() {
        return;
    }
    let mut listeners = attached.take();
    let mut kept = Vec::with_capacity(listeners.len());
    for mut listener in listeners.drain(..) {
        if let Ok(Ok(())) = clock.timeout(PATIENCE, listener.write_all(bytes)).await {
            kept.push(listener);
        }
    }
    attached.borrow_mut().append(&mut kept);
}
