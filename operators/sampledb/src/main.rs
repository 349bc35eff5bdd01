//! The operator's binary. It runs, and answers `describe`, `plan`, `capture` and `why`.

use sampledb_operator::{DEFAULT_IMAGE, IMAGE_VARIABLE, operator};
use windlass::Manager;

/// Small objects are made and dropped all day; this allocator takes less time and memory for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// It waits far more than it computes: one thread does for thousands of resources.
#[tokio::main(flavor = "current_thread")]
async fn main() -> windlass::Result<()> {
    let image = std::env::var(IMAGE_VARIABLE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned());
    operator(Manager::from_env()?, &image).run().await
}
