//! Waiting in tests that have no [`TestCluster`](windlass_testing::TestCluster), which waits better.

use anyhow::Context;
use std::time::Duration;
use windlass_clock::Clock;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `holds` does.
///
/// # Errors
/// When it fails, or does not hold in time.
pub async fn until<F, Fut>(what: &str, holds: F) -> anyhow::Result<()>
where
    F: Fn() -> Fut,
    Fut: Future<Output = anyhow::Result<bool>>,
{
    let clock = Clock::real();
    let deadline = clock.moment() + PATIENCE;
    while clock.moment() < deadline {
        if holds().await.with_context(|| format!("looking whether {what}"))? {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    anyhow::bail!("it is not so that {what}, after {PATIENCE:?}")
}
