//! The lines that differ between two texts.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// A line of a comparison.
pub(super) struct Line {
    pub(super) text: String,
    pub(super) change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Same,
    Added,
    Removed,
}

impl Change {
    /// The sign before the line. Colour alone is not enough.
    pub(super) fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Added => '+',
            Self::Removed => '−',
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// The time limit of the search for the shortest difference. After it, the result is correct but may
/// be longer.
const LONGEST: Duration = Duration::from_millis(100);

/// The lines of both texts, in order.
pub(super) fn lines(before: &str, after: &str) -> Vec<Line> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let diff = TextDiff::configure().timeout(LONGEST).diff_slices(&old, &new);
    let changes = diff.iter_all_changes().map(|change| Line {
        text: change.value().to_owned(),
        change: match change.tag() {
            ChangeTag::Equal => Change::Same,
            ChangeTag::Insert => Change::Added,
            ChangeTag::Delete => Change::Removed,
        },
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_has_every_line_of_both() {
        for (before, after, expected) in [
            ("a\nb\nc", "a\nx\nc", " a−b+x c"),
            ("", "a\nb", "+a+b"),
            ("a\nb", "", "−a−b"),
            ("a\nb", "a\nb", " a b"),
            // Line ends are invisible and do not count as a difference.
            ("a\nb\n", "a\nb", " a b"),
            ("a\nb\nc", "b\nc\nd", "−a b c+d"),
        ] {
            let lines = lines(before, after);
            let shown = lines.iter().map(|line| format!("{}{}", line.change.sign(), line.text));
            assert_eq!(shown.collect::<String>(), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn texts_with_nothing_in_common_are_compared_in_bounded_time() {
        let text = |word: &str| {
            let lines: Vec<_> = (0..30_000).map(|line| format!("{word}{line}")).collect();
            lines.join("\n")
        };
        let started = std::time::Instant::now();
        let found = lines(&text("a"), &text("b"));
        assert_eq!(found.len(), 60_000);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
