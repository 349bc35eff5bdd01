//! A line diff of two texts.

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices, group_diff_ops};

/// The most lines that may differ to be compared one by one; of more, only their number is told.
const MOST: usize = 2000;
/// The number of context lines around a change.
const CONTEXT: usize = 2;

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
    let groups = group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT);
    let shown: Vec<String> = groups.iter().map(|group| show(group, &old, &new)).collect();
    shown.join("  ...\n")
}

fn show(group: &[DiffOp], old: &[&str], new: &[&str]) -> String {
    let lines = group.iter().flat_map(|op| op.iter_changes(old, new));
    lines.fold(String::new(), |text, line| {
        let sign = match line.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        format!("{text}{sign} {}\n", line.value())
    })
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
