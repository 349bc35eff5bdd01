//! The values that a user gives on the command line: files, then single ones.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Values for a chart.
#[derive(Debug, Args)]
pub struct Values {
    /// Take values from a YAML file; of several files, later ones win
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Set values: `image.tag=v1,ports[0]=80`
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Set values as texts, even if they look like numbers
    #[arg(long = "set-string", value_name = "PATH=VALUE")]
    set_string: Vec<String>,
}

impl Values {
    /// All values, those set on the command line above those of files.
    pub fn read(&self) -> Result<Map<String, Value>> {
        let mut values = Map::new();
        for file in &self.files {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            let read = windlass_charts::read_values(&text).with_context(|| file.display().to_string())?;
            overlay(&mut values, read);
        }
        for text in &self.set {
            windlass_charts::set(&mut values, text, false)?;
        }
        for text in &self.set_string {
            windlass_charts::set(&mut values, text, true)?;
        }
        Ok(values)
    }
}

/// Tables are merged; all else is replaced.
fn overlay(values: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (values.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(value)) => overlay(below, value),
            (_, value) => {
                values.insert(key, value);
            }
        }
    }
}
