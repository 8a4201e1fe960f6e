//! A bar chart of decisions as plain SVG, in the shares of its outcomes.

/// The height of the highest bar, in units of the drawing.
const HEIGHT: i64 = 1000;
/// The smallest height of a part. A few decisions stay visible beside many.
const LEAST: i64 = 12;
/// The width of a bar with the gap after it.
const STEP: usize = 10;

/// The numbers of decisions by outcome: allowed, held, denied.
pub(super) type Counts = [i64; 3];

/// The classes of the parts of a bar.
pub(crate) const CLASSES: [&str; 3] = ["allowed", "held", "denied"];

/// A part of a bar: the decisions with one outcome.
pub(crate) struct Part {
    pub(crate) class: &'static str,
    pub(crate) x: usize,
    pub(crate) y: i64,
    pub(crate) height: i64,
}

/// The drawing.
pub(crate) struct Chart {
    pub(crate) width: usize,
    pub(crate) height: i64,
    pub(crate) parts: Vec<Part>,
}

impl Chart {
    /// Draws a bar for each entry, from left to right. The outcomes are above one another.
    pub(super) fn of(bars: &[Counts]) -> Self {
        let most = bars.iter().map(|counts| counts.iter().sum::<i64>()).max().unwrap_or(0);
        // Each part may be raised to the least height.
        let height = HEIGHT + LEAST * 3;
        let mut parts = Vec::new();
        for (index, counts) in bars.iter().enumerate() {
            let mut top = height;
            for (class, count) in CLASSES.into_iter().zip(counts).filter(|(_, count)| **count > 0) {
                let part = (count.saturating_mul(HEIGHT) / most.max(1)).max(LEAST);
                top -= part;
                parts.push(Part { class, x: index * STEP, y: top, height: part });
            }
        }
        Self { width: bars.len() * STEP, height, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_shares_of_their_counts() {
        let chart = Chart::of(&[[50, 0, 50], [0, 0, 0], [25, 1, 0]]);
        assert_eq!((chart.width, chart.height), (30, 1036));
        let parts: Vec<_> =
            chart.parts.iter().map(|part| (part.class, part.x, part.y, part.height)).collect();
        assert_eq!(
            parts,
            [
                ("allowed", 0, 536, 500),
                ("denied", 0, 36, 500),
                ("allowed", 20, 786, 250),
                ("held", 20, 774, 12),
            ]
        );
        assert!(Chart::of(&[[0; 3]; 24]).parts.is_empty());
    }

    #[test]
    fn a_bar_with_every_outcome_stays_in_the_drawing() {
        let chart = Chart::of(&[[1_000_000, 1, 1]]);
        assert!(chart.parts.iter().all(|part| part.y >= 0));
        let large = Chart::of(&[[i64::MAX / 4, 0, 0]]);
        assert!(large.parts.iter().all(|part| part.y >= 0 && part.height > 0));
    }
}
