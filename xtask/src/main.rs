//! The repository's own tasks: `cargo xtask NAME`. People and CI reach them through the Makefile.

mod conformance_summary;
mod facts;
mod reference;
mod structure;

use anyhow::bail;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK

Tasks:
  reference          build the reference Kubernetes, unless it is there already
  reference --where  print the folder of its programs, or fail with what is missing
  conformance        build Kubernetes' own conformance tests, unless they are there, and print their folder
  conformance-summary REPORT  print what they came to, from a report of ginkgo in JSON
  facts              write down what a running Kubernetes says of its built-in kinds; `facts --help` for more
  structure          check that crates and modules depend on each other in one direction only
  skipped            say in one line what `make test` skipped, and how to get it
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> anyhow::Result<()> {
    match arguments {
        [] | ["help" | "--help" | "-h"] => print!("{HELP}"),
        ["reference"] => reference::ensure()?,
        ["reference", "--where"] => println!("{}", reference::find()?.display()),
        ["conformance"] => println!("{}", reference::conformance()?.display()),
        ["conformance-summary", report] => conformance_summary::print(std::path::Path::new(report))?,
        ["facts", rest @ ..] => facts::run(rest.iter().map(ToString::to_string))?,
        ["structure"] => structure::check()?,
        ["skipped"] => reference::say_skipped(),
        other => bail!("no task {:?}; `cargo xtask help` lists them", other.join(" ")),
    }
    Ok(())
}
