//! `windlass doctor`: whether this machine can run pods as processes.

use crate::output::Output;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use windlass_node::doctor::{self, Finding, Level};
use windlass_node::shim::Program;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How to print it
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let findings = doctor::examine(&Program::current()?)?;
    let can = doctor::can(&findings);
    let mut out = std::io::stdout().lock();
    match options.output {
        Output::Json => {
            let told = json!({ "canRunPods": can, "findings": findings });
            writeln!(out, "{}", serde_json::to_string_pretty(&told)?)?;
        }
        Output::Text => write!(out, "{}", in_words(&findings, can))?,
    }
    // So that scripts can ask.
    Ok(if can { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_words(findings: &[Finding], can: bool) -> String {
    let mut text = String::new();
    let widest = findings.iter().map(|finding| finding.about.len()).max().unwrap_or_default();
    for Finding { about, level, found, remedy } in findings {
        let mark = match level {
            Level::Ok => "ok     ",
            Level::Warning => "warning",
            Level::Problem => "PROBLEM",
        };
        text += &format!("{mark}  {about:widest$}  {found}\n");
        if let Some(remedy) = remedy {
            text += &format!("{:1$}  -> {remedy}\n", "", mark.len() + 2 + widest);
        }
    }
    text += if can {
        "\nThis machine can run pods as processes: windlass cluster up --nodes process=1\n"
    } else {
        "\nThis machine cannot run pods as processes yet. Simulated nodes work on any: windlass cluster up\n"
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_below_what_is_wrong() {
        let finding = |about: &str, level, remedy: Option<&str>| Finding {
            about: about.into(),
            level,
            found: "found".into(),
            remedy: remedy.map(Into::into),
        };
        let findings = [finding("one", Level::Ok, None), finding("second", Level::Problem, Some("do this"))];
        let text = in_words(&findings, false);
        assert!(
            text.starts_with("ok       one     found\nPROBLEM  second  found\n                 -> do this\n"),
            "{text}"
        );
        assert!(text.contains("cannot"));
    }
}
