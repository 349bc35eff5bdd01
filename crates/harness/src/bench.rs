//! Measurements of several subjects on the same work, in one run, in turns; shown as ratios.
//!
//! ```no_run
//! use windlass_harness::bench::{Bench, Better};
//!
//! let mut bench = Bench::start("sorting", &["stable", "unstable"]);
//! for turn in 1..=3 {
//!     bench.progress(&format!("turn {turn} of 3"));
//!     bench.record("stable", "time", 12.0, "ms", Better::Lower);
//!     bench.record("unstable", "time", 9.0, "ms", Better::Lower);
//! }
//! bench.finish().unwrap();
//! ```

mod table;

use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_clock::{Clock, Moment};

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Times, sizes, counts of requests.
    Lower,
    /// Rates.
    Higher,
    /// Neither: it is there to be read.
    Neither,
}

/// One value as it is written to `target/bench/NAME.json`: the median over the turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The bench.
    pub bench: String,
    /// Who was measured.
    pub subject: String,
    /// What was measured.
    pub metric: String,
    /// The median over the turns.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// One row: a metric with the values of each subject, one per turn.
#[derive(Debug)]
struct Row {
    metric: String,
    unit: String,
    better: Better,
    /// Parallel to [`Bench::subjects`].
    values: Vec<Vec<f64>>,
}

/// A running bench. Its first subject is the one that the others are compared with.
#[derive(Debug)]
pub struct Bench {
    name: String,
    subjects: Vec<String>,
    rows: Vec<Row>,
    notes: Vec<String>,
    clock: Clock,
    begun: Moment,
}

impl Bench {
    /// Begins a bench of these subjects.
    pub fn start(name: &str, subjects: &[&str]) -> Self {
        let clock = Clock::real();
        let begun = clock.moment();
        eprintln!("bench {name}: {}", subjects.join(", "));
        Self {
            name: name.to_owned(),
            subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
            clock,
            begun,
        }
    }

    /// Says what is being measured now.
    pub fn progress(&self, what: &str) {
        eprintln!("  [{:>5.1} s] {what}", (self.clock.moment() - self.begun).as_secs_f64());
    }

    /// Adds a line below the table, for what a reader must know: what was left out, and why.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Runs `work` and says how long it took.
    pub async fn timed<T>(&self, work: impl Future<Output = T>) -> (T, Duration) {
        let before = self.clock.moment();
        let output = work.await;
        (output, self.clock.moment() - before)
    }

    /// Adds a value of one turn. Rows appear in the order of their first value.
    ///
    /// # Panics
    /// When the subject was not announced: a mistake in the bench.
    pub fn record(&mut self, subject: &str, metric: &str, value: f64, unit: &str, better: Better) {
        let column = self.subjects.iter().position(|known| known == subject);
        let column = column.unwrap_or_else(|| panic!("bench {} announced no subject {subject}", self.name));
        let row = match self.rows.iter().position(|row| row.metric == metric) {
            Some(row) => row,
            None => {
                let values = vec![Vec::new(); self.subjects.len()];
                self.rows.push(Row { metric: metric.to_owned(), unit: unit.to_owned(), better, values });
                self.rows.len() - 1
            }
        };
        self.rows[row].values[column].push(value);
    }

    /// The medians, in the order of the rows.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for row in &self.rows {
            for (subject, values) in self.subjects.iter().zip(&row.values) {
                if let Some(value) = median(values) {
                    records.push(Record {
                        bench: self.name.clone(),
                        subject: subject.clone(),
                        metric: row.metric.clone(),
                        value,
                        unit: row.unit.clone(),
                    });
                }
            }
        }
        records
    }

    /// Prints the table and writes `target/bench/NAME.json`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        println!("{}", table::render(&self.name, &self.subjects, &self.rows, &self.notes));
        let folder = bench_folder();
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.json", self.name));
        std::fs::write(&path, serde_json::to_vec_pretty(&self.records()).map_err(io::Error::other)?)?;
        eprintln!("written to {}", path.display());
        Ok(())
    }
}

/// `target/bench` of the workspace, whatever the current folder is.
fn bench_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).join("bench")
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[count / 2]),
        count => Some(f64::midpoint(sorted[count / 2 - 1], sorted[count / 2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_turns_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 100.0]), Some(3.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
    }

    #[test]
    fn records_follow_the_rows_and_leave_out_what_was_not_measured() {
        let mut bench = Bench::start("b", &["ours", "theirs"]);
        bench.record("ours", "create", 100.0, "/s", Better::Higher);
        bench.record("theirs", "create", 10.0, "/s", Better::Higher);
        bench.record("ours", "size", 1.0, "MB", Better::Lower);
        let seen: Vec<_> =
            bench.records().into_iter().map(|record| (record.subject, record.metric)).collect();
        let expected = [("ours", "create"), ("theirs", "create"), ("ours", "size")];
        assert_eq!(seen, expected.map(|(subject, metric)| (subject.to_owned(), metric.to_owned())));
    }
}
