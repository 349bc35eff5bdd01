//! A moment in which no signal ends the program: what is begun in it is done when it ends.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Signals that would end the program wait while this lives. It holds for the thread that made it: a program with others
/// may still be ended by them.
pub(crate) struct Quiet(Option<SigSet>);

impl Quiet {
    pub(crate) fn now() -> Self {
        let ends: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        // Where they cannot be held, writing is as quick as it is.
        Self(ends.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok())
    }
}

impl Drop for Quiet {
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
        let quiet = Quiet::now();
        assert!(SigSet::thread_get_mask().unwrap().contains(Signal::SIGINT));
        drop(quiet);
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
