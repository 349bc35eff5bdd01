//! A file of a chart.

/// A file of a chart, by its path from the chart's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Such as `templates/deployment.yaml`.
    pub name: String,
    /// What stands in it.
    pub data: Vec<u8>,
}
