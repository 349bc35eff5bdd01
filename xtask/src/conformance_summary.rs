//! What Kubernetes' conformance tests came to: a table by SIG, and the names of those that failed.

use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Prints the summary of a report that ginkgo wrote with `--json-report`.
pub(crate) fn print(report: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(report).with_context(|| report.display().to_string())?;
    let report: Value = serde_json::from_str(&text).context("the report is no JSON")?;
    print!("{}", summary(&report));
    Ok(())
}

#[derive(Default)]
struct Row {
    passed: usize,
    failed: usize,
    seconds: f64,
}

fn summary(report: &Value) -> String {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut failed = Vec::new();
    let suites = report.as_array().into_iter().flatten();
    for spec in suites.flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten()) {
        if spec["LeafNodeType"] != "It" {
            continue;
        }
        let name = name(spec);
        let passed = match spec["State"].as_str() {
            Some("passed") => true,
            Some("skipped" | "pending") | None => continue,
            Some(_) => false,
        };
        let row = rows.entry(sig(&name).to_owned()).or_default();
        // Nanoseconds.
        row.seconds += spec["RunTime"].as_f64().unwrap_or_default() / 1e9;
        match passed {
            true => row.passed += 1,
            false => {
                row.failed += 1;
                failed.push(name);
            }
        }
    }
    let all = rows.values().fold(Row::default(), |all, row| Row {
        passed: all.passed + row.passed,
        failed: all.failed + row.failed,
        seconds: all.seconds + row.seconds,
    });
    let mut text = format!("| {:<24} | passed | failed | seconds |\n|---|---|---|---|\n", "SIG");
    let rows = rows.iter().map(|(sig, row)| (sig.as_str(), row));
    for (sig, row) in rows.chain([("all", &all)]) {
        // Writing to a text cannot fail.
        let _ =
            writeln!(text, "| {sig:<24} | {:>6} | {:>6} | {:>7.0} |", row.passed, row.failed, row.seconds);
    }
    for name in failed {
        let _ = writeln!(text, "failed: {name}");
    }
    text
}

/// The whole name of a test.
fn name(spec: &Value) -> String {
    let above = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten().filter_map(Value::as_str);
    above.chain(spec["LeafNodeText"].as_str()).collect::<Vec<_>>().join(" ")
}

/// `sig-node` of `[sig-node] Pods ...`.
fn sig(name: &str) -> &str {
    name.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or("none", |(sig, _)| sig)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tests_are_counted_by_sig_and_those_that_failed_are_named() {
        let spec = |sig: &str, state: &str| {
            json!({"LeafNodeType": "It", "ContainerHierarchyTexts": [format!("[{sig}] Pods")], "LeafNodeText": "should run",
                "State": state, "RunTime": 1.5e9})
        };
        let report = json!([{"SpecReports": [spec("sig-node", "passed"), spec("sig-node", "panicked"),
            spec("sig-apps", "passed"), spec("sig-apps", "skipped"), {"LeafNodeType": "BeforeSuite", "State": "passed"}]}]);
        let rows: Vec<String> =
            summary(&report).lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows[2..],
            ["|sig-apps|1|0|2|", "|sig-node|1|1|3|", "|all|2|1|4|", "failed:[sig-node]Podsshouldrun"]
        );
    }
}
