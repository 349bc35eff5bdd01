//! `windlass helm lint`: can a chart be read and rendered?

use super::template::rendering;
use super::values::Values;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_charts::{Rendering, read_chart, render, split};

/// Check charts.
#[derive(Debug, Args)]
pub struct Options {
    /// The charts; the current folder if none is given
    #[arg(value_name = "CHART", default_value = ".")]
    charts: Vec<PathBuf>,
    #[command(flatten)]
    values: Values,
    /// Values that are missing are failures
    #[arg(long)]
    strict: bool,
}

impl Options {
    /// Checks each chart, and says what was found.
    pub fn run(self) -> Result<ExitCode> {
        let values = self.values.read()?;
        let mut failed = 0;
        for path in &self.charts {
            println!("==> Linting {}", path.display());
            let checked = read_chart(path).and_then(|chart| {
                if chart.metadata.icon.is_empty() {
                    println!("[INFO] Chart.yaml: icon is recommended");
                }
                if chart.templates.is_empty() && !chart.metadata.library() {
                    println!("[WARNING] templates/: directory does not exist or is empty");
                }
                let how = rendering("test-release".into(), "default".into(), "v1.36.0", Vec::new(), false);
                let how = Rendering { lint: true, strict: self.strict, ..how };
                split(chart.name(), &render(&chart, &values, &how)?)
            });
            match checked {
                Ok(_) => println!(),
                Err(error) => {
                    failed += 1;
                    println!("[ERROR] {error}\n");
                }
            }
        }
        println!("{} chart(s) linted, {failed} chart(s) failed", self.charts.len());
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
