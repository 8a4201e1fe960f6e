//! The unified diff of two texts.

use std::fmt::Write as _;

use authority_decision::diff::{self, Change, Line};

use crate::text::plain;

/// The number of unchanged lines shown before and after a change.
const CONTEXT: usize = 3;

/// Returns a unified diff from the active text; empty if the texts are equal.
pub(crate) fn unified_diff(in_force: &str, other: &str, name: &str) -> String {
    let shown = |text: &str| text.lines().map(|line| plain(line) + "\n").collect::<String>();
    let lines = diff::lines(&shown(in_force), &shown(other));
    let changed = (0..lines.len()).filter(|index| lines[*index].change != Change::Same);
    let changed: Vec<_> = changed.collect();
    let mut diff = String::new();
    if !changed.is_empty() {
        diff = format!("--- in force\n+++ {name}\n");
    }
    // Changes share a hunk if their context touches.
    for hunk in changed.chunk_by(|before, after| after - before <= 2 * CONTEXT + 1) {
        let (first, last) = (hunk[0], hunk[hunk.len() - 1]);
        let (start, end) = (first.saturating_sub(CONTEXT), lines.len().min(last + CONTEXT + 1));
        let (earlier, hunk) = (&lines[..start], &lines[start..end]);
        let [old, new] = [Change::Added, Change::Removed].map(|not| range(earlier, hunk, not));
        // Writing to a String cannot fail.
        let _ = writeln!(diff, "@@ -{old} +{new} @@");
        for line in hunk {
            let sign = match line.change {
                Change::Same => ' ',
                Change::Added => '+',
                Change::Removed => '-',
            };
            let _ = writeln!(diff, "{sign}{}", line.text);
        }
    }
    diff
}

/// Formats the lines that a hunk has of one text: of all lines, those without this change.
fn range(earlier: &[Line], hunk: &[Line], not: Change) -> String {
    let count = |lines: &[Line]| lines.iter().filter(|line| line.change != not).count();
    match (count(earlier), count(hunk)) {
        // An empty range is after the line with this number.
        (before, 0) => format!("{before},0"),
        (before, 1) => format!("{}", before + 1),
        (before, number) => format!("{},{number}", before + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changes_and_what_is_hidden() {
        assert_eq!(unified_diff("a;\nb;\n", "a;\nb;\n", "draft"), "");
        let shown = unified_diff("a;\nb;\n", "a;\nb\u{202e};\n", "draft");
        let expected = "--- in force\n+++ draft\n@@ -1,2 +1,2 @@\n a;\n-b;\n+b\\u{202e};\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_hunk_has_three_lines_around_its_changes_and_the_numbers_of_diff() {
        // The expected texts are of `diff -u`.
        for (old, new, expected) in [
            ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n",
                "x\n2\n3\n4\n5\n6\n7\ny\n",
                "@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n",
            ),
            (
                "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n",
                "0\n2\n3\n4\n5\n6\n7\n8\nx\n9\n",
                "@@ -1,5 +1,4 @@\n 0\n-1\n 2\n 3\n 4\n@@ -7,4 +6,5 @@\n 6\n 7\n 8\n+x\n 9\n",
            ),
        ] {
            let shown = unified_diff(old, new, "draft");
            assert_eq!(shown, format!("--- in force\n+++ draft\n{expected}"));
        }
    }
}
