//! The crash test of the sample on the cluster of the environment, where the sample's kinds must be.

use kube::Client;
use windlass_tests::crash::{Fault, disturb_every_write};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let client = Client::try_default().await?;
    let run = std::env::args().nth(1).unwrap_or_else(|| "crash".to_owned());
    for fault in [Fault::KillAfter, Fault::KillBefore, Fault::LoseAnswer, Fault::Conflict] {
        let prefix = format!("{run}-{}", format!("{fault:?}").to_lowercase());
        let counts = disturb_every_write(&client, &prefix, fault).await?;
        println!("{fault:?}: {} writes undisturbed; disturbed at each: {:?}", counts[0], &counts[1..]);
    }
    Ok(())
}
