//! Helm charts without a network: they are read from folders and archives, their values are merged and checked, their
//! templates rendered, and what comes out is split into manifests and hooks.

mod archive;
mod capabilities;
mod chart;
mod coalesce;
mod dependencies;
mod file;
mod files;
mod folder;
mod glob;
mod ignore;
mod manifests;
mod metadata;
mod objects;
mod render;
mod schema;
mod set;
mod values;

pub use capabilities::Capabilities;
pub use chart::{Chart, pack, read_archive, read_files};
pub use coalesce::coalesce;
pub use dependencies::process as process_dependencies;
pub use file::File;
pub use folder::{read_chart, read_folder};
pub use manifests::{Hook, Manifest, Rendered, split};
pub use metadata::{Dependency, Maintainer, Metadata};
pub use render::{Release, Rendering, render};
pub use schema::check as check_schema;
pub use set::set;
pub use values::{merge_tables, read_values};
pub use windlass_template::Limits;

/// The API versions that Helm takes for granted where it asks no cluster, a line for each.
pub const KNOWN_API_VERSIONS: &str = include_str!("api_versions.txt");

/// A chart that cannot be read or rendered. The texts are Helm's where Helm has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

impl Error {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}
