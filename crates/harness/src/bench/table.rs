//! The table that a bench prints. Pure.

use super::{Better, Row, median};

/// The rows as text: a column per subject, and beside each but the first how many times better the first one is.
pub(super) fn render(name: &str, subjects: &[String], rows: &[Row], notes: &[String]) -> String {
    let mut cells: Vec<Vec<String>> = vec![header(name, subjects)];
    cells.extend(rows.iter().map(cells_of));
    let widths: Vec<usize> = (0..cells[0].len())
        .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &cells {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Words to the left, figures to the right.
            let padded = if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text.push_str(&padded);
            text.push_str("  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for note in notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn header(name: &str, subjects: &[String]) -> Vec<String> {
    let mut cells = vec![name.to_owned(), "unit".to_owned()];
    for (index, subject) in subjects.iter().enumerate() {
        cells.push(subject.clone());
        if index > 0 {
            cells.push(format!("{} is", subjects[0]));
        }
    }
    cells
}

fn cells_of(row: &Row) -> Vec<String> {
    let mut cells = vec![row.metric.clone(), row.unit.clone()];
    let first = row.values.first().and_then(|values| median(values));
    for (index, values) in row.values.iter().enumerate() {
        let value = median(values);
        cells.push(value.map_or("-".to_owned(), figure));
        if index > 0 {
            cells.push(ratio(row.better, first, value));
        }
    }
    cells
}

/// How many times better the first subject is; under 1 it is worse.
fn ratio(better: Better, first: Option<f64>, other: Option<f64>) -> String {
    let (Some(first), Some(other)) = (first, other) else { return "-".into() };
    let times = match better {
        Better::Lower => other / first,
        Better::Higher => first / other,
        Better::Neither => return String::new(),
    };
    if times.is_finite() { format!("{}x better", figure(times)) } else { "-".into() }
}

/// Three digits that matter.
fn figure(value: f64) -> String {
    let size = value.abs();
    let digits = if size >= 100.0 || size == 0.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        4
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_subject_is_compared_with_each_other_one() {
        let subjects = ["windlass".to_owned(), "reference".to_owned()];
        let row = |metric: &str, unit: &str, better, ours: f64, theirs: f64| Row {
            metric: metric.into(),
            unit: unit.into(),
            better,
            values: vec![vec![ours], vec![theirs]],
        };
        let rows = [
            row("create", "/s", Better::Higher, 15000.0, 1500.0),
            row("ready", "ms", Better::Lower, 10.0, 2500.0),
            row("events", "", Better::Neither, 3.0, 3.0),
        ];
        let text = render("api", &subjects, &rows, &["in memory".into()]);
        let expected = "\
api     unit  windlass  reference  windlass is
create  /s       15000       1500  10.0x better
ready   ms        10.0       2500   250x better
events            3.00       3.00
note: in memory
";
        // Only the padding of the header differs with the widest cell.
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&text), squeeze(expected));
    }

    #[test]
    fn what_was_not_measured_has_no_ratio() {
        assert_eq!(ratio(Better::Lower, Some(1.0), None), "-");
        assert_eq!(ratio(Better::Lower, Some(0.0), Some(1.0)), "-");
    }
}
