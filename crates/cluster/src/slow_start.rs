//! Slow start: batches of one, two, four and so on, so that an API that refuses is not asked a thousand times.

use futures::StreamExt;
use std::future::Future;
use windlass::ReconcileError;

/// The most requests at once.
pub(crate) const AT_ONCE: usize = 16;
/// The largest batch.
const LARGEST: usize = 512;

/// Calls `act` for each of `items`, in batches of one, two, four and so on; after a batch with a failure, no more are started.
///
/// # Errors
/// The first failure. The rest of its batch was done.
pub(crate) async fn each<T, F>(
    items: impl IntoIterator<Item = T>,
    act: impl Fn(T) -> F,
) -> Result<(), ReconcileError>
where
    F: Future<Output = Result<(), ReconcileError>>,
{
    let mut items = items.into_iter().peekable();
    let mut size = 1;
    while items.peek().is_some() {
        let batch = items.by_ref().take(size).map(&act);
        let done: Vec<_> = futures::stream::iter(batch).buffer_unordered(AT_ONCE).collect().await;
        done.into_iter().collect::<Result<(), _>>()?;
        size = (2 * size).min(LARGEST);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[tokio::test]
    async fn a_failure_ends_it_with_its_batch() {
        let begun = RefCell::new(Vec::new());
        let done = each(0..100, |number| {
            begun.borrow_mut().push(number);
            async move { if number == 4 { Err(ReconcileError::custom("no")) } else { Ok(()) } }
        });
        assert!(done.await.is_err());
        let mut begun = begun.into_inner();
        begun.sort_unstable();
        assert_eq!(begun, (0..7).collect::<Vec<_>>(), "batches of 1, 2 and 4");
    }
}
