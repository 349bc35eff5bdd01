//! The time of a test cluster: it stands still but while someone waits for something.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::{Clock, Driver};

/// How finely time passes while someone waits.
const STEP: Duration = Duration::from_millis(2);

/// A clock, and what drives it if it does not run by itself.
#[derive(Debug, Clone)]
pub(crate) struct Time {
    clock: Clock,
    driver: Option<Arc<Driver>>,
}

impl Time {
    /// Driven, from the start of a year that no test can mistake for now.
    pub(crate) fn driven() -> Self {
        let start = "2026-01-01T00:00:00Z".parse().expect("it is written as times are");
        let (clock, driver) = Clock::driven(start);
        Self { clock, driver: Some(Arc::new(driver)) }
    }

    pub(crate) fn real() -> Self {
        Self { clock: Clock::real(), driver: None }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn driver(&self) -> Option<&Driver> {
        self.driver.as_deref()
    }

    /// Lets so much time pass, with everything that falls due on the way.
    pub(crate) async fn advance(&self, duration: Duration) {
        match &self.driver {
            Some(driver) => driver.run_for(duration).await,
            None => self.clock.sleep(duration).await,
        }
    }

    /// Awaits something while time passes as on the wall: what backs off or times out does so in its time.
    pub(crate) async fn flow<F: Future>(&self, future: F) -> F::Output {
        let Some(driver) = &self.driver else { return future.await };
        let wall = Clock::real();
        let mut future = pin!(future);
        let mut last = wall.moment();
        loop {
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = wall.sleep(STEP) => {
                    let now = wall.moment();
                    driver.advance(now - last);
                    last = now;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn time_stands_still_until_someone_waits_or_advances_it() {
        let time = Time::driven();
        let start = time.clock().moment();
        Clock::real().sleep(Duration::from_millis(20)).await;
        assert_eq!(time.clock().moment(), start);
        time.advance(Duration::from_secs(3600)).await;
        assert_eq!(time.clock().moment() - start, Duration::from_secs(3600));
        time.flow(time.clock().sleep(Duration::from_millis(30))).await;
        assert!(time.clock().moment() - start >= Duration::from_millis(3_600_030));
    }
}
