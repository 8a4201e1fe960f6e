//! The lines that differ between two texts of a policy.

/// A line of a comparison.
#[derive(Clone)]
pub struct Line {
    pub text: String,
    pub change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Same,
    Added,
    Removed,
}

impl Change {
    /// The sign before the line. Colour alone is not enough.
    pub fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Added => '+',
            Self::Removed => '−',
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// The maximum number of pairs of lines that are compared, which take 8 MiB. For longer texts, the
/// result is correct but longer than necessary.
const PAIRS: usize = 4 << 20;

/// The lines of both texts, in order.
pub fn lines(before: &str, after: &str) -> Vec<Line> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (beginning, old) = old.split_at(start);
    let new = &new[start..];
    let pairs = old.iter().rev().zip(new.iter().rev());
    let end = pairs.take_while(|(old, new)| old == new).count();
    let (old, ending) = old.split_at(old.len() - end);
    let new = &new[..new.len() - end];
    let changed = match old.len().checked_mul(new.len()) {
        Some(0..=PAIRS) => shortest(old, new),
        _ => [all(old, Change::Removed), all(new, Change::Added)].concat(),
    };
    [all(beginning, Change::Same), changed, all(ending, Change::Same)].concat()
}

fn all(lines: &[&str], change: Change) -> Vec<Line> {
    lines.iter().map(|line| Line { text: (*line).to_owned(), change }).collect()
}

/// Returns the shortest difference, which has the longest common subsequence. Removed lines are
/// before the lines that replace them.
fn shortest(old: &[&str], new: &[&str]) -> Vec<Line> {
    let width = new.len() + 1;
    // For each pair, the length of the longest common subsequence from there. It is at most the
    // smaller number of lines, whose square is at most `PAIRS`.
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for (i, before) in old.iter().enumerate().rev() {
        for (j, after) in new.iter().enumerate().rev() {
            common[i * width + j] = if before == after {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(old.len() + new.len());
    loop {
        let (text, change) = match (old.get(i), new.get(j)) {
            (Some(before), Some(after)) if before == after => (before, Change::Same),
            (Some(before), Some(_)) if common[(i + 1) * width + j] >= common[i * width + j + 1] => {
                (before, Change::Removed)
            }
            (_, Some(after)) => (after, Change::Added),
            (Some(before), None) => (before, Change::Removed),
            (None, None) => return lines,
        };
        i += usize::from(change != Change::Added);
        j += usize::from(change != Change::Removed);
        lines.push(Line { text: (*text).to_owned(), change });
    }
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

    /// Every text with at most four lines of two letters or an empty line.
    fn texts() -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut longest = texts.clone();
        for _ in 0..4 {
            let longer = |text: &String| ["a\n", "b\n", "\n"].map(|line| text.clone() + line);
            longest = longest.iter().flat_map(longer).collect();
            texts.extend_from_slice(&longest);
        }
        texts
    }

    /// The number of lines that both texts can have in common, by trying every choice.
    fn common(old: &[&str], new: &[&str]) -> usize {
        match (old, new) {
            ([before, old_rest @ ..], [after, new_rest @ ..]) => {
                let both = if before == after { 1 + common(old_rest, new_rest) } else { 0 };
                both.max(common(old_rest, new)).max(common(old, new_rest))
            }
            _ => 0,
        }
    }

    #[test]
    fn both_texts_can_be_restored_and_the_difference_is_the_shortest() {
        for before in &texts() {
            for after in &texts() {
                let lines = lines(before, after);
                let without = |change| -> Vec<&str> {
                    let kept = lines.iter().filter(|line| line.change != change);
                    kept.map(|line| line.text.as_str()).collect()
                };
                let (old, new) = (without(Change::Added), without(Change::Removed));
                assert_eq!(old, before.lines().collect::<Vec<_>>(), "{before:?} {after:?}");
                assert_eq!(new, after.lines().collect::<Vec<_>>(), "{before:?} {after:?}");
                let same = lines.iter().filter(|line| line.change == Change::Same).count();
                assert_eq!(same, common(&old, &new), "{before:?} {after:?}");
                let added_first = |pair: &[Line]| {
                    pair[0].change == Change::Added && pair[1].change == Change::Removed
                };
                assert!(!lines.windows(2).any(added_first), "{before:?} {after:?}");
            }
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
        let removed = found.iter().take_while(|line| line.change == Change::Removed);
        assert_eq!(removed.count(), 30_000);
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
