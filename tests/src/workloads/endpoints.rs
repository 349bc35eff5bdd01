//! Behaviours of endpoints.

use windlass_harness::Suite;

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
}
