//! The operator on plain kube, run as kube's own examples are.

mod operator;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    operator::run("bench-kube").await
}
