//! The signals that end a process.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Ctrl-C, a request to end, and a terminal that is closed.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let on = |kind| signal(kind).context("cannot listen for Ctrl-C");
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
            _ = self.hang_up.recv() => (),
        }
    }
}

/// This process ends when the one that started it does, however that ends.
pub(crate) fn end_with_parent() {
    // Where the kernel cannot, the parent's own care has to do.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
}
