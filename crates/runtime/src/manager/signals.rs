//! How a process is asked to end: Ctrl-C or SIGTERM; and again, when it takes too long.

use tokio::sync::watch;

/// Counts how often the process was asked to end.
pub(super) struct Signals {
    asked: watch::Sender<u32>,
}

impl Signals {
    pub(super) fn new() -> Self {
        Self { asked: watch::channel(0).0 }
    }

    /// Is ready once this number of signals came.
    pub(super) fn asked(&self, times: u32) -> impl Future<Output = ()> + use<> {
        let mut asked = self.asked.subscribe();
        async move {
            if asked.wait_for(|count| *count >= times).await.is_err() {
                // Nobody listens any more, so nobody can ask.
                std::future::pending().await
            }
        }
    }

    /// Listens; never ends.
    #[cfg(unix)]
    pub(super) async fn listen(&self) {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminated, mut interrupted) =
            (signal(SignalKind::terminate()).ok(), signal(SignalKind::interrupt()).ok());
        loop {
            tokio::select! {
                Some(()) = next(&mut terminated) => {}
                Some(()) = next(&mut interrupted) => {}
                // Neither can be listened to: then the process ends as every other does.
                else => std::future::pending().await,
            }
            self.asked.send_modify(|count| *count += 1);
        }
    }

    /// Listens; never ends.
    #[cfg(not(unix))]
    pub(super) async fn listen(&self) {
        while tokio::signal::ctrl_c().await.is_ok() {
            self.asked.send_modify(|count| *count += 1);
        }
        std::future::pending().await
    }
}

#[cfg(unix)]
async fn next(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}
