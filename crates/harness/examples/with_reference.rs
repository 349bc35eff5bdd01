//! Runs a command while a fresh reference is up, with `KUBECONFIG` pointing at it:
//! `cargo run --package windlass-harness --example with_reference -- COMMAND ARGUMENTS...`

use anyhow::{Context, ensure};
use windlass_harness::reference::Reference;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().context("which command?")?;
    let reference = Reference::start().await?;
    let status = std::process::Command::new(program)
        .args(words)
        .env("KUBECONFIG", reference.kubeconfig())
        .status()
        .context("cannot run the command")?;
    drop(reference);
    ensure!(status.success(), "the command failed ({status})");
    Ok(())
}
