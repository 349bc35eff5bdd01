//! `windlass helm package`: a chart as an archive.

use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_charts::{pack, read_folder};

/// Package charts.
#[derive(Debug, Args)]
pub struct Options {
    /// The folders of the charts
    #[arg(value_name = "CHART", required = true)]
    charts: Vec<PathBuf>,
    /// Where the archives go
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    destination: PathBuf,
}

impl Options {
    /// Packages each chart, and prints where it is.
    pub fn run(self) -> Result<ExitCode> {
        for folder in &self.charts {
            let chart = read_folder(folder)?;
            let path = self.destination.join(format!("{}-{}.tgz", chart.name(), chart.metadata.version));
            std::fs::write(&path, pack(&chart)?).with_context(|| path.display().to_string())?;
            println!("Successfully packaged chart and saved it to: {}", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
