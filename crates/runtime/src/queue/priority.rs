//! How urgent a key is.

/// Higher goes first. Between equals it is first come, first served.
///
/// A lower priority can starve: it runs only when nothing of a higher one is ready.
///
/// ```
/// # use windlass::queue::{Backoff, Priority, Queue};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let queue = Queue::new(windlass::clock::Clock::real(), Backoff::default());
/// queue.add("from the first list", Priority::LOW);
/// queue.add("changed just now", Priority::NORMAL);
/// assert_eq!(*queue.next().await.unwrap(), "changed just now");
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(pub i8);

impl Priority {
    /// For what nobody waits for: the first list after a start, a periodic look.
    pub const LOW: Self = Self(-100);
    /// For changes as they happen.
    pub const NORMAL: Self = Self(0);
    /// For what must not wait behind a flood of changes.
    pub const HIGH: Self = Self(100);

    /// Its place among all priorities, from the lowest.
    pub(super) fn rank(self) -> usize {
        usize::from(self.0.cast_unsigned() ^ 0x80)
    }

    /// The priority at that place.
    pub(super) fn of_rank(rank: u8) -> Self {
        Self((rank ^ 0x80).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_order_of_priorities() {
        for (rank, value) in (i8::MIN..=i8::MAX).enumerate() {
            assert_eq!(Priority(value).rank(), rank);
            assert_eq!(Priority::of_rank(rank as u8), Priority(value));
        }
    }
}
