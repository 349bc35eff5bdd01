//! Waiting for what a stage wants to see, and for how long it took.

use std::future::Future;
use std::time::Duration;
use windlass_clock::{Clock, Moment};

/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
const EVERY: Duration = Duration::from_millis(10);

/// Asks again until something is so.
pub(super) async fn until<T, F>(what: &str, mut asked: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    let clock = Clock::real();
    let found = async {
        loop {
            if let Some(found) = asked().await? {
                return Ok(found);
            }
            clock.sleep(EVERY).await;
        }
    };
    clock
        .timeout(PATIENCE, found)
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("{what}: not so after {PATIENCE:?}")))
}

/// Milliseconds since then.
pub(super) fn since(begun: Moment) -> u128 {
    (Clock::real().moment() - begun).as_millis()
}
