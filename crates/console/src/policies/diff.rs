//! Which lines differ between two texts.

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
    /// Before the line, so that colour is not all that tells.
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

/// The most lines of each text that are compared; longer ones are shown as replaced.
const MOST: usize = 2_000;

/// The lines of both texts, by their longest common subsequence.
pub(super) fn lines(before: &str, after: &str) -> Vec<Line> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let line = |text: &str, change| Line { text: text.to_owned(), change };
    if old.len() > MOST || new.len() > MOST {
        let removed = old.iter().map(|text| line(text, Change::Removed));
        return removed.chain(new.iter().map(|text| line(text, Change::Added))).collect();
    }
    let common = common(&old, &new);
    let (mut at, mut to, mut lines) = (0, 0, Vec::new());
    while at < old.len() || to < new.len() {
        if at < old.len() && to < new.len() && old[at] == new[to] {
            lines.push(line(old[at], Change::Same));
            (at, to) = (at + 1, to + 1);
        } else if to == new.len() || (at < old.len() && common[at + 1][to] >= common[at][to + 1]) {
            lines.push(line(old[at], Change::Removed));
            at += 1;
        } else {
            lines.push(line(new[to], Change::Added));
            to += 1;
        }
    }
    lines
}

/// The number of common lines of what follows each pair of places.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<u16>> {
    let mut common = vec![vec![0_u16; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            common[at][to] = if old[at] == new[to] {
                common[at + 1][to + 1] + 1
            } else {
                common[at + 1][to].max(common[at][to + 1])
            };
        }
    }
    common
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
            ("a\nb\nc", "b\nc\nd", "−a b c+d"),
        ] {
            let lines = lines(before, after);
            let shown = lines.iter().map(|line| format!("{}{}", line.change.sign(), line.text));
            assert_eq!(shown.collect::<String>(), expected, "{before:?} {after:?}");
        }
    }
}
