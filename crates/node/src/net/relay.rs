//! Two connections as one.

use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// What is held between reading from one side and writing to the other, in each direction.
const BUFFER: usize = 32 << 10;
/// How many seconds of silence pass until the other side is asked whether it is there, how often, and how many times: a pod that was
/// killed says no goodbye.
const SILENCE: (u32, u32, u32) = (60, 15, 4);

/// Carries bytes both ways until both sides have said all. Who stops speaking may still listen. A side that breaks off breaks the
/// other off too.
pub(crate) async fn relay(mut one: TcpStream, mut other: TcpStream) -> io::Result<()> {
    for stream in [&one, &other] {
        stream.set_nodelay(true)?;
        notice_silence(stream)?;
    }
    let done = tokio::io::copy_bidirectional_with_sizes(&mut one, &mut other, BUFFER, BUFFER).await;
    if done.is_err() {
        break_off(one);
        break_off(other);
    }
    done.map(|_| ())
}

/// Closes a connection so that the other side sees it as broken, not as ended.
pub(crate) fn break_off(stream: TcpStream) {
    _ = setsockopt(&stream, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 });
}

fn notice_silence(stream: &TcpStream) -> nix::Result<()> {
    let (after, every, times) = SILENCE;
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &after)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &every)?;
    setsockopt(stream, sockopt::TcpKeepCount, &times)
}

/// How long a connection inside the machine may take to come about before another is tried.
pub(crate) const CONNECTING: Duration = Duration::from_secs(3);
