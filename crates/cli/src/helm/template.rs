//! `windlass helm template`: a chart's manifests on standard output.

use super::values::Values;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_charts::{Capabilities, Release, Rendering, read_chart, render, split};

/// The version of Kubernetes that charts see unless another is given: that of the embedded API.
const KUBE_VERSION: &str = "v1.36.0";

/// Render a chart.
#[derive(Debug, Args)]
pub struct Options {
    /// The name of the release, and the chart; the name may be left out
    #[arg(value_names = ["NAME", "CHART"], num_args = 1..=2, required = true)]
    words: Vec<String>,
    #[command(flatten)]
    values: Values,
    /// The namespace of the release
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// The version of Kubernetes that the chart sees
    #[arg(long, value_name = "VERSION", default_value = KUBE_VERSION)]
    kube_version: String,
    /// APIs that the cluster has, such as monitoring.coreos.com/v1
    #[arg(short, long, value_name = "API", value_delimiter = ',')]
    api_versions: Vec<String>,
    /// Print the CRDs of the chart, too
    #[arg(long)]
    include_crds: bool,
    /// Leave out hooks
    #[arg(long)]
    no_hooks: bool,
    /// Print only what these templates give, such as templates/service.yaml
    #[arg(short, long, value_name = "FILE")]
    show_only: Vec<String>,
    /// Render as for an upgrade
    #[arg(long)]
    is_upgrade: bool,
    /// Do not compare the values with the chart's schema
    #[arg(long)]
    skip_schema_validation: bool,
}

impl Options {
    /// Renders and prints.
    pub fn run(self) -> Result<ExitCode> {
        let (name, path) = match self.words.as_slice() {
            [name, chart] => (name.clone(), PathBuf::from(chart)),
            [chart] => ("release-name".to_owned(), PathBuf::from(chart)),
            _ => bail!("a chart is missing"),
        };
        let chart = read_chart(&path)?;
        let how = Rendering {
            check_schemas: !self.skip_schema_validation,
            ..rendering(name, self.namespace, &self.kube_version, self.api_versions, self.is_upgrade)
        };
        let rendered = split(chart.name(), &render(&chart, &self.values.read()?, &how)?)?;
        let wanted = |source: &str| {
            self.show_only.is_empty()
                || self.show_only.iter().any(|file| source.ends_with(&format!("/{file}")))
        };
        let mut out = String::new();
        if self.include_crds {
            for file in chart.crds().iter().filter(|file| wanted(&file.name)) {
                let text = String::from_utf8_lossy(&file.data);
                out.push_str(&format!("---\n# Source: {}\n{}\n", file.name, text.trim_end()));
            }
        }
        let hooks = rendered.hooks.iter().map(|hook| &hook.manifest).filter(|_| !self.no_hooks);
        for manifest in rendered.manifests.iter().chain(hooks).filter(|manifest| wanted(&manifest.source)) {
            out.push_str(&format!("---\n# Source: {}\n{}\n", manifest.source, manifest.text));
        }
        if out.is_empty() && !self.show_only.is_empty() {
            bail!("could not find template {} in chart", self.show_only.join(", "));
        }
        print!("{out}");
        Ok(ExitCode::SUCCESS)
    }
}

/// How charts are rendered where no cluster is asked.
pub(super) fn rendering(
    name: String,
    namespace: String,
    kube_version: &str,
    mut api_versions: Vec<String>,
    upgrade: bool,
) -> Rendering {
    let version = kube_version.trim_start_matches('v');
    api_versions.extend(windlass_charts::KNOWN_API_VERSIONS.lines().map(str::to_owned));
    Rendering {
        release: Release { name, namespace, revision: 1, upgrade },
        capabilities: Capabilities { kube_version: format!("v{version}"), api_versions },
        strict: false,
        lint: false,
        check_schemas: true,
        now: windlass_clock::Clock::real().now(),
        limits: windlass_charts::Limits::default(),
    }
}
