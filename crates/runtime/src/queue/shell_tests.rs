//! The queue as workers use it: due times on a driven clock, waking, cancelling, many workers at once.

use super::{Backoff, Depth, Priority, Queue};
use futures::FutureExt;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use windlass_clock::{Clock, Driver};

fn driven() -> (Queue<u32>, Clock, Driver) {
    let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    (Queue::new(clock.clone(), Backoff::default()), clock, driver)
}

/// What `next` gives right now; `None` if it would wait.
fn at_once(queue: &Queue<u32>) -> Option<u32> {
    queue.next().now_or_never().map(|taken| *taken.expect("the queue is not shut down"))
}

const MS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn the_highest_priority_comes_first_then_first_come_first_served() {
    let (queue, ..) = driven();
    queue.add(1, Priority::LOW);
    queue.add(2, Priority::NORMAL);
    queue.add(3, Priority::NORMAL);
    queue.add(4, Priority::HIGH);
    assert_eq!(queue.depth().ready, [(Priority::HIGH, 1), (Priority::NORMAL, 2), (Priority::LOW, 1)]);
    let order: Vec<_> = std::iter::from_fn(|| at_once(&queue)).collect();
    assert_eq!(order, [4, 2, 3, 1]);
}

#[tokio::test]
async fn a_key_comes_at_its_due_time_and_not_before() {
    let (queue, clock, driver) = driven();
    queue.add_at(1, clock.moment() + 10 * MS, Priority::NORMAL);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.map(|taken| *taken) }
    });
    driver.run_for(9 * MS).await;
    assert!(!waiting.is_finished());
    driver.run_for(MS).await;
    assert!(waiting.is_finished());
    assert_eq!(waiting.await.unwrap(), Some(1));
}

#[tokio::test]
async fn an_earlier_due_time_wakes_the_one_that_slept_for_a_later_one() {
    let (queue, clock, driver) = driven();
    queue.add_at(1, clock.moment() + 1000 * MS, Priority::NORMAL);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.map(|taken| *taken) }
    });
    driver.run_for(MS).await;
    queue.add_at(1, clock.moment() + 10 * MS, Priority::NORMAL);
    queue.add_at(1, clock.moment() + 500 * MS, Priority::NORMAL);
    driver.run_for(10 * MS).await;
    assert!(waiting.is_finished());
    assert_eq!(waiting.await.unwrap(), Some(1));
    assert!(queue.is_empty());
}

#[tokio::test]
async fn retries_come_after_a_delay_that_doubles_until_forgotten() {
    let (queue, _, driver) = driven();
    for delay in [5, 10, 20, 40] {
        assert_eq!(queue.retry(1), delay * MS);
        driver.advance((delay - 1) * MS);
        assert_eq!(at_once(&queue), None);
        driver.advance(MS);
        assert_eq!(at_once(&queue), Some(1));
    }
    queue.forget(&1);
    assert_eq!(queue.retry(1), 5 * MS);
    assert_eq!(queue.retry_after(1, 700 * MS), 700 * MS, "as the server asks");
    assert_eq!(queue.retry_after(1, MS), 20 * MS, "no sooner than its back-off");
}

#[tokio::test]
async fn a_retry_keeps_the_priority_of_the_reconcile_that_failed() {
    let (queue, _, driver) = driven();
    queue.add(1, Priority::LOW);
    let taken = queue.next().await.unwrap();
    queue.retry(*taken);
    drop(taken);
    driver.advance(5 * MS);
    let again = queue.next().await.unwrap();
    assert_eq!((again.priority(), again.failures(), again.waited()), (Priority::LOW, 1, Duration::ZERO));
}

#[tokio::test]
async fn a_key_added_while_taken_runs_again_afterwards() {
    let (queue, ..) = driven();
    queue.add(1, Priority::NORMAL);
    let taken = queue.next().await.unwrap();
    queue.add(1, Priority::HIGH);
    assert_eq!((queue.len(), queue.depth().held, at_once(&queue)), (1, 1, None));
    drop(taken);
    let again = queue.next().await.unwrap();
    assert_eq!((*again, again.priority()), (1, Priority::HIGH));
    drop(again);
    assert_eq!(at_once(&queue), None);
}

#[tokio::test]
async fn a_panic_gives_the_key_back() {
    let (queue, ..) = driven();
    queue.add(1, Priority::NORMAL);
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let taken = queue.next().await.unwrap();
            queue.add(*taken, Priority::NORMAL);
            panic!("on purpose");
        }
    });
    assert!(worker.await.unwrap_err().is_panic());
    assert_eq!(at_once(&queue), Some(1));
}

#[tokio::test]
async fn the_oldest_tells_how_far_workers_lag_behind() {
    let (queue, clock, driver) = driven();
    assert_eq!(queue.oldest(), None);
    queue.add_at(1, clock.moment() + 10 * MS, Priority::LOW);
    assert_eq!(queue.oldest(), None);
    driver.advance(15 * MS);
    queue.add(2, Priority::HIGH);
    driver.advance(MS);
    assert_eq!(queue.oldest(), Some(6 * MS));
}

#[tokio::test]
async fn shutting_down_ends_every_wait_and_every_add() {
    let (queue, clock, _driver) = driven();
    queue.add_at(1, clock.moment() + MS, Priority::NORMAL);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shutdown();
    for worker in waiting {
        assert!(worker.await.unwrap());
    }
    let before = queue.len();
    queue.add(2, Priority::NORMAL);
    queue.retry(3);
    assert_eq!(queue.len(), before);
    assert!(queue.next().await.is_none());
}

#[tokio::test]
async fn idle_workers_share_one_timer_and_pass_it_on() {
    let (queue, clock, driver) = driven();
    queue.add_at(1, clock.moment() + 10 * MS, Priority::NORMAL);
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.map(|taken| *taken) })
        })
        .collect();
    driver.run_for(MS).await;
    assert_eq!(driver.sleepers(), 1);
    // Whoever keeps time is among those that are cancelled: another must take over.
    for worker in &workers[..7] {
        worker.abort();
    }
    driver.run_for(MS).await;
    assert_eq!(driver.sleepers(), 1);
    driver.run_for(8 * MS).await;
    let last = workers.into_iter().next_back().unwrap();
    assert!(last.is_finished());
    assert_eq!(last.await.unwrap(), Some(1));
}

#[tokio::test]
async fn keys_due_at_the_same_moment_go_to_as_many_workers() {
    let (queue, clock, driver) = driven();
    for key in 0..8 {
        queue.add_at(key, clock.moment() + 10 * MS, Priority::NORMAL);
    }
    queue.add_at(99, clock.moment() + 1000 * MS, Priority::NORMAL);
    let workers: Vec<_> = (0..9)
        .map(|_| {
            let (queue, clock) = (queue.clone(), clock.clone());
            tokio::spawn(async move {
                let taken = queue.next().await;
                clock.sleep(100 * MS).await;
                drop(taken);
            })
        })
        .collect();
    driver.run_for(11 * MS).await;
    assert_eq!(queue.depth().taken, 8);
    driver.run_for(100 * MS).await;
    assert_eq!(workers.iter().filter(|worker| worker.is_finished()).count(), 8);
    // The ninth keeps time for what is left.
    assert_eq!(driver.sleepers(), 1);
}

#[tokio::test]
async fn one_key_wakes_one_worker() {
    let (queue, ..) = driven();
    let polls = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..100)
        .map(|_| {
            let (queue, polls) = (queue.clone(), polls.clone());
            tokio::spawn(async move {
                let mut next = std::pin::pin!(queue.next());
                std::future::poll_fn(|context| {
                    polls.fetch_add(1, Ordering::Relaxed);
                    next.as_mut().poll(context)
                })
                .await
                .map(|taken| *taken)
            })
        })
        .collect();
    let settle = async || {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    };
    settle().await;
    let before = polls.load(Ordering::Relaxed);
    queue.add(1, Priority::NORMAL);
    settle().await;
    assert_eq!(polls.load(Ordering::Relaxed) - before, 1);
    for key in 2..12 {
        queue.add(key, Priority::NORMAL);
    }
    settle().await;
    let woken = polls.load(Ordering::Relaxed) - before;
    assert!((11..=22).contains(&woken), "{woken} polls for 11 keys");
    assert_eq!(workers.iter().filter(|worker| worker.is_finished()).count(), 11);
    queue.shutdown();
}

/// Producers and workers on several threads, some of which give up waiting again and again. Every key must be worked
/// on after it was last added, and by one worker at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_and_nothing_runs_twice_at_once_among_many_workers() {
    const KEYS: u64 = 64;
    const ROUNDS: u64 = 300;
    let queue = Queue::new(Clock::real(), Backoff { first: Duration::from_micros(50), limit: MS });
    let added: Arc<Vec<AtomicU64>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
    let observed: Arc<Vec<AtomicU64>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
    let busy: Arc<parking_lot::Mutex<HashSet<u64>>> = Arc::default();

    let workers: Vec<_> = (0..16_u64)
        .map(|worker| {
            let (queue, added, observed, busy) =
                (queue.clone(), added.clone(), observed.clone(), busy.clone());
            tokio::spawn(async move {
                let mut reconcile = worker;
                loop {
                    reconcile += 1;
                    let taken = if worker % 2 == 0 {
                        queue.next().await
                    } else {
                        // Gives up after the first poll, or soon after.
                        let patience = Duration::from_micros(reconcile % 3 * 40);
                        match Clock::real().timeout(patience, queue.next()).await {
                            Ok(taken) => taken,
                            Err(_) => {
                                tokio::task::yield_now().await;
                                continue;
                            }
                        }
                    };
                    let Some(taken) = taken else { return };
                    let key = *taken;
                    assert!(busy.lock().insert(key), "two workers have key {key}");
                    let version = added[key as usize].load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    observed[key as usize].fetch_max(version, Ordering::SeqCst);
                    if reconcile.is_multiple_of(5) {
                        queue.retry(key);
                    } else {
                        queue.forget(&key);
                    }
                    assert!(busy.lock().remove(&key));
                }
            })
        })
        .collect();

    let producers: Vec<_> = (0..4_u64)
        .map(|producer| {
            let (queue, added) = (queue.clone(), added.clone());
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let key = (round * 31 + producer * 17) % KEYS;
                    added[key as usize].fetch_add(1, Ordering::SeqCst);
                    let delay = Duration::from_micros(round % 4 * 30);
                    queue.add_at(key, Clock::real().moment() + delay, Priority((round % 3) as i8));
                    if round.is_multiple_of(8) {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let caught_up = async {
        loop {
            if queue.depth() == Depth::default() {
                break;
            }
            Clock::real().sleep(MS).await;
        }
    };
    Clock::real()
        .timeout(Duration::from_secs(20), caught_up)
        .await
        .expect("every key is worked on in the end");
    for key in 0..KEYS as usize {
        assert_eq!(observed[key].load(Ordering::SeqCst), added[key].load(Ordering::SeqCst), "key {key}");
    }
    queue.shutdown();
    for worker in workers {
        worker.await.unwrap();
    }
}
