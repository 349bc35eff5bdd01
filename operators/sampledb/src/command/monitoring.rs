//! `monitoring`: what Prometheus and Grafana are told, as manifests.

use super::Failure;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

const RULES: &str = include_str!("../../monitoring/rules.yaml");
const POD_MONITOR: &str = include_str!("../../monitoring/pod-monitor.yaml");
const DASHBOARD: &str = include_str!("../../monitoring/dashboard.json");

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Print the dashboard alone, as Grafana imports it
    #[arg(long)]
    dashboard: bool,
}

pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let text = if options.dashboard { DASHBOARD.to_owned() } else { manifests()? };
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// A PrometheusRule, a PodMonitor, and the ConfigMap in which Grafana's sidecar finds the dashboard.
fn manifests() -> Result<String, Failure> {
    let dashboard = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "sampledb-dashboard",
            "labels": { "app.kubernetes.io/name": "sampledb", "grafana_dashboard": "1" },
        },
        "data": { "sampledb.json": DASHBOARD },
    });
    let dashboard = serde_saphyr::to_string(&dashboard).map_err(|error| error.to_string())?;
    Ok([RULES, POD_MONITOR, &dashboard].join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::metrics::names;
    use crate::metrics;
    use serde_json::Value;
    use windlass::metrics::Page;

    /// The words of an expression that can only be names of metrics.
    fn metrics_in(expression: &str) -> Vec<String> {
        let words = expression.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let metric = |word: &&str| word.starts_with("sampledb_") || word.starts_with("pg_");
        words.filter(metric).map(str::to_owned).collect()
    }

    #[test]
    fn rules_and_dashboard_ask_for_metrics_that_there_are() {
        let mut page = Page::default();
        metrics::databases(&[], &mut page);
        metrics::instances(&[], &mut page);
        metrics::backups(&[], &mut page);
        let mut known: Vec<String> = page
            .as_str()
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned))
            .collect();
        known.extend(names().map(str::to_owned));
        let rules: Value = serde_saphyr::from_str(RULES).unwrap();
        let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
        let mut expressions: Vec<&Value> = Vec::new();
        for rule in rules["spec"]["groups"][0]["rules"].as_array().unwrap() {
            assert!(
                rule["annotations"]["summary"].is_string() && rule["annotations"]["runbook"].is_string(),
                "{rule}"
            );
            assert!(rule["labels"]["severity"].is_string(), "{rule}");
            expressions.push(&rule["expr"]);
        }
        for panel in dashboard["panels"].as_array().unwrap() {
            expressions.extend(panel["targets"].as_array().unwrap().iter().map(|target| &target["expr"]));
        }
        assert!(expressions.len() > 20);
        for expression in expressions {
            let asked = metrics_in(expression.as_str().unwrap());
            assert!(!asked.is_empty(), "{expression}");
            assert!(asked.iter().all(|one| known.contains(one)), "{expression}: {known:?}");
        }
    }

    #[test]
    fn the_manifests_are_three_objects_of_which_one_has_the_dashboard() {
        let manifests = manifests().unwrap();
        let all: Vec<Value> =
            manifests.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect();
        let kinds: Vec<&Value> = all.iter().map(|one| &one["kind"]).collect();
        assert_eq!(kinds, ["PrometheusRule", "PodMonitor", "ConfigMap"]);
        assert_eq!(all[2]["data"]["sampledb.json"], DASHBOARD);
    }
}
