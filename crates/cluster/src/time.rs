//! The clock of a cluster: the machine's, or one that a test drives, for everything in the cluster at once.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use windlass_clock::{Clock, Driver, Timestamp};

/// The granularity with which the clock runs while someone waits.
const STEP: Duration = Duration::from_millis(2);

/// The longest pause for woken tasks at each stop, by the machine's clock.
const LONGEST_STOP: Duration = Duration::from_millis(200);

/// But so many times they are let run, however long that takes on a machine that has other things to do as well.
const FEWEST_ROUNDS: usize = 500;

/// How many times in a row a runtime with several threads must be idle: a task that one thread hands to another is for a moment
/// with neither.
const QUIET: usize = 6;

/// The same on one thread, which says nothing of what it has to do: so many times in a row there was nothing that took time.
const QUIET_ON_ONE: usize = 2;

/// How long it takes at most to find that there is nothing to do, in debug.
const NOTHING: Duration = Duration::from_micros(250);

/// A clock, and its driver if it is a driven one.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main]
/// # async fn main() {
/// let time = windlass_cluster::Time::driven("2026-01-01T00:00:00Z".parse().unwrap());
/// time.advance(Duration::from_secs(3600)).await;
/// assert_eq!(time.clock().now().to_string(), "2026-01-01T01:00:00Z");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Time {
    clock: Clock,
    driver: Option<Arc<Driver>>,
}

impl Time {
    /// A driven clock, starting at this time: it stands still except while it is advanced.
    pub fn driven(start: Timestamp) -> Self {
        let (clock, driver) = Clock::driven(start);
        Self { clock, driver: Some(Arc::new(driver)) }
    }

    /// The machine's clock.
    pub fn real() -> Self {
        Self { clock: Clock::real(), driver: None }
    }

    /// The clock of everything in the cluster.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The driver of a driven clock.
    pub fn driver(&self) -> Option<&Driver> {
        self.driver.as_deref()
    }

    /// Advances the clock by `duration`, running everything that falls due on the way: at each stop, the woken tasks and those
    /// that they wake run until all are idle.
    pub async fn advance(&self, duration: Duration) {
        let Some(driver) = &self.driver else { return self.clock.sleep(duration).await };
        let end = self.clock.moment() + duration;
        settle().await;
        while let Some(due) = driver.next_due().filter(|due| *due <= end) {
            driver.advance(due - self.clock.moment());
            settle().await;
        }
        driver.advance(end - self.clock.moment());
        settle().await;
    }

    /// Awaits a future while the clock runs in real time: back-offs and timeouts take their time.
    pub async fn run_clock_while<F: Future>(&self, future: F) -> F::Output {
        let Some(driver) = &self.driver else { return future.await };
        let wall = Clock::real();
        let mut future = pin!(future);
        let mut last = wall.moment();
        loop {
            tokio::select! {
                biased;
                output = &mut future => {
                    // On a busy machine it may be done before a step was: its time passed all the same.
                    let passed = wall.moment() - last;
                    if passed >= STEP {
                        driver.advance(passed);
                    }
                    return output;
                }
                () = wall.sleep(STEP) => {
                    let now = wall.moment();
                    driver.advance(now - last);
                    last = now;
                }
            }
        }
    }
}

/// Waits until no task of this runtime can run.
async fn settle() {
    let wall = Clock::real();
    let mut before = wall.moment();
    let deadline = before + LONGEST_STOP;
    let on_one = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    let (mut quiet, wanted) = (0, if on_one { QUIET_ON_ONE } else { QUIET });
    let mut rounds = 0;
    while quiet < wanted && (before < deadline || rounds < FEWEST_ROUNDS) {
        // Each lets every waiting task of this thread run once.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        let now = wall.moment();
        let is_quiet = if on_one { now - before < NOTHING } else { is_idle() };
        if !is_quiet && !on_one {
            // The machine may have no processor for the other threads: it has this one.
            std::thread::yield_now();
        }
        quiet = if is_quiet { quiet + 1 } else { 0 };
        before = now;
        rounds += 1;
    }
}

/// Whether all threads of this runtime are parked, except the calling one, where there are several.
fn is_idle() -> bool {
    let metrics = Handle::current().metrics();
    // Odd while it is parked.
    let awake = |worker: &usize| metrics.worker_park_unpark_count(*worker).is_multiple_of(2);
    let allowed = usize::from(tokio::task::try_id().is_some());
    metrics.global_queue_depth() == 0 && (0..metrics.num_workers()).filter(awake).count() <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn time_stands_still_until_someone_waits_or_advances_it() {
        let time = Time::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let start = time.clock().moment();
        Clock::real().sleep(Duration::from_millis(20)).await;
        assert_eq!(time.clock().moment(), start);
        time.advance(Duration::from_secs(3600)).await;
        assert_eq!(time.clock().moment() - start, Duration::from_secs(3600));
        time.run_clock_while(time.clock().sleep(Duration::from_millis(30))).await;
        assert!(time.clock().moment() - start >= Duration::from_millis(3_600_030));
    }

    #[tokio::test]
    async fn time_passes_with_what_is_awaited_however_late_it_is_noticed() {
        let time = Time::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let start = time.clock().moment();
        let busy = async {
            // Nobody else runs meanwhile, as on a machine with too much to do.
            let (wall, begun) = (Clock::real(), Clock::real().moment());
            while wall.moment() - begun < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        };
        time.run_clock_while(busy).await;
        assert!(time.clock().moment() - start >= Duration::from_millis(20));
    }

    /// A chain of tasks, each of which does some work and sleeps a second: no second passes before the work is done.
    async fn nobody_is_left_behind() {
        let time = Time::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let (clock, done) = (time.clock().clone(), Arc::new(AtomicUsize::new(0)));
        let count = done.clone();
        let chain = tokio::spawn(async move {
            for _ in 0..60 {
                clock.sleep(Duration::from_secs(1)).await;
                let (sender, receiver) = tokio::sync::oneshot::channel();
                tokio::spawn(async move {
                    (0..20_000).for_each(|number| drop(std::hint::black_box(number.to_string())));
                    let _ = sender.send(());
                });
                let _ = receiver.await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        for minute_part in 1..=6 {
            time.advance(Duration::from_secs(10)).await;
            assert_eq!(done.load(Ordering::SeqCst), minute_part * 10);
        }
        chain.await.unwrap();
    }

    #[tokio::test]
    async fn advancing_leaves_nobody_behind_on_one_thread() {
        nobody_is_left_behind().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn advancing_leaves_nobody_behind_on_several() {
        nobody_is_left_behind().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn advancing_leaves_nobody_behind_from_a_task() {
        tokio::spawn(nobody_is_left_behind()).await.unwrap();
    }
}
