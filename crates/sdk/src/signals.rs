//! Blocks signals that would end the program while files are written.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Signals that would end the program wait while this lives. It holds for the thread that made it: a program with others
/// may still be ended by them.
pub(crate) struct BlockedSignals(Option<SigSet>);

impl BlockedSignals {
    pub(crate) fn now() -> Self {
        let ends: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        // Where they cannot be held, writing is as quick as it is.
        Self(ends.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok())
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            before.thread_set_mask().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_waits_until_the_moment_is_over() {
        let before = SigSet::thread_get_mask().unwrap();
        let quiet = BlockedSignals::now();
        assert!(SigSet::thread_get_mask().unwrap().contains(Signal::SIGINT));
        drop(quiet);
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
