//! What `make parity` prints and writes.

use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// One behaviour on both sides.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub behaviour: String,
    /// What the embedded API did.
    pub embedded: Value,
    /// What the reference did.
    pub reference: Value,
    /// Whether that is the same.
    pub equal: bool,
}

/// All of them.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Report(pub Vec<Row>);

impl Report {
    /// How many are equal.
    pub fn equal(&self) -> usize {
        self.0.iter().filter(|row| row.equal).count()
    }

    /// Writes `target/parity.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
        std::fs::create_dir_all(&target)?;
        Ok(std::fs::write(target.join("parity.json"), serde_json::to_vec_pretty(self)?)?)
    }
}
