//! The operator on plain kube, on one thread and with the allocator that the one on windlass has: so that neither decides.

mod operator;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    operator::run("bench-kube-one-thread").await
}
