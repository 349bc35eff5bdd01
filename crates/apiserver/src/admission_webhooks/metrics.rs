//! What is counted of webhooks, by the names that a stock server has.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// The number of series that are kept: names of webhooks are chosen by others.
const MOST_SERIES: usize = 10_000;

/// The number of buckets is that of the longer of both lists.
const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
const CONDITION_SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// A sort of webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebhookType {
    Mutating,
    Validating,
}

impl WebhookType {
    /// As calls are counted.
    fn of_call(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }

    /// As match conditions are counted.
    fn of_condition(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validate",
        }
    }
}

/// Why a request was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorType {
    /// The webhook says so.
    NoError,
    CallingWebhook,
    ApiServerInternal,
}

/// A call of a webhook.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: WebhookType,
    pub(crate) operation: &'static str,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; 8],
    sum: f64,
    count: u64,
}

impl Histogram {
    fn observe(&mut self, seconds: f64, bounds: &[f64]) {
        for (bucket, bound) in self.buckets.iter_mut().zip(bounds) {
            *bucket += u64::from(seconds <= *bound);
        }
        self.sum += seconds;
        self.count += 1;
    }
}

#[derive(Debug, Default)]
struct Counts {
    counters: BTreeMap<(&'static str, String), u64>,
    durations: BTreeMap<String, Histogram>,
    condition_durations: BTreeMap<String, Histogram>,
}

/// All counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Counts>);

impl Metrics {
    /// A call ended, with this code, which is 200 for an answer that lets the request pass.
    pub(crate) fn called(&self, called: &Called<'_>, took: Duration, code: u16, rejected: bool) {
        let Called { name, kind, operation } = called;
        let kind = kind.of_call();
        let mut counts = self.0.lock();
        let of = format!("name=\"{name}\",operation=\"{operation}\",rejected=\"{rejected}\",type=\"{kind}\"");
        if counts.durations.len() < MOST_SERIES || counts.durations.contains_key(&of) {
            counts.durations.entry(of).or_default().observe(took.as_secs_f64(), SECONDS);
        }
        let code = code.min(600);
        let labels = format!(
            "code=\"{code}\",name=\"{name}\",operation=\"{operation}\",rejected=\"{rejected}\",type=\"{kind}\""
        );
        counts.add("webhook_request_total", labels);
    }

    /// A call is why a request was rejected.
    pub(crate) fn rejected(&self, called: &Called<'_>, error: ErrorType, code: u16) {
        let Called { name, kind, operation } = called;
        let error = match error {
            ErrorType::NoError => "no_error",
            ErrorType::CallingWebhook => "calling_webhook_error",
            ErrorType::ApiServerInternal => "apiserver_internal_error",
        };
        let (kind, code) = (kind.of_call(), code.min(600));
        let labels = format!(
            "error_type=\"{error}\",name=\"{name}\",operation=\"{operation}\",rejection_code=\"{code}\",type=\"{kind}\""
        );
        self.0.lock().add("webhook_rejection_count", labels);
    }

    /// A webhook gave no answer, and the request went on.
    pub(crate) fn failed_open(&self, called: &Called<'_>) {
        let labels = format!("name=\"{}\",type=\"{}\"", called.name, called.kind.of_call());
        self.0.lock().add("webhook_fail_open_count", labels);
    }

    /// Match conditions were evaluated; this many failed, and some may have said no.
    pub(crate) fn conditions(&self, called: &Called<'_>, took: Duration, errors: usize, excluded: bool) {
        let labels = format!(
            "kind=\"webhook\",name=\"{}\",operation=\"{}\",type=\"{}\"",
            called.name,
            called.operation,
            called.kind.of_condition()
        );
        let mut counts = self.0.lock();
        for _ in 0..errors {
            counts.add("match_condition_evaluation_errors_total", labels.clone());
        }
        if excluded {
            counts.add("match_condition_exclusions_total", labels.clone());
        }
        let known = counts.condition_durations.contains_key(&labels);
        if known || counts.condition_durations.len() < MOST_SERIES {
            counts
                .condition_durations
                .entry(labels)
                .or_default()
                .observe(took.as_secs_f64(), CONDITION_SECONDS);
        }
    }

    /// All of it, in the text format of Prometheus; nothing of what never happened.
    pub(crate) fn text(&self) -> String {
        let counts = self.0.lock();
        let mut text = String::new();
        let mut last = "";
        for ((name, labels), count) in &counts.counters {
            if *name != last {
                let _ = writeln!(text, "# HELP apiserver_admission_{name} {}", help(name));
                let _ = writeln!(text, "# TYPE apiserver_admission_{name} counter");
                last = name;
            }
            // Writing to a text cannot fail.
            let _ = writeln!(text, "apiserver_admission_{name}{{{labels}}} {count}");
        }
        histogram(&mut text, "webhook_admission_duration_seconds", SECONDS, &counts.durations);
        histogram(
            &mut text,
            "match_condition_evaluation_seconds",
            CONDITION_SECONDS,
            &counts.condition_durations,
        );
        text
    }
}

impl Counts {
    fn add(&mut self, name: &'static str, labels: String) {
        if self.counters.len() < MOST_SERIES || self.counters.contains_key(&(name, labels.clone())) {
            *self.counters.entry((name, labels)).or_default() += 1;
        }
    }
}

fn help(name: &str) -> &'static str {
    match name {
        "webhook_request_total" => "Calls of a webhook, by the code that they count as",
        "webhook_rejection_count" => "Requests that a webhook rejected, or that failed with it",
        "webhook_fail_open_count" => "Calls of a webhook that failed and were ignored",
        "match_condition_evaluation_errors_total" => "Match conditions that could not be evaluated",
        "match_condition_exclusions_total" => "Requests that match conditions kept from a webhook",
        "webhook_admission_duration_seconds" => "How long calls of a webhook took",
        _ => "How long match conditions took to evaluate",
    }
}

fn histogram(text: &mut String, name: &str, bounds: &[f64], series: &BTreeMap<String, Histogram>) {
    if series.is_empty() {
        return;
    }
    let _ = writeln!(text, "# HELP apiserver_admission_{name} {}", help(name));
    let _ = writeln!(text, "# TYPE apiserver_admission_{name} histogram");
    for (labels, Histogram { buckets, sum, count }) in series {
        for (bucket, bound) in buckets.iter().zip(bounds) {
            let _ = writeln!(text, "apiserver_admission_{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
        }
        let _ = writeln!(text, "apiserver_admission_{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "apiserver_admission_{name}_sum{{{labels}}} {sum}");
        let _ = writeln!(text, "apiserver_admission_{name}_count{{{labels}}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_stock_names_and_labels() {
        let metrics = Metrics::default();
        assert_eq!(metrics.text(), "");
        let called = Called { name: "a.b.c", kind: WebhookType::Validating, operation: "CREATE" };
        metrics.called(&called, Duration::from_millis(20), 200, false);
        metrics.rejected(&called, ErrorType::CallingWebhook, 999);
        metrics.failed_open(&Called { kind: WebhookType::Mutating, ..called });
        metrics.conditions(&called, Duration::from_millis(2), 1, true);
        let text = metrics.text();
        for line in [
            "apiserver_admission_webhook_request_total{code=\"200\",name=\"a.b.c\",operation=\"CREATE\",rejected=\"false\",type=\"validating\"} 1",
            "apiserver_admission_webhook_rejection_count{error_type=\"calling_webhook_error\",name=\"a.b.c\",operation=\"CREATE\",rejection_code=\"600\",type=\"validating\"} 1",
            "apiserver_admission_webhook_fail_open_count{name=\"a.b.c\",type=\"admit\"} 1",
            "apiserver_admission_match_condition_exclusions_total{kind=\"webhook\",name=\"a.b.c\",operation=\"CREATE\",type=\"validate\"} 1",
            "apiserver_admission_webhook_admission_duration_seconds_bucket{name=\"a.b.c\",operation=\"CREATE\",rejected=\"false\",type=\"validating\",le=\"0.025\"} 1",
            "apiserver_admission_webhook_admission_duration_seconds_bucket{name=\"a.b.c\",operation=\"CREATE\",rejected=\"false\",type=\"validating\",le=\"0.005\"} 0",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    }
}
