//! Time as a value: wall clock, monotonic clock and sleep behind one small type.
//!
//! Everything in Windlass that waits or stamps holds a [`Clock`]. In production it is [`Clock::real`]; in a test it
//! is [`Clock::driven`], and the test's [`Driver`] decides when an hour has passed: for every task and thread that
//! holds a clone, at once.
//!
//! ```
//! use std::time::Duration;
//! use windlass_clock::Clock;
//!
//! let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
//! let before = clock.moment();
//! driver.advance(Duration::from_secs(3600));
//! assert_eq!(clock.now().to_string(), "2026-01-01T01:00:00Z");
//! assert_eq!(clock.moment() - before, Duration::from_secs(3600));
//! ```

mod driven;
mod moment;
mod real;

pub use driven::Driver;
pub use jiff::Timestamp;
pub use moment::Moment;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A source of time. Cloning it is cheap, and clones agree.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Real,
    Driven(Arc<driven::Driven>),
}

/// [`Clock::timeout`] gave up on its future.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_clock::Clock;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let never = std::future::pending::<()>();
/// let late = Clock::real().timeout(Duration::from_millis(5), never).await.unwrap_err();
/// assert_eq!(late.to_string(), "not done after 5ms");
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut {
    /// How long it was given.
    pub after: Duration,
}

impl std::fmt::Display for TimedOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not done after {:?}", self.after)
    }
}

impl std::error::Error for TimedOut {}

impl Clock {
    /// The machine's own time.
    pub const fn real() -> Self {
        Self(Source::Real)
    }

    /// Time that stands still until the returned [`Driver`] moves it.
    pub fn driven(start: Timestamp) -> (Self, Driver) {
        let shared = Arc::new(driven::Driven::new(start));
        (Self(Source::Driven(shared.clone())), Driver::new(shared))
    }

    /// Whether a test moves it.
    pub const fn is_driven(&self) -> bool {
        matches!(self.0, Source::Driven(_))
    }

    /// The wall clock: what to stamp on objects. It can jump; never measure with it.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::Real => real::now(),
            Source::Driven(driven) => driven.now(),
        }
    }

    /// The monotonic clock: what to measure and schedule with.
    pub fn moment(&self) -> Moment {
        match &self.0 {
            Source::Real => real::moment(),
            Source::Driven(driven) => driven.moment(),
        }
    }

    /// Waits for `duration`. Zero returns at once, without yielding.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.moment() + duration).await;
    }

    /// Waits until `due`. A moment that has passed returns at once, without yielding.
    pub async fn sleep_until(&self, due: Moment) {
        match &self.0 {
            Source::Real => real::sleep_until(due).await,
            Source::Driven(driven) => driven::Sleep::new(driven.clone(), due, due).await,
        }
    }

    /// Waits for `at_least`, and on a driven clock for up to `at_most` when nothing else happens sooner: for what recurs often
    /// and could as well come later. A day that a test lets pass then stops for it at `at_most` only.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use windlass_clock::Clock;
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    /// let (short, long) = (Duration::from_secs(10), Duration::from_secs(40));
    /// let sleeping = tokio::spawn({
    ///     let clock = clock.clone();
    ///     async move { clock.sleep_between(short, long).await }
    /// });
    /// driver.run_for(Duration::from_secs(5)).await;
    /// assert_eq!(driver.next_due().map(|due| due - clock.moment()), Some(Duration::from_secs(35)));
    /// driver.advance(Duration::from_secs(5)); // for whatever reason: it wakes
    /// sleeping.await.unwrap();
    /// # });
    /// ```
    pub async fn sleep_between(&self, at_least: Duration, at_most: Duration) {
        let now = self.moment();
        match &self.0 {
            Source::Real => real::sleep_until(now + at_least).await,
            Source::Driven(driven) => {
                driven::Sleep::new(driven.clone(), now + at_least, now + at_most).await;
            }
        }
    }

    /// Runs `future` for at most `limit`. A future that is ready in time wins over a limit that passed meanwhile.
    ///
    /// # Errors
    /// [`TimedOut`] when the limit passed first; the future is dropped then.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Result<F::Output, TimedOut> {
        let mut future = pin!(future);
        let mut limit_passed = pin!(self.sleep(limit));
        std::future::poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            limit_passed.as_mut().poll(context).map(|()| Err(TimedOut { after: limit }))
        })
        .await
    }
}
