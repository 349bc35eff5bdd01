//! `windlass helm show`: what stands in a chart.

use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_charts::{Chart, read_chart};

/// Which part of a chart.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    All,
    Chart,
    Values,
    Readme,
    Crds,
}

/// Show a part of a chart.
#[derive(Debug, Args)]
pub struct Options {
    /// Which part
    part: Part,
    /// The chart
    chart: PathBuf,
}

impl Options {
    /// Prints the part.
    pub fn run(self) -> Result<ExitCode> {
        let chart = read_chart(&self.chart)?;
        let one = |part: Part| self.part == part || self.part == Part::All;
        let mut parts = Vec::new();
        if one(Part::Chart) {
            parts.push(file(&chart, "Chart.yaml"));
        }
        if one(Part::Values) {
            parts.push(file(&chart, "values.yaml"));
        }
        if one(Part::Readme) {
            let names = ["readme.md", "readme.txt", "readme"];
            let found =
                chart.files.iter().find(|file| names.contains(&file.name.to_ascii_lowercase().as_str()));
            parts
                .push(found.map(|file| String::from_utf8_lossy(&file.data).into_owned()).unwrap_or_default());
        }
        if one(Part::Crds) {
            parts.extend(
                chart.crds().iter().map(|file| format!("---\n{}", String::from_utf8_lossy(&file.data))),
            );
        }
        parts.retain(|part| !part.trim().is_empty());
        let text = parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n---\n");
        println!("{text}");
        Ok(ExitCode::SUCCESS)
    }
}

fn file(chart: &Chart, name: &str) -> String {
    let found = chart.raw.iter().find(|file| file.name == name);
    found.map(|file| String::from_utf8_lossy(&file.data).into_owned()).unwrap_or_default()
}
