//! Prometheus' text format (version 0.0.4), written as its Go library writes it, numbers included.

use std::fmt::Write;
use std::time::Duration;

/// The media type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a metric is, which tells a reader how it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Only grows; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often values were how large.
    Histogram,
}

/// A page of metrics, one family after the other.
///
/// ```
/// use windlass::metrics::{Page, Type};
/// let mut page = Page::default();
/// page.family("shop_orders_total", Type::Counter, "Orders taken.").sample(&[("shop", "north")], 3.0);
/// assert!(page.as_str().ends_with("shop_orders_total{shop=\"north\"} 3\n"));
/// ```
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins a family: a name, and samples of it that differ in their labels. A name is begun once in a page.
    pub fn family<'a>(&'a mut self, name: &'a str, of: Type, help: &str) -> Family<'a> {
        let kind = match of {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a text cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family { page: self, name }
    }

    /// What was written so far.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What was written.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// One name, and its samples.
#[derive(Debug)]
pub struct Family<'a> {
    page: &'a mut Page,
    name: &'a str,
}

impl Family<'_> {
    /// A sample with these labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.line("", labels, None, value);
        self
    }

    /// A histogram with these labels: upper bounds, how many fell at or below each of them and above the one before, with
    /// those above all of them last, and the sum of all.
    pub fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        bounds: &[f64],
        counts: &[u64],
        sum: Duration,
    ) -> &mut Self {
        let mut counts = counts.iter().copied();
        let mut below = 0;
        for bound in bounds {
            below += counts.next().unwrap_or_default();
            self.line("_bucket", labels, Some(&number(*bound)), below as f64);
        }
        // The whole is the sum of its parts, which others may have added to meanwhile.
        let total = below + counts.next().unwrap_or_default();
        self.line("_bucket", labels, Some("+Inf"), total as f64);
        self.line("_sum", labels, None, sum.as_secs_f64());
        self.line("_count", labels, None, total as f64);
        self
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], below: Option<&str>, value: f64) {
        let out = &mut self.page.0;
        let _ = write!(out, "{}{suffix}", self.name);
        let labels = labels.iter().copied().chain(below.map(|below| ("le", below)));
        let mut opened = false;
        for (name, value) in labels {
            out.push(if std::mem::replace(&mut opened, true) { ',' } else { '{' });
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(out, "{name}=\"{value}\"");
        }
        if opened {
            out.push('}');
        }
        let _ = writeln!(out, " {}", number(value));
    }
}

/// A number as Go's `%g` prints it: existing queries name buckets by exactly these texts.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::Histogram;
    use super::*;

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        let printed = [0.0, 1.0, 0.25, 1e-8, 1e-5, 1e-4, 123456.0, 1_234_567.0, 27_262_976.0].map(number);
        let as_go = ["0", "1", "0.25", "1e-08", "1e-05", "0.0001", "123456", "1.234567e+06", "2.7262976e+07"];
        assert_eq!(printed, as_go);
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(number), ["NaN", "+Inf", "-Inf"]);
    }

    #[test]
    fn what_a_label_holds_cannot_end_its_line() {
        let mut page = Page::default();
        page.family("a", Type::Gauge, "one\ntwo \\").sample(&[("l", "x\"y\\z\n")], 1.0).sample(&[], 2.0);
        assert_eq!(
            page.as_str(),
            "# HELP a one\\ntwo \\\\\n# TYPE a gauge\na{l=\"x\\\"y\\\\z\\n\"} 1\na 2\n"
        );
    }

    #[test]
    fn a_histogram_counts_what_is_at_most_its_bound() {
        let histogram = Histogram::new([0.5, 1.0]);
        for millis in [100, 500, 700, 3000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut page = Page::default();
        histogram.write(&mut page.family("t", Type::Histogram, ""), &[("c", "x")]);
        let lines: Vec<&str> = page.as_str().lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "t_bucket{c=\"x\",le=\"0.5\"} 2",
                "t_bucket{c=\"x\",le=\"1\"} 3",
                "t_bucket{c=\"x\",le=\"+Inf\"} 4",
                "t_sum{c=\"x\"} 4.3",
                "t_count{c=\"x\"} 4",
            ]
        );
    }
}
