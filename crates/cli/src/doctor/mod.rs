//! `windlass doctor`: checks whether this machine can build operators and run pods as processes, and what the current cluster allows.

mod cluster;
mod toolchain;

use crate::output::Output;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_node::Program;
use windlass_node::doctor::{self, Finding, Level};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kubeconfig of the cluster to check [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

/// The findings by section.
struct Found {
    toolchain: Vec<Finding>,
    cluster: Vec<Finding>,
    pods: Vec<Finding>,
}

impl Found {
    fn can_build(&self) -> bool {
        doctor::can(&self.toolchain)
    }

    fn can_run_pods(&self) -> bool {
        doctor::can(&self.pods)
    }
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster =
        runtime.block_on(cluster::examine(options.kubeconfig.as_deref(), options.context.as_deref()));
    let found =
        Found { toolchain: toolchain::examine(), cluster, pods: doctor::examine(&Program::current()?)? };
    let mut out = std::io::stdout().lock();
    match options.output {
        Output::Json => {
            let all: Vec<&Finding> =
                found.toolchain.iter().chain(&found.cluster).chain(&found.pods).collect();
            let told = json!({
                "canBuild": found.can_build(), "canRunPods": found.can_run_pods(), "findings": all,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&told)?)?;
        }
        Output::Text => write!(out, "{}", in_words(&found))?,
    }
    // So that scripts can ask. A cluster can be had; a machine that cannot is another matter.
    Ok(if found.can_build() && found.can_run_pods() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_words(found: &Found) -> String {
    let mut text = String::new();
    let sections = [
        ("To build operators", &found.toolchain),
        ("The cluster of your kubeconfig", &found.cluster),
        ("To run pods as processes", &found.pods),
    ];
    let about = sections.iter().flat_map(|(_, findings)| findings.iter()).map(|one| one.about.len());
    let widest = about.max().unwrap_or_default();
    for (title, findings) in sections {
        text += &format!("{title}\n");
        for Finding { about, level, found, remedy } in findings {
            let mark = match level {
                Level::Ok => "ok     ",
                Level::Warning => "warning",
                Level::Problem => "PROBLEM",
            };
            text += &format!("  {mark}  {about:widest$}  {found}\n");
            if let Some(remedy) = remedy {
                text += &format!("{:1$}  -> {remedy}\n", "", mark.len() + 4 + widest);
            }
        }
        text += "\n";
    }
    if !found.can_build() {
        text += "This machine cannot build operators yet.\n";
    }
    text += if found.can_run_pods() {
        "This machine can run pods as processes: windlass cluster up --nodes process=1\n"
    } else {
        "This machine cannot run pods as processes yet. Simulated nodes work on any: windlass cluster up\n"
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
        let found = Found {
            toolchain: vec![finding("one", Level::Ok, None)],
            cluster: Vec::new(),
            pods: vec![finding("second", Level::Problem, Some("do this"))],
        };
        let text = in_words(&found);
        assert!(text.starts_with("To build operators\n  ok       one     found\n"), "{text}");
        assert!(text.contains("  PROBLEM  second  found\n                   -> do this\n"), "{text}");
        assert!(found.can_build() && !found.can_run_pods());
        assert!(text.contains("cannot run pods"));
    }
}
