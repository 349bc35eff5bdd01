//! A line diff of two texts.

/// Beyond so many lines that differ, only their number is told.
const MOST: usize = 2000;
/// The number of context lines around a change.
const AROUND: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The lines that go, with `-`, and those that come, with `+`, with a few around them.
///
/// ```
/// # use windlass_sdk::diff::diff;
/// assert_eq!(diff("a\nb\n", "a\nc\n"), "  a\n- b\n+ c\n");
/// assert_eq!(diff("a\n", "a\n"), "");
/// ```
pub fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if old_middle.len() > MOST || new_middle.len() > MOST {
        return format!("- {} lines\n+ {} lines\n", old_middle.len(), new_middle.len());
    }
    let mut lines: Vec<Line<'_>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(old_middle, new_middle));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    told(&lines)
}

/// By the longest lines in common.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = match old[i] == new[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            lines.push(Line::Gone(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

fn told(lines: &[Line<'_>]) -> String {
    let differs = |at: usize| !matches!(lines[at], Line::Same(_));
    let is_near = |at: usize| (at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())).any(differs);
    let mut text = String::new();
    let mut skipped = false;
    for (at, line) in lines.iter().enumerate() {
        if !is_near(at) {
            skipped = true;
            continue;
        }
        if skipped && !text.is_empty() {
            text += "  ...\n";
        }
        skipped = false;
        text += &match line {
            Line::Same(line) => format!("  {line}\n"),
            Line::Gone(line) => format!("- {line}\n"),
            Line::New(line) => format!("+ {line}\n"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_lines_are_left_out() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "one\n2\n3\n4\n5\n6\n7\n9\n10\n";
        assert_eq!(diff(old, new), "- 1\n+ one\n  2\n  3\n  ...\n  6\n  7\n- 8\n  9\n+ 10\n");
    }

    #[test]
    fn what_is_far_too_long_is_only_counted() {
        let long = "x\n".repeat(3000);
        assert_eq!(diff(&long, "y\n"), "- 3000 lines\n+ 1 lines\n");
    }
}
