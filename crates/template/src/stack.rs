//! A stack that is deep enough for every template within the bounds.

/// Bytes of address space, of which only what is used becomes memory.
const STACK: usize = 1 << 30;

/// Runs on a thread with a large stack: templates may be nested as deeply as [`crate::Limits`] allow.
///
/// # Errors
/// If no thread can be started.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, std::io::Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("template".into())
            .stack_size(STACK)
            .spawn_scoped(scope, work)?;
        thread.join().map_err(|_| std::io::Error::other("rendering ended without an answer"))
    })
}
