//! The agent's binary: the first process of each instance's container.

use std::process::ExitCode;

fn main() -> ExitCode {
    sampledb_operator::agent::main()
}
