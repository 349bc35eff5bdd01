//! A future that is polled only when it was woken itself.
//!
//! A task that waits for several things polls all of them whenever one wakes it. What ends a watch (a stop, a changed
//! resource, its time) is shared by thousands of watches and hardly ever happens; asking it at each event would take its
//! lock each time, from every thread.

use futures::task::AtomicWaker;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) struct PollOnWake<F: ?Sized> {
    bell: Arc<Bell>,
    waker: Waker,
    future: Pin<Box<F>>,
}

struct Bell {
    rung: AtomicBool,
    sleeper: AtomicWaker,
}

impl<F: Future> PollOnWake<F> {
    pub(crate) fn new(future: F) -> Self {
        // It must be polled once to know what it waits for.
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), sleeper: AtomicWaker::new() });
        Self { waker: bell.clone().into(), bell, future: Box::pin(future) }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        // Registered first: a bell that rings from here on wakes the task.
        this.bell.sleeper.register(context.waker());
        if !this.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.sleeper.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn is_polled_when_it_was_woken_and_not_when_others_were() {
        let polls = Cell::new(0);
        let (ring, rung) = oneshot::channel();
        let mut rung = Box::pin(rung);
        let mut asleep = PollOnWake::new(std::future::poll_fn(|context| {
            polls.set(polls.get() + 1);
            rung.as_mut().poll(context)
        }));
        for _ in 0..10 {
            tokio::select! {
                biased;
                _ = &mut asleep => panic!("nobody rang"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(polls.get(), 1);
        ring.send(7).unwrap();
        assert_eq!((&mut asleep).await.unwrap(), 7);
        assert_eq!(polls.get(), 2);
    }

    #[tokio::test]
    async fn wakes_the_task_it_was_last_polled_by() {
        let (ring, rung) = oneshot::channel::<()>();
        let mut asleep = PollOnWake::new(rung);
        assert!(futures::poll!(&mut asleep).is_pending());
        let elsewhere = tokio::spawn(asleep);
        tokio::task::yield_now().await;
        ring.send(()).unwrap();
        elsewhere.await.unwrap().unwrap();
    }
}
