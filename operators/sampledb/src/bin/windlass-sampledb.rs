//! The command for people: `windlass sampledb` and `kubectl sampledb`, found on PATH by its name.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    sampledb_operator::command::run().await
}
