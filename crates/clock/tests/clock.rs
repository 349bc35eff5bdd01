//! What holders of a clock may rely on.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass_clock::{Clock, Driver, Moment, TimedOut, Timestamp};

const MINUTE: Duration = Duration::from_secs(60);

fn driven() -> (Clock, Driver) {
    Clock::driven(Timestamp::UNIX_EPOCH)
}

#[tokio::test]
async fn the_real_clock_sleeps_no_shorter_than_asked() {
    let clock = Clock::real();
    let before = clock.moment();
    clock.sleep(Duration::from_millis(20)).await;
    assert!(clock.moment() - before >= Duration::from_millis(20));
    assert!(clock.now() > Timestamp::UNIX_EPOCH);
}

#[tokio::test]
async fn a_passed_moment_and_a_zero_sleep_return_at_once() {
    for clock in [Clock::real(), driven().0] {
        clock.sleep(Duration::ZERO).await;
        clock.sleep_until(Moment::default()).await;
    }
}

#[tokio::test]
async fn driven_time_stands_still_until_moved() {
    let (clock, driver) = driven();
    let sleeper = tokio::spawn({
        let clock = clock.clone();
        async move { clock.sleep(MINUTE).await }
    });
    driver.run_for(MINUTE - Duration::from_nanos(1)).await;
    assert!(!sleeper.is_finished());
    driver.run_for(Duration::from_nanos(1)).await;
    sleeper.await.unwrap();
}

#[tokio::test]
async fn a_loop_that_sleeps_a_minute_runs_sixty_times_in_an_hour() {
    let (clock, driver) = driven();
    let runs = Arc::new(AtomicUsize::new(0));
    let task = tokio::spawn({
        let (clock, runs) = (clock.clone(), runs.clone());
        async move {
            loop {
                clock.sleep(MINUTE).await;
                runs.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    driver.run_for(60 * MINUTE).await;
    assert_eq!(runs.load(Ordering::SeqCst), 60);
    assert_eq!(clock.now(), Timestamp::from_second(3600).unwrap());
    task.abort();
}

#[test]
fn one_driver_moves_many_threads_at_once() {
    let (clock, driver) = driven();
    let threads: Vec<_> = (1..=8u32)
        .map(|minutes| {
            let clock = clock.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    clock.sleep(minutes * MINUTE).await;
                    clock.moment()
                })
            })
        })
        .collect();
    while driver.sleepers() < 8 {
        std::thread::yield_now();
    }
    assert_eq!(driver.next_due(), Some(Moment::default() + MINUTE));
    driver.advance(8 * MINUTE);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Moment::default() + 8 * MINUTE);
    }
    assert_eq!(driver.sleepers(), 0);
}

#[tokio::test]
async fn a_dropped_sleep_is_forgotten() {
    let (clock, driver) = driven();
    assert_eq!(clock.timeout(MINUTE, std::future::ready(7)).await, Ok(7));
    let waiting = tokio::spawn({
        let clock = clock.clone();
        async move { clock.sleep(MINUTE).await }
    });
    driver.run_for(Duration::ZERO).await;
    assert_eq!(driver.sleepers(), 1);
    waiting.abort();
    let _ = waiting.await;
    assert_eq!(driver.sleepers(), 0);
}

#[tokio::test]
async fn a_timeout_gives_up_when_its_limit_has_passed() {
    let (clock, driver) = driven();
    let waiting = tokio::spawn({
        let clock = clock.clone();
        async move { clock.timeout(MINUTE, std::future::pending::<()>()).await }
    });
    driver.run_for(MINUTE).await;
    assert_eq!(waiting.await.unwrap(), Err(TimedOut { after: MINUTE }));
}

#[tokio::test]
async fn the_wall_clock_can_jump_and_the_monotonic_one_does_not_notice() {
    let (clock, driver) = driven();
    driver.advance(MINUTE);
    let before = clock.moment();
    driver.set_wall(Timestamp::UNIX_EPOCH);
    assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
    assert_eq!(clock.moment(), before);
}

#[tokio::test]
async fn a_sleep_that_nobody_polls_holds_nobody_up() {
    let (clock, driver) = driven();
    let mut idle = Box::pin(clock.sleep(MINUTE));
    assert!(
        std::future::poll_fn(|context| std::task::Poll::Ready(idle.as_mut().poll(context).is_pending()))
            .await
    );
    driver.run_for(2 * MINUTE).await;
    assert_eq!(clock.moment(), Moment::default() + 2 * MINUTE);
}
