//! A chart: its metadata, values, templates, other files and the charts within it.

use crate::archive;
use crate::file::File;
use crate::{Error, Metadata};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// How deeply charts may lie within charts.
const DEEPEST: usize = 20;

/// A chart.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// `Chart.yaml`
    pub metadata: Metadata,
    /// `values.yaml`: numbers are floats, as Helm has them.
    pub values: Map<String, Json>,
    /// `values.schema.json`
    pub schema: Option<Vec<u8>>,
    /// What is below `templates`.
    pub templates: Vec<File>,
    /// All other files, which templates see as `.Files`.
    pub files: Vec<File>,
    /// The charts below `charts`.
    pub dependencies: Vec<Chart>,
    /// All files as they were read.
    pub raw: Vec<File>,
}

impl Chart {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The files below `crds`, those of dependencies behind them.
    #[must_use]
    pub fn crds(&self) -> Vec<File> {
        let mut all = Vec::new();
        self.add_crds("", &mut all);
        all
    }

    fn add_crds(&self, above: &str, all: &mut Vec<File>) {
        let path = format!("{above}{}", self.name());
        let manifest = |name: &str| {
            [".yaml", ".yml", ".json"].iter().any(|end| {
                name.len() >= end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end)
            })
        };
        for file in &self.files {
            if file.name.starts_with("crds/") && file.name.is_ascii() && manifest(&file.name) {
                all.push(File { name: format!("{path}/{}", file.name), data: file.data.clone() });
            }
        }
        for dependency in &self.dependencies {
            dependency.add_crds(&format!("{path}/charts/"), all);
        }
    }
}

/// Puts a chart together from its files.
///
/// # Errors
/// If `Chart.yaml` is missing or wrong, or a file cannot be read.
pub fn read_files(files: Vec<File>) -> Result<Chart, Error> {
    assemble(files, 0)
}

/// Reads a packaged chart; `depth` is how many charts it lies within.
///
/// # Errors
/// If it is no archive, leads out of itself, or holds too much.
pub fn read_archive(bytes: &[u8], depth: usize) -> Result<Chart, Error> {
    assemble(archive::unpack(bytes)?, depth)
}

/// Packages a chart, all files below a folder of its name. The same chart gives the same bytes.
///
/// # Errors
/// If a name is too long for an archive.
pub fn pack(chart: &Chart) -> Result<Vec<u8>, Error> {
    archive::pack(chart.name(), &chart.raw)
}

pub(crate) fn assemble(files: Vec<File>, depth: usize) -> Result<Chart, Error> {
    if depth > DEEPEST {
        return Err(Error::new(format!("charts lie more than {DEEPEST} deep within each other")));
    }
    let mut chart = Chart { raw: files.clone(), ..Chart::default() };
    let text = |file: &File| String::from_utf8_lossy(&file.data).into_owned();
    let Some(first) = files.iter().find(|file| file.name == "Chart.yaml") else {
        return Err(Error::new("Chart.yaml file is missing"));
    };
    chart.metadata =
        Metadata::read(&text(first)).map_err(|error| Error(format!("cannot load Chart.yaml: {error}")))?;
    let mut within: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for file in files {
        match file.name.as_str() {
            "Chart.yaml" | "Chart.lock" => {}
            "values.yaml" => {
                chart.values = crate::read_values(&text(&file))
                    .map_err(|error| Error(format!("cannot load values.yaml: {error}")))?;
            }
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                let read = windlass_template::yaml::read(&text(&file))
                    .map_err(|error| Error(error.to_string()))
                    .and_then(|json| chart.metadata.add_dependencies(&json));
                read.map_err(|error| Error(format!("cannot load requirements.yaml: {error}")))?;
                if chart.metadata.api_version == "v1" {
                    chart.files.push(file);
                }
            }
            "requirements.lock" => {
                if chart.metadata.api_version == "v1" {
                    chart.files.push(file);
                }
            }
            name if name.starts_with("templates/") => chart.templates.push(file),
            name if name.starts_with("charts/") && !name.ends_with(".prov") => {
                let inner = name["charts/".len()..].to_owned();
                let folder = inner.split('/').next().unwrap_or_default().to_owned();
                within.entry(folder).or_default().push(File { name: inner, data: file.data });
            }
            _ => chart.files.push(file),
        }
    }
    chart.metadata.check()?;
    for (folder, files) in within {
        if folder.starts_with(['_', '.']) {
            continue;
        }
        let read = if folder.ends_with(".tgz") {
            files
                .first()
                .map_or_else(|| Err(Error::new("it is empty")), |file| read_archive(&file.data, depth + 1))
        } else {
            let inner = files.into_iter().filter_map(|file| {
                let name = file.name.split_once('/')?.1.to_owned();
                Some(File { name, data: file.data })
            });
            assemble(inner.collect(), depth + 1)
        };
        let within = read.map_err(|error| {
            Error(format!("error unpacking subchart {folder} in {}: {error}", chart.metadata.name))
        })?;
        chart.dependencies.push(within);
    }
    Ok(chart)
}
