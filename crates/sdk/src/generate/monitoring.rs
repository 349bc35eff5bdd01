//! What people watch an operator by: a dashboard for Grafana, and rules that call somebody for Prometheus. The figures have the names
//! that controller-runtime's have, so that what was made for one shows the other too.

use crate::files::File;
use crate::yaml;
use serde_json::{Value, json};

/// A panel of the dashboard: its title, its unit, and what each line shows.
type Panel = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// `JOB` stands for the operator that is looked at.
const PANELS: &[Panel] = &[
    (
        "Reconciles",
        "ops",
        &[(
            "sum by (controller, result) (rate(controller_runtime_reconcile_total{JOB}[5m]))",
            "{{controller}} {{result}}",
        )],
    ),
    (
        "Reconciles that failed",
        "ops",
        &[(
            "sum by (controller) (rate(controller_runtime_reconcile_errors_total{JOB}[5m]))",
            "{{controller}}",
        )],
    ),
    (
        "How long reconciles take",
        "s",
        &[
            (
                "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{JOB}[5m])))",
                "{{controller}} half",
            ),
            (
                "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{JOB}[5m])))",
                "{{controller}} 99 of 100",
            ),
        ],
    ),
    (
        "Objects that wait for their reconcile",
        "short",
        &[("sum by (name) (workqueue_depth{JOB})", "{{name}}")],
    ),
    (
        "How long they wait",
        "s",
        &[(
            "histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket{JOB}[5m])))",
            "{{name}} 99 of 100",
        )],
    ),
    (
        "Workers at work",
        "short",
        &[
            ("sum by (controller) (controller_runtime_active_workers{JOB})", "{{controller}}"),
            (
                "sum by (controller) (controller_runtime_max_concurrent_reconciles{JOB})",
                "{{controller}} at most",
            ),
        ],
    ),
    (
        "Requests to the API",
        "reqps",
        &[("sum by (method, code) (rate(rest_client_requests_total{JOB}[5m]))", "{{method}} {{code}}")],
    ),
    ("Who leads", "short", &[("leader_election_master_status{JOB}", "{{pod}}")]),
];

/// An alert: its name, when it is raised, for how long that must be so, and what it says.
type Alert = (&'static str, &'static str, &'static str, &'static str);

const ALERTS: &[Alert] = &[
    (
        "TurnsFail",
        "sum by (controller) (rate(controller_runtime_reconcile_errors_total{JOB}[10m])) > 0.1",
        "15m",
        "Reconciles of {{ $labels.controller }} have failed again and again for a quarter of an hour.",
    ),
    (
        "TurnsPanic",
        "sum by (controller) (increase(controller_runtime_reconcile_panics_total{JOB}[10m])) > 0",
        "0m",
        "A reconcile of {{ $labels.controller }} panicked: that is a mistake in the operator.",
    ),
    (
        "TurnsNeedPeople",
        "sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{JOB}[30m])) > 0",
        "0m",
        "{{ $labels.controller }} met what trying again does not mend; conditions and events of its objects say more.",
    ),
    (
        "TurnHangs",
        "max by (name) (workqueue_longest_running_processor_seconds{JOB}) > 300",
        "5m",
        "A reconcile of {{ $labels.name }} has run for more than five minutes.",
    ),
    (
        "ObjectsWait",
        "sum by (name) (workqueue_depth{JOB}) > 100",
        "15m",
        "More than a hundred objects have waited for their turn with {{ $labels.name }} for a quarter of an hour.",
    ),
    (
        "RefusedByTheApi",
        "sum(rate(rest_client_requests_total{JOB,code=~\"401|403\"}[10m])) > 0",
        "10m",
        "The API refuses what the operator asks for: its permissions are not those that `windlass generate` wrote.",
    ),
];

/// The dashboard and the rules.
pub(super) fn files(name: &str) -> Vec<File> {
    let dashboard = format!("{:#}\n", dashboard(name));
    let rules = super::HEADER.to_owned() + &yaml::document(&rules(name));
    vec![File::new("monitoring/dashboard.json", dashboard), File::new("monitoring/alerts.yaml", rules)]
}

/// Which figures are this operator's: its Service is the job.
fn of(expression: &str, name: &str) -> String {
    expression.replace("JOB", &format!("job=\"{name}-metrics\""))
}

fn dashboard(name: &str) -> Value {
    let panels = PANELS.iter().enumerate().map(|(number, (title, unit, lines))| {
        let targets = lines.iter().zip('A'..='Z').map(|((expression, legend), id)| {
            json!({ "refId": id.to_string(), "expr": of(expression, name), "legendFormat": legend })
        });
        json!({
            "id": number + 1, "type": "timeseries", "title": title,
            "datasource": { "type": "prometheus", "uid": "${datasource}" },
            "gridPos": { "x": number % 2 * 12, "y": number / 2 * 8, "w": 12, "h": 8 },
            "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] },
            "targets": targets.collect::<Vec<_>>(),
        })
    });
    json!({
        "title": name, "uid": name, "schemaVersion": 39, "version": 1, "editable": true,
        "tags": ["windlass"], "time": { "from": "now-1h", "to": "now" }, "refresh": "30s",
        "templating": { "list": [{ "name": "datasource", "type": "datasource", "query": "prometheus" }] },
        "panels": panels.collect::<Vec<_>>(),
    })
}

fn rules(name: &str) -> Value {
    let alert = |(title, when, lasts, says): &Alert| {
        json!({
            "alert": title, "expr": of(when, name), "for": lasts,
            "labels": { "severity": "warning", "operator": name },
            "annotations": { "summary": says },
        })
    };
    json!({ "groups": [{ "name": name, "rules": ALERTS.iter().map(alert).collect::<Vec<_>>() }] })
}
