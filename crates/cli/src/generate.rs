//! `windlass generate`: manifests from the description that an operator's binary prints.

use crate::operator::Options as Operator;
use crate::output::Output;
use crate::samples::Samples;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_sdk::breaking::breaking_changes;
use windlass_sdk::description::OperatorDescription;
use windlass_sdk::files::{self, File, State};
use windlass_sdk::generate::{Options as Given, manifests};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The operator's binary; without it, the one that WINDLASS_OPERATOR names, or that of the project here
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// Where the manifests go
    #[arg(long, value_name = "FOLDER", default_value = "config")]
    folder: PathBuf,
    /// The namespace that the operator will run in; without it, NAME-system
    #[arg(long)]
    namespace: Option<String>,
    /// The operator's image; without it, NAME:latest
    #[arg(long)]
    image: Option<String>,
    /// Let cert-manager make the certificates of webhooks, instead of the operator itself
    #[arg(long)]
    cert_manager: bool,
    /// Write nothing; fail when something would be written
    #[arg(long)]
    check: bool,
    /// Change kinds even where that breaks objects that are stored
    #[arg(long)]
    force: bool,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

impl Options {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let answer = Operator::of(self.operator.clone()).answer("describe")?;
        let operator = OperatorDescription::read(&answer)?;
        let given = Given {
            namespace: self.namespace.clone().unwrap_or_else(|| format!("{}-system", operator.name)),
            image: self.image.clone().unwrap_or_else(|| format!("{}:latest", operator.name)),
            cert_manager: self.cert_manager,
        };
        let wanted = manifests(&operator, &given);
        if !self.force {
            refuse_breaks(&self.folder, &wanted)?;
        }
        let samples = Samples::read(&self.folder, &wanted)?;
        samples.check(&wanted)?;
        let wanted: Vec<File> =
            wanted.into_iter().filter(|file| !samples.of_the_author.contains(&file.path)).collect();
        let states = match self.check {
            true => files::compare(&self.folder, &wanted)?,
            false => files::write(&self.folder, &wanted)?,
        };
        let changed = states.iter().filter(|state| **state != State::Same).count();
        match self.output {
            Output::Json => self.tell_program(&wanted, &states)?,
            Output::Text => {
                for path in &samples.of_the_author {
                    println!("{:<14} {}", "is yours", self.folder.join(path).display());
                }
                self.tell_person(&wanted, &states);
            }
        }
        if self.check && changed > 0 {
            bail!("{changed} of {} manifests are not up to date; run `windlass generate`", wanted.len());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn tell_person(&self, wanted: &[File], states: &[State]) {
        let changed: Vec<(&File, &State)> =
            wanted.iter().zip(states).filter(|(_, state)| **state != State::Same).collect();
        for (file, state) in &changed {
            let what = match (state, self.check) {
                (State::Absent, false) => "wrote",
                (State::Absent, true) => "is missing",
                (_, false) => "changed",
                (_, true) => "is out of date",
            };
            println!("{what:<14} {}", self.folder.join(&file.path).display());
        }
        match (self.check, changed.len()) {
            (_, 0) => println!("{} manifests are up to date", wanted.len()),
            (true, _) => {}
            (false, count) => println!("{count} of {} manifests written", wanted.len()),
        }
    }

    /// What there was before, file by file, and whether that is so still.
    fn tell_program(&self, wanted: &[File], states: &[State]) -> anyhow::Result<()> {
        let files = wanted.iter().zip(states).map(|(file, state)| {
            let was = match state {
                State::Same => "upToDate",
                State::Absent => "missing",
                State::Different => "outOfDate",
            };
            json!({ "path": self.folder.join(&file.path), "was": was })
        });
        let differs = states.iter().any(|state| *state != State::Same);
        let told = json!({
            "upToDate": !differs, "written": differs && !self.check, "files": files.collect::<Vec<_>>(),
        });
        println!("{}", serde_json::to_string_pretty(&told)?);
        Ok(())
    }
}

/// The definitions on disk are those that clusters have: a change that breaks what is stored there is not made in passing.
fn refuse_breaks(folder: &Path, wanted: &[File]) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for file in wanted.iter().filter(|file| file.path.starts_with("crd")) {
        let path = folder.join(&file.path);
        let Ok(there) = std::fs::read_to_string(&path) else { continue };
        let old =
            serde_saphyr::from_str(&there).with_context(|| format!("{} is not YAML", path.display()))?;
        let new = serde_saphyr::from_str(&file.text).context("a generated definition is not YAML")?;
        found.extend(breaking_changes(&old, &new).iter().map(|one| format!("\n  {}: {one}", path.display())));
    }
    if !found.is_empty() {
        bail!(
            "stored objects would break; nothing was written (--force does it all the same):{}",
            found.concat()
        );
    }
    Ok(())
}
